package see

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/explain"
)

// heldObjects returns the objects in a namespace that Gates hold or that wait for approvals. If namespace is empty, it returns the
// objects of all namespaces. It lists each kind once.
func heldObjects(ctx context.Context, o *kube.Objects, namespace, selector string) ([]*unstructured.Unstructured, error) {
	kinds, err := o.Installed()
	if err != nil {
		return nil, err
	}
	var held []*unstructured.Unstructured
	for _, kind := range kinds {
		if err := o.Each(ctx, kind, namespace, selector, func(obj *unstructured.Unstructured) {
			if explain.IsHeld(obj) || explain.NeedsApproval(obj) {
				held = append(held, obj.DeepCopy())
			}
		}); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// waitingFor returns the waiting change of each object. It lists sources once per kind and namespace, or once per kind if everywhere
// is set.
func waitingFor(ctx context.Context, o *kube.Objects, held []*unstructured.Unstructured, everywhere bool, now time.Time) ([]explain.Waiting, error) {
	sources, err := readSources(ctx, o, held, everywhere)
	if err != nil {
		return nil, err
	}
	all := make([]explain.Waiting, 0, len(held))
	for _, obj := range held {
		var source *unstructured.Unstructured
		if ref, ok := explain.SourceOf(obj); ok {
			source = sources[sourceKey(ref)]
		}
		all = append(all, explain.Wait(obj, source, now))
	}
	slices.SortFunc(all, func(a, b explain.Waiting) int { return a.Compare(&b) })
	return all, nil
}

// sourceKey returns a reference that has the API group instead of the API version.
func sourceKey(ref explain.Ref) explain.Ref {
	ref.APIVersion = apiGroup(ref)
	return ref
}

func apiGroup(ref explain.Ref) string {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	return group
}

// readSources returns the sources of objects by their keys.
func readSources(ctx context.Context, o *kube.Objects, held []*unstructured.Unstructured, everywhere bool) (map[explain.Ref]*unstructured.Unstructured, error) {
	type list struct {
		kind      schema.GroupKind
		namespace string
	}
	wanted, lists := map[explain.Ref]bool{}, []list{}
	for _, obj := range held {
		ref, ok := explain.SourceOf(obj)
		if !ok {
			continue
		}
		wanted[sourceKey(ref)] = true
		l := list{schema.GroupKind{Group: apiGroup(ref), Kind: ref.Kind}, ref.Namespace}
		if everywhere {
			l.namespace = ""
		}
		if !slices.Contains(lists, l) {
			lists = append(lists, l)
		}
	}
	found := map[explain.Ref]*unstructured.Unstructured{}
	for _, l := range lists {
		mapping, err := o.Mapper.RESTMapping(l.kind)
		if meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return nil, kube.NoCluster(err)
		}
		if err := o.Each(ctx, mapping, l.namespace, "", func(obj *unstructured.Unstructured) {
			if key := sourceKey(explain.RefOf(obj)); wanted[key] {
				found[key] = obj.DeepCopy()
			}
		}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// readSource returns the source of an object, nil if it has none or if the source cannot be read.
func readSource(ctx context.Context, o *kube.Objects, obj *unstructured.Unstructured) *unstructured.Unstructured {
	ref, ok := explain.SourceOf(obj)
	if !ok {
		return nil
	}
	mapping, err := o.Mapper.RESTMapping(schema.GroupKind{Group: apiGroup(ref), Kind: ref.Kind})
	if err != nil {
		return nil
	}
	source := &unstructured.Unstructured{}
	source.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := o.Cluster.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, source); err != nil {
		return nil
	}
	return source
}

// shortRevision returns a revision in the form for a column.
func shortRevision(revision string, wide bool) string {
	switch {
	case revision == "":
		return "-"
	case wide:
		return revision
	}
	return explain.ShortRevision(revision)
}

// holders returns the names of the Gates that hold an object, relative to the namespace of the object. If the revision is waiting for
// approvals, it returns how many approvals it has and needs.
func holders(w *explain.Waiting) string {
	if a := w.Approvals; a != nil {
		return fmt.Sprintf("approval %d of %d", a.Has, a.Needs)
	}
	if len(w.Gates) == 0 {
		return "-"
	}
	names := make([]string, len(w.Gates))
	for i, g := range w.Gates {
		names[i] = explain.Short(g, w.Target.Namespace)
	}
	return strings.Join(names, ",")
}
