// Package explain explains why an object is reconciled or not, what would change that, and what waits. It has no client and no clock.
// kubectl gate and the web UI show the results.
//
// Explain returns the Gates that govern an object and its state. SourceOf and Wait return the revision that waits while it is held. The
// JSON of Explanation and Waiting is a public format.
package explain
