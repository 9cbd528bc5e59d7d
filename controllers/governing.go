package controllers

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
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

// isClosing returns whether a Gate that is not open, or not to be, may have yet to put its
// name to what it governs: because nobody has looked at it since it is to close, or it is
// at it. One that is done has put its name to what it holds.
func isClosing(g *v1alpha1.Gate, now time.Time) bool {
	if g.Spec.Suspend || !g.DeletionTimestamp.IsZero() || gate.IsOpen(g, now) && !gate.CloseRequested(g) {
		return false
	}
	next := g.Status.NextTransition
	opens := next != nil && next.State == v1alpha1.StateOpened && !next.At.After(now)
	current := conditions.Has(g, v1alpha1.OpenedCondition) && g.Status.ObservedGeneration == g.Generation
	return !current || !opens && (conditions.IsTrue(g, v1alpha1.OpenedCondition) || conditions.Has(g, meta.ReconcilingCondition))
}

// awaits returns whether a target that a Gate would let go is to wait for another one,
// which closes and has not put its name to the target: Flux would apply what is in Git
// in between.
func (r *GateReconciler) awaits(ctx context.Context, obj *unstructured.Unstructured, own string, now time.Time) (bool, error) {
	gates, err := r.indexed(ctx, obj)
	names := namedBy(obj)
	return slices.ContainsFunc(gates, func(g *v1alpha1.Gate) bool {
		return client.ObjectKeyFromObject(g).String() != own && isClosing(g, now) &&
			r.reaches(g.Namespace, obj.GetNamespace()) && governs(g, obj, names)
	}), err
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
