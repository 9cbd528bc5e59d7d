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

// TargetField is the index of Gates by the objects in spec.targets. Its keys are the keys returned by IndexKeys, and the names of
// namespaces. v1alpha1.AnyName stands for references that span namespaces. Such references have no key with the name of an object, which
// saves a lookup per target.
const TargetField = "spec.targets"

// TargetIndexKeys returns the keys of a Gate in the index TargetField.
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

// GateIndex looks up the Gates of targets.
type GateIndex struct {
	Scopes
	// Reader reads Gates from the cache, which has the index TargetField.
	Reader client.Reader
	// APIReader reads from the API server.
	APIReader client.Reader
	// AllGates reads the metadata of the Gates of all shards from a cache. It is nil without shards.
	AllGates client.Reader
	// Newest returns the cached Gate, or the version with the last decision of this process if the cache is behind.
	Newest func(*v1alpha1.Gate) *v1alpha1.Gate
}

// For returns the target's Gates at an instant, each once: the Gates that govern the target, and the Gates named in its annotations. It
// uses the version in the cache, or the version with the last decision of this process if the cache is behind. The Gates must not be
// changed.
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
		if about, ok := scope.About(i.Newest(g), &obj.Unstructured, now); ok {
			gates = append(gates, about)
		}
	}
	return gates, failed()
}

// Live returns the target's Gates across all shards, read from the API server unless the cache is newer. The labels of namespaces are
// also read from the API server. Use it before irreversible steps.
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
		if about, ok := scope.About(g, &obj.Unstructured, now); ok {
			gates = append(gates, about)
		}
	}
	for _, name := range verdict.NamesOn(&obj.Unstructured) {
		if !known[name] {
			gates = append(gates, i.without(name, obj))
		}
	}
	return gates, failed()
}

// get returns a Gate from the cache, nil if it is not in the cache.
func (i *GateIndex) get(ctx context.Context, key types.NamespacedName) (*v1alpha1.Gate, error) {
	if key.Name == "" || !i.Watches(key.Namespace) {
		return nil, nil //nolint:nilnil // nil means that the Gate does not exist
	}
	g := &v1alpha1.Gate{}
	if err := i.Reader.Get(ctx, key, g); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return g, nil
}

// absent returns the effect of a Gate that is named in the annotations of a target, but is not in the cache.
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
	if _, renews := target.As[target.Renewer](&obj.Unstructured); renews { // because the renewal depends on the terms of the Gate
		g := &v1alpha1.Gate{}
		if err := i.APIReader.Get(ctx, key, g); err == nil {
			elsewhere.Object = g
		} else if !apierrors.IsNotFound(err) {
			return elsewhere, err
		}
	}
	return elsewhere, nil
}

// without returns the effect of a Gate that does not exist. A target that refers to the Gate is held. Other targets are released.
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

// Exists returns whether a Gate exists. It reads from the API server only if the Gate is not in any cache. It returns false for invalid
// names, and for Gates in namespaces that this process does not watch.
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

// ListGates lists Gates. They must not be changed, because Gates from a cache are not copied.
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

// GateExists returns whether a Gate exists.
func GateExists(ctx context.Context, reader client.Reader, key types.NamespacedName) (bool, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
	err := reader.Get(ctx, key, obj)
	return err == nil, client.IgnoreNotFound(err)
}

// NamesGate returns whether a target refers to a Gate by annotation. Unlike the name of a holder, this reference stays when the target is
// released.
func NamesGate(obj *unstructured.Unstructured, name string) bool {
	return slices.Contains(verdict.NamedBy(obj), name)
}
