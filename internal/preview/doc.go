// Package preview computes when Gates are open and closed in the future, compares that for two sets of manifests, and draws it. It has no
// client and no clock: the caller fills a Set with manifests or with the objects of a cluster, and passes a Range.
package preview
