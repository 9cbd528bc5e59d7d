package controllers

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Selector finds the targets of Gates in the cache.
type Selector struct {
	Reach
	Targets TargetReader
}

// Governed returns the keys of the targets that a Gate governs, of some kinds or of all if none are given, each once: those that
// its spec names, and those that name it. A kind that cannot be read has none.
func (s *Selector) Governed(ctx context.Context, g *v1alpha1.Gate, kinds ...schema.GroupKind) ([]target.Key, error) {
	all := keySet{}
	for _, ref := range g.Spec.Targets {
		adapter, err := target.For(ref.APIVersion, ref.Kind)
		namespace := namespaceOf(ref, g)
		if err != nil || !s.reaches(g.Namespace, namespace) || !s.watches(namespace) || len(kinds) > 0 && !slices.Contains(kinds, adapter.GroupKind()) {
			continue // see Faults
		}
		found, err := s.Targets.Select(ctx, adapter, namespace, ref)
		if err != nil && !errors.Is(err, ErrNotInstalled) && !errors.Is(err, errNotRead) {
			return nil, err
		}
		all.addKeys(keysOfTargets(found)...)
	}
	naming, err := s.Targets.Naming(ctx, client.ObjectKeyFromObject(g).String())
	if err != nil {
		return nil, err
	}
	for _, t := range naming {
		key := target.KeyOf(t)
		if s.reaches(t.GetNamespace(), g.Namespace) && (len(kinds) == 0 || slices.Contains(kinds, key.GroupKind)) {
			all.addKeys(key)
		}
	}
	return all.keys, nil
}

// reading returns errNotRead while a kind is being read, if a Gate names objects of it.
func (s *Selector) reading(ctx context.Context, g *v1alpha1.Gate, kind schema.GroupKind) error {
	for _, ref := range g.Spec.Targets {
		adapter, err := target.For(ref.APIVersion, ref.Kind)
		if err != nil || adapter.GroupKind() != kind || s.Targets.Readable(ctx, adapter) != nil {
			continue
		}
		if _, err := s.Targets.Select(ctx, adapter, namespaceOf(ref, g), ref); errors.Is(err, errNotRead) {
			return err
		}
	}
	return nil
}

// Named returns the keys of the targets that have the name of a Gate, given as namespace/name: because they are held
// by it, or because they name it themselves.
func (s *Selector) Named(ctx context.Context, gate string) ([]target.Key, error) {
	held, err := s.Targets.HeldBy(ctx, gate)
	if err != nil {
		return nil, err
	}
	naming, err := s.Targets.Naming(ctx, gate)
	if err != nil {
		return nil, err
	}
	all := keySet{}
	all.addKeys(keysOfTargets(held)...)
	all.addKeys(keysOfTargets(naming)...)
	return all.keys, nil
}

// keySetOf is a list of keys, each once, in the order in which they came.
type keySetOf[T comparable] struct {
	keys []T
	has  map[T]bool
}

type keySet = keySetOf[target.Key]

func (s *keySetOf[T]) addKeys(keys ...T) {
	if s.has == nil {
		s.has = map[T]bool{}
	}
	for _, key := range keys {
		if !s.has[key] {
			s.has[key] = true
			s.keys = append(s.keys, key)
		}
	}
}

func keysOfTargets(targets []*target.Object) []target.Key {
	keys := make([]target.Key, len(targets))
	for i, t := range targets {
		keys[i] = target.KeyOf(t)
	}
	return keys
}

// fault is a failure that is not that of a target which was found. Another try may mend it if there is a
// cause.
type fault struct {
	v1alpha1.TargetFailure
	cause error
}

func newFault(kind, namespace, name, reason, message string) fault {
	return fault{TargetFailure: v1alpha1.TargetFailure{Kind: kind, Namespace: namespace, Name: name, Reason: reason, Message: message}}
}

// Faults returns why targets of a Gate cannot be found, by its references.
func (s *Selector) Faults(ctx context.Context, g *v1alpha1.Gate) []fault {
	var faults []fault
	for _, ref := range g.Spec.Targets {
		namespace := namespaceOf(ref, g)
		if message := s.outOfReach("targets", "held", g.Namespace, namespace); message != "" {
			faults = append(faults, newFault(ref.Kind, namespace, ref.Name, v1alpha1.AccessDeniedReason, message))
			continue
		}
		adapter, err := target.For(ref.APIVersion, ref.Kind)
		if err != nil {
			faults = append(faults, newFault(ref.Kind, namespace, ref.Name, v1alpha1.UnsupportedKindReason, err.Error()))
			continue
		}
		var unsupported UnsupportedError
		switch err = s.Targets.Readable(ctx, adapter); {
		case errors.As(err, &unsupported):
			faults = append(faults, newFault(ref.Kind, namespace, ref.Name, v1alpha1.UnsupportedKindReason, err.Error()))
		case errors.Is(err, ErrNotInstalled):
			faults = append(faults, newFault(ref.Kind, namespace, ref.Name, v1alpha1.CRDNotFoundReason, err.Error()))
		case err != nil:
			f := newFault(ref.Kind, namespace, ref.Name, v1alpha1.ReadFailedReason, err.Error())
			f.cause = err
			faults = append(faults, f)
		}
	}
	return faults
}
