// Package preview computes when Gates are open and closed in the future, compares the results for two sets of manifests, and draws them.
// It has no client and no clock. The caller fills a Set with manifests or with the objects of a cluster, and passes a Range.
package preview
