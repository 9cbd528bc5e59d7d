// Package preview says when Gates are open and closed in times to come, what a change of manifests changes in that, and draws it. It has
// no client and no clock: a caller fills a Set with manifests or with what a cluster has, and names the Range.
package preview
