package cli

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// previewSet returns Gates of a cluster with their exceptions. If somebody may not see exceptions, it says so and leaves them out.
func previewSet(ctx context.Context, t *terminal, c *cluster, gates []*v1alpha1.Gate) *preview.Set {
	set, _ := previewSetAndExceptions(ctx, t, c, gates)
	return set
}

// previewSetAndExceptions also returns the exceptions.
func previewSetAndExceptions(ctx context.Context, t *terminal, c *cluster, gates []*v1alpha1.Gate) (*preview.Set, []*v1alpha1.GateException) {
	var namespaces []string
	for _, g := range gates {
		namespaces = append(namespaces, g.Namespace)
	}
	slices.Sort(namespaces)
	exceptions, err := c.exceptions(ctx, slices.Compact(namespaces))
	if err != nil {
		t.warn("exceptions do not count here: %s", oneLine(err.Error()))
	}
	known := map[string]bool{}
	for _, g := range gates {
		known[nameOfGate(g)] = true
	}
	exceptions = slices.DeleteFunc(exceptions, func(e *v1alpha1.GateException) bool { return !known[e.Namespace+"/"+e.Spec.GateRef.Name] })
	set := preview.FromCluster(gates, exceptions)
	_ = readConfigMaps(ctx, c, set, set.ConfigMaps()) // the set has each error
	return set, exceptions
}

// manyNamespaces is from how many on one list of all is cheaper than a list of each.
const manyNamespaces = 5

// exceptions returns those of some namespaces.
func (c *cluster) exceptions(ctx context.Context, namespaces []string) (exceptions []*v1alpha1.GateException, err error) {
	if len(namespaces) > manyNamespaces {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		opts := &client.ListOptions{Namespace: namespace, Limit: 500}
		for {
			list := &v1alpha1.GateExceptionList{}
			if err := c.List(ctx, list, opts); err != nil {
				return nil, asked{"list", "gateexceptions", namespace, "", "gate-viewer"}.explain(err)
			}
			for i := range list.Items {
				exceptions = append(exceptions, &list.Items[i])
			}
			if opts.Continue = list.Continue; opts.Continue == "" {
				break
			}
		}
	}
	return exceptions, nil
}
