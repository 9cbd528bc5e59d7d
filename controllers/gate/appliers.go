package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/applier"
	"github.com/fluxcd/gating-controller/internal/target"
)

// applierMaxAge is how long an applier is cached. Many Gates may close at the same time, and one object may apply all of them.
const applierMaxAge = 10 * time.Second

// Appliers caches the complete appliers of Gates. The zero value is ready for use.
type Appliers struct {
	mu   sync.Mutex
	at   time.Time
	read map[applier.Reference]*unstructured.Unstructured
	// reading shares one GET of an applier among all Gates that need it at the same time.
	reading singleflight.Group
}

// get returns an applier, nil if it does not exist.
func (a *Appliers) get(ctx context.Context, targets view.TargetReader, ref applier.Reference, now time.Time) (*unstructured.Unstructured, error) {
	if obj, ok := a.cached(ref, now); ok {
		return obj, nil
	}
	adapter, err := target.For("", ref.Kind)
	if err != nil {
		return nil, err
	}
	result, err, _ := a.reading.Do(ref.String(), func() (any, error) {
		return targets.Read(ctx, adapter, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	})
	if err != nil && !errors.Is(err, view.ErrNotInstalled) {
		return nil, fmt.Errorf(msgApplierUnread, ref, err)
	}
	obj, _ := result.(*unstructured.Unstructured)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read[ref] = obj
	return obj, nil
}

// cached returns an applier from the cache, nil if the applier did not exist when it was read. It returns false if the applier is not
// cached. It clears a cache that is too old.
func (a *Appliers) cached(ref applier.Reference, now time.Time) (obj *unstructured.Unstructured, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if age := now.Sub(a.at); age < 0 || age >= applierMaxAge || a.read == nil {
		a.at, a.read = now, map[applier.Reference]*unstructured.Unstructured{}
	}
	obj, ok = a.read[ref]
	return obj, ok
}

// ownApplierKey returns a key for the fields of a Gate that governedAppliers depends on.
func ownApplierKey(g *v1alpha1.Gate) string {
	return fmt.Sprint(g.Generation, conditions.IsTrue(g, v1alpha1.OpenedCondition), applier.Appliers(g.Labels))
}

// governedAppliers returns the appliers of a Gate, and their sources, that the Gate itself governs. The sources are read from the cache.
func governedAppliers(ctx context.Context, s *view.Selector, g *v1alpha1.Gate, read *Appliers, now time.Time) (held []applier.Reference, err error) {
	scope, failed := s.Scope(ctx)
	for _, root := range applier.Appliers(g.Labels) {
		if !s.Reaches(g.Namespace, root.Namespace) {
			continue // so that forged labels do not reveal which objects exist
		}
		obj, err := read.get(ctx, s.Targets, root, now)
		if err != nil {
			return nil, err
		}
		if obj == nil {
			continue // the labels of the Gate are out of date
		}
		known := applier.Objects{root: obj}
		for _, ref := range known.Sources(root) {
			if adapter, err := target.For("", ref.Kind); err == nil {
				source, err := s.Targets.Get(ctx, target.Key{GroupKind: adapter.GroupKind(), NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
				if err != nil {
					return nil, err
				}
				if source != nil {
					known[ref] = &source.Unstructured
				}
			}
		}
		for _, ref := range known.Governed(g, []applier.Reference{root}, scope) {
			if s.Reaches(g.Namespace, ref.Namespace) && s.Watches(ref.Namespace) {
				held = append(held, ref)
			}
		}
	}
	return held, failed()
}

// ownApplierMessage returns the warning that a Gate governs its own applier, with the next step.
func ownApplierMessage(g *v1alpha1.Gate, held []applier.Reference) string {
	names := ""
	for i, ref := range held {
		if i > 0 {
			names += " and "
		}
		names += ref.String()
	}
	return fmt.Sprintf(msgGovernsApplier, names, g.Name, g.Namespace)
}
