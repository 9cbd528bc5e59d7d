package view

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Selector finds the targets of Gates in the cache.
type Selector struct {
	Scopes
	Targets TargetReader
}

// Governed returns the keys of the targets that a Gate governs, each once: the targets in spec.targets, and the targets that refer to the
// Gate. If kinds are given, it returns only targets of these kinds. Kinds that cannot be read are skipped.
func (s *Selector) Governed(ctx context.Context, g *v1alpha1.Gate, kinds ...schema.GroupKind) ([]target.Key, error) {
	all, err := s.referenced(ctx, g, kinds...)
	if err != nil {
		return nil, err
	}
	naming, err := s.Targets.Naming(ctx, client.ObjectKeyFromObject(g).String())
	if err != nil {
		return nil, err
	}
	for _, t := range naming {
		key := target.KeyOf(t)
		if s.Reaches(t.GetNamespace(), g.Namespace) && (len(kinds) == 0 || slices.Contains(kinds, key.GroupKind)) {
			all.AddKeys(key)
		}
	}
	return all.Keys, nil
}

// referenced returns the targets in spec.targets of a Gate.
func (s *Selector) referenced(ctx context.Context, g *v1alpha1.Gate, kinds ...schema.GroupKind) (all KeySet, err error) {
	for i := range g.Spec.Targets {
		ref := &g.Spec.Targets[i]
		adapter, err := target.For(ref.APIVersion, ref.Kind)
		if err != nil || len(kinds) > 0 && !slices.Contains(kinds, adapter.GroupKind()) {
			continue // see Faults
		}
		found, err := s.Selected(ctx, g, ref, adapter)
		if err != nil && !errors.Is(err, ErrNotInstalled) && !errors.Is(err, ErrNotRead) {
			return all, err
		}
		all.AddKeys(KeysFor(found)...)
	}
	return all, nil
}

// Selected returns the targets that a reference of a Gate matches, except in namespaces that the Gate must not refer to.
func (s *Selector) Selected(ctx context.Context, g *v1alpha1.Gate, ref *v1alpha1.TargetReference, adapter target.Adapter) ([]*target.Object, error) {
	namespace := NamespaceFor(ref, g)
	if !ref.SpansNamespaces() {
		if !s.Reaches(g.Namespace, namespace) || !s.Watches(namespace) {
			return nil, nil // see Faults
		}
		return s.Targets.Select(ctx, adapter, namespace, ref)
	}
	if namespace = metav1.NamespaceAll; !s.AllowCrossNamespaceRefs {
		namespace = g.Namespace
	}
	found, err := s.Targets.Select(ctx, adapter, namespace, ref)
	scope, failed := s.Scope(ctx)
	spanned := map[string]bool{}
	found = slices.DeleteFunc(found, func(t *target.Object) bool {
		is, known := spanned[t.GetNamespace()]
		if !known {
			is = s.Watches(t.GetNamespace()) && scope.Spans(ref, t.GetNamespace())
			spanned[t.GetNamespace()] = is
		}
		return !is
	})
	return found, errors.Join(err, failed())
}

// Named returns the keys of the targets that a Gate holds or that refer to the Gate. gate is given as namespace/name.
func (s *Selector) Named(ctx context.Context, gate string) ([]target.Key, error) {
	held, err := s.Targets.HeldBy(ctx, gate)
	if err != nil {
		return nil, err
	}
	naming, err := s.Targets.Naming(ctx, gate)
	if err != nil {
		return nil, err
	}
	all := KeySet{}
	all.AddKeys(KeysFor(held)...)
	all.AddKeys(KeysFor(naming)...)
	return all.Keys, nil
}

// KeysFor returns the keys of targets.
func KeysFor(targets []*target.Object) []target.Key {
	keys := make([]target.Key, len(targets))
	for i, t := range targets {
		keys[i] = target.KeyOf(t)
	}
	return keys
}

// Fault is a failure of a reference, a dependency or a calendar, rather than of a target. If it has a cause, a retry may succeed.
type Fault struct {
	v1alpha1.TargetFailure
	Cause error
}

// NewFault returns a Fault without a cause.
func NewFault(kind, namespace, name, reason, message string) Fault {
	return Fault{TargetFailure: v1alpha1.TargetFailure{Kind: kind, Namespace: namespace, Name: name, Reason: reason, Message: message}}
}

// Faults returns the reasons why references of a Gate match no targets, or not all of them.
func (s *Selector) Faults(ctx context.Context, g *v1alpha1.Gate) []Fault {
	var faults []Fault
	for i := range g.Spec.Targets {
		ref := &g.Spec.Targets[i]
		namespace := NamespaceFor(ref, g)
		if message := s.OutOfReach("targets", "held", g.Namespace, namespace); message != "" {
			faults = append(faults, NewFault(ref.Kind, namespace, ref.Name, v1alpha1.AccessDeniedReason, message))
			continue
		}
		if message := s.selectsOwn(ctx, ref); message != "" {
			faults = append(faults, NewFault(ref.Kind, s.Own, ref.Name, v1alpha1.AccessDeniedReason, message))
		}
		adapter, err := target.For(ref.APIVersion, ref.Kind)
		if err != nil {
			faults = append(faults, NewFault(ref.Kind, namespace, ref.Name, v1alpha1.UnsupportedKindReason, err.Error()))
			continue
		}
		var unsupported UnsupportedError
		switch err = s.Targets.Readable(ctx, adapter); {
		case errors.As(err, &unsupported):
			faults = append(faults, NewFault(ref.Kind, namespace, ref.Name, v1alpha1.UnsupportedKindReason, err.Error()))
		case errors.Is(err, ErrNotInstalled):
			faults = append(faults, NewFault(ref.Kind, namespace, ref.Name, v1alpha1.CRDNotFoundReason, err.Error()))
		case err != nil:
			f := NewFault(ref.Kind, namespace, ref.Name, v1alpha1.ReadFailedReason, err.Error())
			f.Cause = err
			faults = append(faults, f)
		}
	}
	return faults
}

// selectsOwn returns a warning if a reference selects the controller's own namespace by labels.
func (s *Selector) selectsOwn(ctx context.Context, ref *v1alpha1.TargetReference) string {
	if ref.NamespaceSelector == nil || s.Own == "" {
		return ""
	}
	labels, err := s.Labels(ctx, s.Own)
	if err != nil || !verdict.Matches(ref.NamespaceSelector.Kubernetes(), labels) {
		return "" // in this case, reading the targets fails, too
	}
	return fmt.Sprintf(msgSelectsOwn,
		s.Own, corev1.LabelMetadataName, s.Own)
}
