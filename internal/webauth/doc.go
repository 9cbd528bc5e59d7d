// Package webauth serves the pages of internal/ui in the controller: what a viewer may see, from caches. Whoever sends a bearer token sees what
// the API server lets that token see; without one, nobody sees more than names, states and times, and only if that is on. It writes nothing
// but the reviews by which the API server says who somebody is and what they may do.
package webauth
