// Package webauth serves the web UI of internal/ui in the controller, from caches. A viewer with a bearer token sees what the API server
// allows for that token. A viewer without a token sees names, states and times, if that is enabled. The only writes of the package are
// the reviews that the API server uses to authenticate and authorize viewers.
package webauth
