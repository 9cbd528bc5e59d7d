package gatedsource

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/promotion"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// fetch reads all inputs of a decision on a GatedSource. Sources are read from the cache, or from the API server if live is set. With
// shards, a live fetch also reads the Gates of other shards. The returned state is never nil.
func (r *Reconciler) fetch(ctx context.Context, obj *target.Object, live bool) (*promotionState, error) {
	s := &promotionState{object: obj, before: &v1alpha1.GatedSource{}, now: r.Clock.Now()}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, s.before); err != nil {
		return s, err
	}
	in := &s.input
	in.Now = s.now
	var err error
	if s.original, in.Original, err = r.source(ctx, s.before, s.before.Spec.SourceRef.Name, live); err != nil {
		return s, err
	}
	if s.pinned, in.Pinned, err = r.source(ctx, s.before, s.before.PinnedName(), live); err != nil {
		return s, err
	}
	if !in.Pinned.IsOf(s.before) { // a pinned source keeps its GatedSource
		if in.Older, err = r.older(ctx, s.before); err != nil {
			return s, err
		}
	}
	if in.Stamped = true; promotion.HasNewApprovals(s.before) {
		if in.Stamped, err = r.Stamped(ctx); err != nil {
			return s, err
		}
	}
	gates, err := r.Gates.For(ctx, obj, s.now)
	if err != nil {
		return s, err
	}
	all := gates
	switch {
	case live && (r.isSharded() || promotion.HandlesRollback(s.before, s.now)):
		if all, err = r.Gates.Live(ctx, obj, s.now); err != nil {
			return s, err
		}
	case r.isSharded(): // only a live round considers Gates of other shards
		all = slices.DeleteFunc(slices.Clone(gates), func(g verdict.Gate) bool { return g.Effect == verdict.OtherShard })
	}
	s.gates, in.Gates = gates, combined(all, s.now)
	in.Gates.HeldBy = s.closedGates()
	in.Gates.Bars = func(list string, at time.Time) (string, bool) { return verdict.BarsRollback(all, list, at, s.now) }
	return s, nil
}

// combined returns the combined decision of the Gates of a GatedSource. The pin stays in place if a Gate has not decided or cannot be
// read.
func combined(gates []verdict.Gate, now time.Time) promotion.Gates {
	v := verdict.Judge(verdict.Observed{}, gates)
	reason, message := verdict.Refusal(v.Holders)
	switch {
	case !slices.ContainsFunc(gates, func(g verdict.Gate) bool { return !g.LetsActivate() }):
		if len(v.Initial) > 0 {
			return promotion.Gates{Open: true, Reason: v1alpha1.InitialReconciliationReason, Message: v.InitialMessage()}
		}
		return promotion.Gates{Open: true, Reason: v1alpha1.GateOpenedReason, Message: v.Released()}
	case len(v.Holders) == 0:
		return promotion.Gates{}
	case reason == "":
		reason, message = v1alpha1.GateClosedReason, verdict.Explain(v.Holders, now)
	}
	return promotion.Gates{Reason: reason, Message: message}
}

// source returns a source in the namespace of a GatedSource, nil if it does not exist.
func (r *Reconciler) source(ctx context.Context, g *v1alpha1.GatedSource, name string, live bool) (*unstructured.Unstructured, *promotion.Source, error) {
	kind := schema.GroupKind{Group: sourcev1.GroupVersion.Group, Kind: g.Spec.SourceRef.Kind}
	key := types.NamespacedName{Namespace: g.Namespace, Name: name}
	adapter, err := target.For(kind.Group+"/v1", kind.Kind)
	if err != nil {
		return nil, nil, err
	}
	var obj *unstructured.Unstructured
	if live {
		if obj, err = r.Targets.Read(ctx, adapter, key); errors.Is(err, view.ErrNotInstalled) {
			err = nil
		}
	} else {
		var cached *target.Object
		if cached, err = r.Targets.Get(ctx, target.Key{GroupKind: kind, NamespacedName: key}); cached != nil {
			obj = &cached.Unstructured
		}
	}
	if obj == nil || err != nil {
		return nil, nil, err
	}
	return obj, newSource(obj, g.UID), nil
}

// newSource returns the facts about a source that decisions depend on.
func newSource(obj *unstructured.Unstructured, owner types.UID) *promotion.Source {
	spec, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec")
	observed, _, _ := unstructured.NestedInt64(obj.Object, target.ObservedGenerationPath...)
	t, generation := &target.Object{Unstructured: *obj}, obj.GetGeneration()
	ready := meta.FindStatusCondition(t.GetConditions(), fluxmeta.ReadyCondition)
	s := &promotion.Source{
		Revision: target.Revision(t), Current: observed == generation, Unchanged: isUnchanged(obj), GatedBy: obj.GetAnnotations()[v1alpha1.PinnedByAnnotation],
		Deleted: !obj.GetDeletionTimestamp().IsZero(), Ready: ready,
		// source-controller sets observedGeneration in the status only after a successful fetch, but observedGeneration in the condition at
		// once
		Failed: ready != nil && ready.Status == metav1.ConditionFalse && (observed == generation || ready.ObservedGeneration == generation),
		Owned:  slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner }),
	}
	s.Spec, _ = spec.(map[string]any)
	return s
}

// isUnchanged returns whether the artifact of a source has the content that its spec now selects for the revision. It checks the fields
// that source-controller compares. A commit and a digest have the same content at any URL, but the version of a chart does not.
func isUnchanged(obj *unstructured.Unstructured) bool {
	content, known := target.ContentOf[obj.GetKind()]
	for _, c := range content {
		spec, _, _ := unstructured.NestedFieldNoCopy(obj.Object, c.Spec...)
		observed, _, _ := unstructured.NestedFieldNoCopy(obj.Object, c.Observed...)
		known = known && (reflect.DeepEqual(spec, observed) || isUnset(spec) && isUnset(observed))
	}
	return known
}

// isUnset returns whether a field is missing or false, which means the same.
func isUnset(value any) bool { return value == nil || value == false }

// older returns the name of the oldest GatedSource that is older than g and pins the same source, empty if there is none.
func (r *Reconciler) older(ctx context.Context, g *v1alpha1.GatedSource) (string, error) {
	adapter, err := target.For("", v1alpha1.GatedSourceKind)
	if err != nil {
		return "", err
	}
	found, err := r.Targets.Select(ctx, adapter, g.Namespace, &v1alpha1.TargetReference{Name: v1alpha1.AnyName})
	if err != nil {
		return "", err
	}
	oldest := g
	for _, t := range found {
		other := view.SourceReferences(t)
		if other.Name != g.Name && other.Spec.SourceRef.Kind == g.Spec.SourceRef.Kind && other.PinnedName() == g.PinnedName() && byAge(other, oldest) < 0 {
			oldest = other
		}
	}
	if oldest == g {
		return "", nil
	}
	return oldest.Name, nil
}

// byAge compares two GatedSources by their age, oldest first, and then by their names.
func byAge(a, b *v1alpha1.GatedSource) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
