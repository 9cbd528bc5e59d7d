// Package explain explains why an object is reconciled or not, what would change that, and which change is waiting. It has no
// client and no clock. kubectl gate and the web UI show the results.
//
// Explain returns the Gates that govern an object and the state of the object. SourceOf and Wait return the revision that is waiting
// while the object is held. The JSON formats of Explanation and Waiting are public.
package explain
