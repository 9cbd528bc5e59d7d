package controllers

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

// closedElsewhere returns whether a target is governed by a Gate, other than the one
// that wants something of it, that is not open.
func (r *GateReconciler) closedElsewhere(obj *unstructured.Unstructured, want order) (bool, error) {
	gates, err := r.governing(obj, want.live)
	for name, g := range gates {
		if name != want.Gate && (g == nil || !gate.IsOpen(g, want.now)) {
			return true, err
		}
	}
	return false, err
}

// governing returns the Gates that govern a target, by name. One that the target names
// but that does not exist, or that it must not refer to, is nil.
func (r *GateReconciler) governing(obj *unstructured.Unstructured, live func() ([]*v1alpha1.Gate, error)) (map[string]*v1alpha1.Gate, error) {
	names, governing := namedBy(obj), map[string]*v1alpha1.Gate{}
	for _, name := range names {
		governing[name] = nil
	}
	gates, err := live()
	for _, g := range gates {
		if r.reaches(g.Namespace, obj.GetNamespace()) && governs(g, obj, names) {
			governing[client.ObjectKeyFromObject(g).String()] = g
		}
	}
	return governing, err
}

// isClosed returns whether a Gate is not open at an instant, or is not to be: somebody has
// asked it to close, and nobody has looked at that.
func isClosed(g *v1alpha1.Gate, now time.Time) bool {
	return !gate.IsOpen(g, now) || !g.Spec.Suspend && gate.CloseRequested(g)
}

// putsItsName returns whether a Gate holds what it governs at an instant, or is about to.
// One that is due to open is not, for as long as that takes: if it is still closed then,
// something keeps it from opening.
func putsItsName(g *v1alpha1.Gate, now time.Time) bool {
	next := g.Status.NextTransition
	opens := next != nil && next.State == v1alpha1.StateOpened && !next.At.After(now) && now.Sub(next.At.Time) < awaitsFor
	current := conditions.Has(g, v1alpha1.OpenedCondition) && g.Status.ObservedGeneration == g.Generation
	return !g.Spec.Suspend && g.DeletionTimestamp.IsZero() && isClosed(g, now) && (!current || !opens)
}

// awaits returns whether a target that a Gate, the own one, would let go is to wait for
// another one, which is to hold it and has not put its name to it yet: because it closes
// just now, or because the target is one of its own since just now. Flux would apply what
// is in Git in between.
func (r *GateReconciler) awaits(ctx context.Context, s settled, own string, now time.Time) (bool, error) {
	obj := &s.obj.Unstructured
	names := namedBy(obj)
	gates, err := r.indexed(ctx, obj)
	if err != nil {
		return false, err
	}
	named := append([]string{own}, s.step.HeldBy...)
	holders := map[string]*v1alpha1.Gate{}
	for _, g := range gates {
		name := client.ObjectKeyFromObject(g).String()
		if !slices.Contains(named, name) && putsItsName(g, now) && r.reaches(g.Namespace, obj.GetNamespace()) && governs(g, obj, names) {
			holders[name] = g
		}
	}
	for _, name := range names {
		if slices.Contains(named, name) {
			continue
		}
		refused, err := r.refuses(ctx, name, obj, gates)
		if err != nil {
			return false, err
		}
		if refused {
			holders[name] = nil
		}
	}
	for name, g := range holders {
		plan, err := r.plan(ctx, s.obj, s.state, []string{name}, order{gate: g, now: now})
		if err != nil || plan.Exempt == target.NotExempt {
			return true, err
		}
	}
	return false, nil
}

// refuses returns whether what names a Gate is held for that alone: the Gate does not
// exist, is about to go, or must not be referred to. Gates are those that are known.
func (r *GateReconciler) refuses(ctx context.Context, name string, obj *unstructured.Unstructured, gates []*v1alpha1.Gate) (bool, error) {
	namespace, base, _ := strings.Cut(name, "/")
	if !r.watches(namespace) {
		return true, nil
	}
	key := client.ObjectKey{Namespace: namespace, Name: base}
	for _, g := range gates {
		switch {
		case client.ObjectKeyFromObject(g) != key:
		case !g.DeletionTimestamp.IsZero():
			return controllerutil.ContainsFinalizer(g, v1alpha1.GateFinalizer), nil
		default:
			return !g.Spec.Suspend && !r.reaches(obj.GetNamespace(), namespace), nil
		}
	}
	exists, err := r.exists(ctx, key)
	return !exists, err
}

// newer returns a Gate that governs an object as the cache has it, if that is newer than
// what was read and it governs the object still.
func (r *GateReconciler) newer(ctx context.Context, g *v1alpha1.Gate, obj *unstructured.Unstructured) *v1alpha1.Gate {
	cached := &v1alpha1.Gate{}
	err := r.Get(ctx, client.ObjectKeyFromObject(g), cached)
	if err != nil || cached.UID != g.UID || !older(g.ResourceVersion, cached.ResourceVersion) ||
		!cached.DeletionTimestamp.IsZero() || !governs(cached, obj, namedBy(obj)) {
		return g
	}
	return cached
}

// indexed returns the Gates that may govern a target, as the cache has them. They are
// not to be written to.
func (r *GateReconciler) indexed(ctx context.Context, obj *unstructured.Unstructured) ([]*v1alpha1.Gate, error) {
	var gates []*v1alpha1.Gate
	for _, name := range []string{obj.GetName(), v1alpha1.AnyName} {
		found := &v1alpha1.GateList{}
		if err := r.List(ctx, found, client.MatchingFields{targetField: keyOf(obj, name)}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		for i := range found.Items {
			gates = append(gates, &found.Items[i])
		}
	}
	named, err := r.gatesOf(ctx, namedBy(obj), nil, r.Client)
	return append(gates, named...), err
}

// awaitsFor is when to look again at a target that awaits another Gate, whose name on it
// tells earlier.
const awaitsFor = time.Second
