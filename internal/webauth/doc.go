// Package webauth serves the web UI of internal/ui in the controller, from caches. A viewer with a bearer token sees what the API server
// allows for that token. A viewer without one sees names, states and times, if that is enabled. The package writes only the reviews by
// which the API server authenticates and authorizes viewers.
package webauth
