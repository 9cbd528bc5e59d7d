// Package explain says why an object is reconciled or not, what would change that, and what waits. It has no client and no clock:
// objects and Gates go in, values come out. kubectl gate prints them, and a page can show them.
//
// Explain says which Gates govern an object and what it is. SourceOf and Wait say which revision waits while it is held. The JSON of
// Explanation and Waiting is a public format.
package explain
