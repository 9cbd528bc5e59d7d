package gate

import (
	"cmp"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// BootstrapKinds are the kinds of the objects that "flux bootstrap" and the Flux Operator create to apply a cluster from Git.
var BootstrapKinds = []string{sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind, sourcev1.BucketKind, kustomizev1.KustomizationKind}

// Bootstrap is the default name and namespace of these objects.
const Bootstrap = "flux-system"

// HoldsBootstrap returns the indices of the entries in spec.targets that match, by default name, the objects from which Flux applies the
// cluster. While such a Gate is closed, Flux applies no commit, not even one that opens the Gate. Entries that select by labels of objects
// or namespaces are ignored, because the labels are unknown here. The policy gating-bootstrap applies the same rule.
func HoldsBootstrap(g *v1alpha1.Gate) (entries []int) {
	for i := range g.Spec.Targets {
		ref := &g.Spec.Targets[i]
		if slices.Contains(BootstrapKinds, ref.Kind) && slices.Contains([]string{Bootstrap, v1alpha1.AnyName}, ref.Name) &&
			slices.Contains([]string{Bootstrap, v1alpha1.AnyName}, cmp.Or(ref.Namespace, g.Namespace)) &&
			ref.NamespaceSelector == nil && len(ref.MatchLabels)+len(ref.MatchExpressions) == 0 {
			entries = append(entries, i)
		}
	}
	return entries
}
