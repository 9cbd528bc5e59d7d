package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	kuberecorder "k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// diagnostics finds settings that are probably unintended: references that match nothing, and Gates that hold their own appliers.
type diagnostics struct {
	selector *view.Selector
	state    *State
	appliers *Appliers
	events   kuberecorder.EventRecorder
	metrics  *events.Metrics
}

// emptyFor is how long a reference must match nothing before it is reported, because the same commit may create its target.
const emptyFor = time.Minute

// maxNamed bounds how many references a message names.
const maxNamed = 5

// referenceCheck is the result of a check of references.
type referenceCheck struct {
	// At the time of the check: the generation of the Gate, the total number of its targets, and the time of its next resync.
	generation, total int64
	resync            time.Time
	// refs are the references that match nothing, each with the time when a check first found that.
	refs []emptyReference
	// reported is true once an event has reported them.
	reported bool
}

type emptyReference struct {
	ref   v1alpha1.TargetReference
	since time.Time
}

// findings contains the results of the checks of a Gate.
type findings struct {
	empty referenceCheck
	// applierKey identifies the inputs that held was derived from. held is the warning that the Gate holds its own applier. It is empty if
	// there is nothing to warn about, and nil if that is unknown.
	applierKey string
	held       *string
	// n is how many references have matched nothing for long enough, and message names them.
	n       int
	message string
	// recheck is the time of the next check, zero if the next change triggers it.
	recheck time.Time
}

// check checks a Gate whose targets are settled. It returns nil if they are not settled.
func (a diagnostics) check(ctx context.Context, before, obj *v1alpha1.Gate, s summary.Sums, now time.Time) *findings {
	if !s.IsSettled() {
		return nil
	}
	found := &findings{empty: referenceCheck{generation: obj.Generation, total: s.Total}}
	a.checkReferences(ctx, before, obj, now, found)
	a.checkAppliers(ctx, obj, now, found)
	return found
}

// report records findings, and emits events about findings that are new in the status.
func (a diagnostics) report(before, obj *v1alpha1.Gate, found *findings, now time.Time) {
	if found == nil {
		return
	}
	key := client.ObjectKeyFromObject(obj)
	emit := func(condition, reason string) {
		events.ForGate(key.String(), obj, now).Emit(a.events, obj, events.New(events.Warning, reason, conditions.GetMessage(obj, condition)))
	}
	if view.HasEmptyReference(obj) {
		if !view.HasEmptyReference(before) && !found.empty.reported {
			emit(meta.ReadyCondition, v1alpha1.NoTargetsReason)
		}
		found.empty.reported = true
	}
	if conditions.IsTrue(obj, v1alpha1.HoldsItsOwnSourceCondition) && !conditions.IsTrue(before, v1alpha1.HoldsItsOwnSourceCondition) {
		emit(v1alpha1.HoldsItsOwnSourceCondition, v1alpha1.HoldsItsOwnSourceCondition)
	}
	a.state.recordFindings(obj, found)
	events.SetOrDelete(a.metrics.Empty, key, found.n)
}

// checkReferences finds references that match nothing. If the spec has changed, there are fewer targets, or a resync is due, any
// reference may have become empty, and it checks them all. Otherwise it checks only references that matched nothing before.
func (a diagnostics) checkReferences(ctx context.Context, before, obj *v1alpha1.Gate, now time.Time, found *findings) {
	last, origin, resync := a.state.lastFindings(obj)
	found.applierKey, found.empty.resync = origin, resync
	all := last.generation != obj.Generation || found.empty.total < last.total || !last.resync.Equal(found.empty.resync)
	var names []string
	for i := range obj.Spec.Targets {
		ref := &obj.Spec.Targets[i]
		known := slices.IndexFunc(last.refs, func(e emptyReference) bool { return equality.Semantic.DeepEqual(e.ref, *ref) })
		if !all && known < 0 || !matchesNothing(ctx, a.selector, obj, ref) {
			continue
		}
		e := emptyReference{*ref, now}
		switch {
		case known >= 0:
			e.since = last.refs[known].since
		case last.generation == 0 && view.HasEmptyReference(before): // a previous process has reported it
			e.since = now.Add(-emptyFor)
		}
		found.empty.refs = append(found.empty.refs, e)
		if now.Sub(e.since) >= emptyFor {
			names = append(names, fmt.Sprintf("spec.targets[%d] %s", i, gate.TextOf(ref)))
		} else if at := e.since.Add(emptyFor); found.recheck.IsZero() || at.Before(found.recheck) {
			found.recheck = at
		}
	}
	found.n, found.empty.reported = len(names), len(names) > 0 && last.reported
	if found.n > 0 {
		found.message = emptyMessage(names, len(obj.Spec.Targets))
	}
}

// emptyMessage returns a message with the names of the references that match nothing. of is the total number of references in
// spec.targets.
func emptyMessage(names []string, of int) string {
	text := andMore(names[:min(len(names), maxNamed)], len(names))
	verb := "match"
	if len(names) == 1 {
		verb = "matches"
	}
	return fmt.Sprintf(msgEmptyReferences, len(names), of, verb, text)
}

// matchesNothing returns whether a reference of a Gate selects no object. It returns false for a reference with a fault, which is
// reported separately.
func matchesNothing(ctx context.Context, s *view.Selector, g *v1alpha1.Gate, ref *v1alpha1.TargetReference) bool {
	namespace := view.NamespaceFor(ref, g)
	adapter, err := target.For(ref.APIVersion, ref.Kind)
	if err != nil || s.OutOfReach("targets", "held", g.Namespace, namespace) != "" || s.Targets.Readable(ctx, adapter) != nil {
		return false
	}
	if !ref.SpansNamespaces() {
		any, err := s.Targets.Any(ctx, adapter, namespace, ref)
		return err == nil && !any
	}
	found, err := s.Selected(ctx, g, ref, adapter)
	return err == nil && len(found) == 0
}

// checkAppliers checks whether a Gate governs its own applier, if the spec, the labels or the state have changed, or after a restart. If a
// read fails, the next pass checks again.
func (a diagnostics) checkAppliers(ctx context.Context, obj *v1alpha1.Gate, now time.Time, found *findings) {
	by := ownApplierKey(obj)
	if found.applierKey == by {
		return
	}
	held, err := governedAppliers(ctx, a.selector, obj, a.appliers, now)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot tell whether the gate holds its own applier")
		return
	}
	found.applierKey = by
	found.held = new(string)
	if len(held) > 0 {
		*found.held = ownApplierMessage(obj, held)
	}
}
