package view

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// TargetField is by which the Gates are looked up that may govern an object: its key, or that of all objects of its kind in
// its namespace or in all. For all namespaces there is no key with a name, so that a target costs one look-up less. The Gates
// that name objects in a namespace at all are found by the name of that, which is v1alpha1.AnyName for those whose references
// span namespaces.
const TargetField = "spec.targets"

// TargetIndexKeys returns what the spec of a Gate names, for the index by targetField.
func TargetIndexKeys(obj client.Object) []string {
	gate, ok := obj.(*v1alpha1.Gate)
	if !ok {
		return nil
	}
	var named []string
	for i := range gate.Spec.Targets {
		ref := &gate.Spec.Targets[i]
		if adapter, err := target.For(ref.APIVersion, ref.Kind); err == nil {
			name := ref.Name
			if ref.SpansNamespaces() {
				name = v1alpha1.AnyName
			}
			named = append(named, objectKey(adapter.GroupKind(), NamespaceFor(ref, gate), name))
		}
	}
	return append(named, NamespacesFor(gate)...)
}

// GateIndex looks up the Gates that have to do with a target.
type GateIndex struct {
	Scopes
	// Reader reads Gates from the cache, which has the index targetField.
	Reader client.Reader
	// APIReader reads from the API server.
	APIReader client.Reader
	// AllGates reads the metadata of the Gates of all shards from a cache, nil without shards.
	AllGates client.Reader
	// Newest returns the version of a cached Gate with the last decision of this process, if the cache is behind.
	Newest func(*v1alpha1.Gate) *v1alpha1.Gate
}

// For returns the target's Gates at an instant, each once: those that govern it and those that its annotations name. Each is the
// version in the cache, or that with the last decision of this process if the cache is behind. They must not be changed.
func (i *GateIndex) For(ctx context.Context, obj *target.Object, now time.Time) ([]verdict.Gate, error) {
	found := map[string]*v1alpha1.Gate{}
	for _, key := range IndexKeys(&obj.Unstructured) {
		listed, err := ListGates(ctx, i.Reader, client.MatchingFields{TargetField: key})
		if err != nil {
			return nil, err
		}
		for _, g := range listed {
			found[client.ObjectKeyFromObject(g).String()] = g
		}
	}
	scope, failed := i.Scope(ctx)
	var gates []verdict.Gate
	for _, name := range verdict.NamesOn(&obj.Unstructured) {
		if found[name] != nil {
			continue
		}
		g, err := i.get(ctx, ParseKey(name))
		if err != nil {
			return nil, err
		}
		if found[name] = g; g == nil {
			absent, err := i.absent(ctx, name, obj)
			if err != nil {
				return nil, err
			}
			gates = append(gates, absent)
		}
	}
	for _, g := range found {
		if g == nil {
			continue
		}
		if stand, ok := scope.About(i.Newest(g), &obj.Unstructured, now); ok {
			gates = append(gates, stand)
		}
	}
	return gates, failed()
}

// Live returns the Gates that have to do with a target, those of all shards, as the API server has them
// or as the cache does if that is newer. The labels of namespaces are those that the API server has. It is for what cannot be undone.
func (i *GateIndex) Live(ctx context.Context, obj *target.Object, now time.Time) ([]verdict.Gate, error) {
	var all []*v1alpha1.Gate
	for _, namespace := range i.all() {
		listed, err := ListGates(ctx, i.APIReader, client.InNamespace(namespace))
		if err != nil {
			return nil, err
		}
		all = append(all, listed...)
	}
	scope, failed := Scopes{i.Reach, []client.Reader{i.APIReader}}.Scope(ctx)
	newest := map[types.UID]*v1alpha1.Gate{}
	if cached, err := ListGates(ctx, i.Reader); err == nil {
		for _, g := range cached {
			newest[g.UID] = g
		}
	}
	var gates []verdict.Gate
	known := map[string]bool{}
	for _, g := range all {
		name := client.ObjectKeyFromObject(g).String()
		if cached := newest[g.UID]; cached != nil && ownwrites.IsOlder(g.ResourceVersion, cached.ResourceVersion) {
			g = cached
		}
		known[name] = true
		if stand, ok := scope.About(g, &obj.Unstructured, now); ok {
			gates = append(gates, stand)
		}
	}
	for _, name := range verdict.NamesOn(&obj.Unstructured) {
		if !known[name] {
			gates = append(gates, i.without(name, obj))
		}
	}
	return gates, failed()
}

// get returns a Gate, nil if the cache has none.
func (i *GateIndex) get(ctx context.Context, key types.NamespacedName) (*v1alpha1.Gate, error) {
	if key.Name == "" || !i.Watches(key.Namespace) {
		return nil, nil //nolint:nilnil // a Gate that is not there is an answer
	}
	g := &v1alpha1.Gate{}
	if err := i.Reader.Get(ctx, key, g); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return g, nil
}

// absent returns what follows for a target from the name of a Gate that the cache lacks.
func (i *GateIndex) absent(ctx context.Context, name string, obj *target.Object) (verdict.Gate, error) {
	key := ParseKey(name)
	exists, err := i.Exists(ctx, key)
	if err != nil || !exists {
		return i.without(name, obj), err
	}
	elsewhere := verdict.Gate{Name: name, Effect: verdict.OtherShard}
	if NamesGate(&obj.Unstructured, name) && !i.Reaches(obj.GetNamespace(), key.Namespace) {
		elsewhere.Effect = verdict.Denied
		return elsewhere, nil
	}
	if _, renews := target.As[target.Renewer](&obj.Unstructured); renews { // the terms of the Gate count
		g := &v1alpha1.Gate{}
		if err := i.APIReader.Get(ctx, key, g); err == nil {
			elsewhere.Object = g
		} else if !apierrors.IsNotFound(err) {
			return elsewhere, err
		}
	}
	return elsewhere, nil
}

// without returns what follows for a target from the name of a Gate that does not exist: it is held if it
// names the Gate itself, and let go if it does not.
func (i *GateIndex) without(name string, obj *target.Object) verdict.Gate {
	key := ParseKey(name)
	g := verdict.Gate{Name: name, Effect: verdict.Open}
	switch {
	case !NamesGate(&obj.Unstructured, name):
	case !i.Watches(key.Namespace) || !i.Reaches(obj.GetNamespace(), key.Namespace):
		g.Effect = verdict.Denied
	default:
		g.Effect = verdict.Missing
	}
	return g
}

// Exists asks the API server for a Gate, unless it is none that this process
// can see or that can be, or another shard is known to have it.
func (i *GateIndex) Exists(ctx context.Context, key types.NamespacedName) (bool, error) {
	if !i.Watches(key.Namespace) || len(validation.IsDNS1123Subdomain(key.Name)) > 0 {
		return false, nil
	}
	if i.AllGates != nil {
		if known, err := GateExists(ctx, i.AllGates, key); known && err == nil {
			return true, nil
		}
	}
	return GateExists(ctx, i.APIReader, key)
}

// ListGates returns Gates. They must not be changed: those of a cache are not copied.
func ListGates(ctx context.Context, reader client.Reader, opts ...client.ListOption) ([]*v1alpha1.Gate, error) {
	list := &v1alpha1.GateList{}
	if err := reader.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	gates := make([]*v1alpha1.Gate, len(list.Items))
	for i := range list.Items {
		gates[i] = &list.Items[i]
	}
	return gates, nil
}

// GateExists asks for a Gate.
func GateExists(ctx context.Context, reader client.Reader, key types.NamespacedName) (bool, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
	err := reader.Get(ctx, key, obj)
	return err == nil, client.IgnoreNotFound(err)
}

// NamesGate returns whether a target has the name of a Gate for a reason that lasts: it names the Gate itself.
func NamesGate(obj *unstructured.Unstructured, name string) bool {
	return slices.Contains(verdict.NamedBy(obj), name)
}
