package events

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kuberecorder "k8s.io/client-go/tools/record"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Recorder emits events on targets.
type Recorder struct {
	kuberecorder.EventRecorder
	Metrics *Metrics

	mu sync.Mutex
	// emitted counts the events of the last transition of each Gate.
	emitted map[types.UID]emitted
	// refused stores the reported refusals of passes that are not recorded on the target.
	refused map[target.Key]string
}

type emitted struct {
	transition metav1.Time
	mode       v1alpha1.Mode
	n          int
	// audited contains the targets with an event about a Gate with mode Audit.
	audited map[target.Key]bool
}

// mayEmit returns whether another event may be emitted for the last transition of a Gate in its current mode. If so, it counts the event.
func (n *Recorder) mayEmit(g *v1alpha1.Gate) bool { return n.mayEmitFor(g, target.Key{}) }

// mayEmitFor is like mayEmit, but permits only one event per target. There is no such limit if key is empty.
func (n *Recorder) mayEmitFor(g *v1alpha1.Gate, key target.Key) bool {
	if g == nil || g.Status.LastTransition == nil {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.emitted == nil {
		n.emitted = map[types.UID]emitted{}
	}
	of, at := g.UID, g.Status.LastTransition.At
	known := n.emitted[of]
	if !known.transition.Equal(&at) || known.mode != g.Spec.Mode {
		known = emitted{transition: at, mode: g.Spec.Mode, audited: map[target.Key]bool{}}
	}
	if known.audited[key] {
		return false
	}
	if known.n++; known.n <= MaxTargetEvents && key != (target.Key{}) {
		known.audited[key] = true
	}
	n.emitted[of] = known
	return known.n <= MaxTargetEvents
}

// Notify emits the events of a pass over a target.
func (n *Recorder) Notify(res *summary.Result) {
	if !res.Wrote {
		n.passRefused(&res.Ruling, res.Gates)
		return
	}
	n.changed(&res.Ruling)
	n.passed(&res.Ruling, res.Gates)
}

// changed emits an event on a target that was held or released.
func (n *Recorder) changed(r *verdict.Ruling) {
	obj, step, state := r.Object, r.Step, r.Observed.State
	refused, message := verdict.Refusal(r.Verdict.Holders)
	switch {
	case step.Outcome == verdict.Exempt:
	case r.Verdict.Again:
		details := n.about(r.Verdict.Holders, r.Now)
		delete(details, eventv1.MetaTokenKey) // without a token, an event is repeated at most once in five minutes
		details.Emit(n, obj, New(Warning, v1alpha1.HeldAgainReason, fmt.Sprintf(msgHeldAgain, verdict.ClosedAre(step.Names))))
	case step.Hold && refused != "" && state == target.Free:
		n.about(r.Verdict.Holders, r.Now).Emit(n, obj, New(Warning, refused, message))
	case step.Hold && (state == target.Free || state == target.Locked):
		if n.mayEmit(first(r.Verdict.Holders)) {
			n.about(r.Verdict.Holders, r.Now).Emit(n, obj, New(Normal, v1alpha1.GateClosedReason, verdict.Explain(r.Verdict.Holders, r.Now)))
		}
	case r.Releases():
		open := r.Verdict.Opened
		if len(open) == 0 {
			open = leaving(r)
		}
		if n.mayEmit(first(open)) {
			n.about(open, r.Now).Emit(n, obj, New(Normal, v1alpha1.GateOpenedReason, r.Verdict.Released()))
		}
	}
}

// Initial emits an event on a target, and counts it for its Gates, if they have begun to allow its initial reconciliation.
func (n *Recorder) Initial(r *verdict.Ruling) {
	was := verdict.ApprovedOf(r.Object)
	if len(r.Verdict.Initial) == 0 || r.Step.Outcome != verdict.Exempt || was != nil && was.Reason == v1alpha1.InitialReconciliationReason {
		return
	}
	n.Metrics.CountInitial(r.Verdict.Initial)
	n.about(r.Verdict.Initial, r.Now).Emit(n, r.Object, New(Normal, v1alpha1.InitialReconciliationReason, r.Verdict.InitialMessage()))
}

// Audited emits an event on a target that a Gate with mode Audit would begin to hold.
func (n *Recorder) Audited(obj *target.Object, g verdict.Gate, now time.Time) {
	if n.mayEmitFor(g.Object, target.KeyOf(obj)) {
		n.about([]verdict.Gate{g}, now).Emit(n, obj, New(Normal, v1alpha1.WouldHoldReason, verdict.ExplainAudit(g, now)))
	}
}

// leaving returns the Gates that release a target although they are not open: Gates with mode Audit, Gates that no longer govern the
// target, and deleted Gates.
func leaving(r *verdict.Ruling) []verdict.Gate {
	var gates []verdict.Gate
	for _, name := range r.Dropped() {
		g := verdict.Gate{Name: name}
		if i := slices.IndexFunc(r.Verdict.Audits, func(g verdict.Gate) bool { return g.Name == name }); i >= 0 {
			g = r.Verdict.Audits[i]
		}
		gates = append(gates, g)
	}
	return gates
}

func first(gates []verdict.Gate) *v1alpha1.Gate {
	if len(gates) == 0 {
		return nil
	}
	return gates[0].Object
}

// about returns the details of an event on a target about Gates, including the state of the first Gate.
func (n *Recorder) about(gates []verdict.Gate, now time.Time) Details {
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = g.Name
	}
	details := ForGate(target.FormatHeldBy(names), first(gates), now)
	if reason, _ := verdict.Refusal(gates); reason != "" {
		details[ReasonKey] = reason
	}
	return details
}

// Certified counts new conditions on a Certificate, and emits events about them.
func (n *Recorder) Certified(obj *target.Object, list []metav1.Condition) {
	for _, now := range list {
		if now.Status != metav1.ConditionTrue || meta.IsStatusConditionTrue(obj.GetConditions(), now.Type) {
			continue
		}
		switch now.Type {
		case v1alpha1.RenewalDeferredCondition:
			n.Metrics.deferred.WithLabelValues("outside_window").Inc()
		case v1alpha1.RenewalDisabledCondition:
			n.Metrics.deferred.WithLabelValues("disabled").Inc()
			n.Eventf(obj, Warning, now.Type, "%s", now.Message)
		case v1alpha1.RenewalWindowBypassedCondition:
			n.Metrics.bypassed.WithLabelValues("expiry_imminent").Inc()
			n.Eventf(obj, Warning, now.Type, "%s", now.Message)
		case v1alpha1.RenewalConfigInvalidCondition:
			n.Eventf(obj, Warning, now.Type, "%s", now.Message)
		}
	}
}

// isNewRefusal returns whether the refusal of a pass differs from the last refusal for the target, and records it.
func (n *Recorder) isNewRefusal(key target.Key, text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused == nil {
		n.refused = map[target.Key]string{}
	}
	before, known := n.refused[key]
	n.refused[key] = text
	return !known || before != text
}

// Forget evicts a Gate.
func (n *Recorder) Forget(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.emitted, uid)
}

// Evict removes a target.
func (n *Recorder) Evict(key target.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.refused, key)
}
