package controllers

import (
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

// targetNews tells in events what becomes of targets.
type targetNews struct {
	kuberecorder.EventRecorder
	metrics *GateMetrics

	mu sync.Mutex
	// told has how many events the last transition of a Gate has made.
	told map[types.UID]told
	// refused are the passes whose refusal was told and is not noted on the target.
	refused map[target.Key]string
}

type told struct {
	transition metav1.Time
	mode       v1alpha1.Mode
	n          int
	// audited are the targets that were told what a Gate with mode Audit would do.
	audited map[target.Key]bool
}

// mayTell returns whether another event may be made for the last transition of a Gate, and of its mode.
func (n *targetNews) mayTell(g *v1alpha1.Gate) bool { return n.mayTellOf(g, target.Key{}) }

// mayTellOf is mayTell of what is told once of a target. Without a key it is told each time.
func (n *targetNews) mayTellOf(g *v1alpha1.Gate, key target.Key) bool {
	if g == nil || g.Status.LastTransition == nil {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told == nil {
		n.told = map[types.UID]told{}
	}
	of, at := g.UID, g.Status.LastTransition.At
	known := n.told[of]
	if !known.transition.Equal(&at) || known.mode != g.Spec.Mode {
		known = told{transition: at, mode: g.Spec.Mode, audited: map[target.Key]bool{}}
	}
	if known.audited[key] {
		return false
	}
	if known.n++; known.n <= maxTold && key != (target.Key{}) {
		known.audited[key] = true
	}
	n.told[of] = known
	return known.n <= maxTold
}

// notify emits the events of a pass over a target.
func (n *targetNews) notify(res *summary.Result) {
	if !res.Wrote {
		n.passRefused(&res.Ruling, res.Gates)
		return
	}
	n.changed(&res.Ruling)
	n.passed(&res.Ruling, res.Gates)
}

// changed emits an event on a target that was held or released.
func (n *targetNews) changed(r *verdict.Ruling) {
	obj, step, state := r.Object, r.Step, r.Observed.State
	refused, message := verdict.Refusal(r.Verdict.Holders)
	switch {
	case step.Outcome == verdict.Exempt:
	case r.Verdict.Again:
		said := n.about(r.Verdict.Holders, r.Now)
		delete(said, eventv1.MetaTokenKey) // what resumes a target again and again is told once in five minutes
		said.tell(n, obj, notice{eventWarning, v1alpha1.HeldAgainReason, "Resumed while " + verdict.ClosedAre(step.Names) + ", held again. Open the gate instead."})
	case step.Hold && refused != "" && state == target.Free:
		n.about(r.Verdict.Holders, r.Now).tell(n, obj, notice{eventWarning, refused, message})
	case step.Hold && (state == target.Free || state == target.Locked):
		if n.mayTell(first(r.Verdict.Holders)) {
			n.about(r.Verdict.Holders, r.Now).tell(n, obj, notice{eventNormal, v1alpha1.GateClosedReason, verdict.Explain(r.Verdict.Holders, r.Now)})
		}
	case r.Releases():
		open := r.Verdict.Opened
		if len(open) == 0 {
			open = leaving(r)
		}
		if n.mayTell(first(open)) {
			n.about(open, r.Now).tell(n, obj, notice{eventNormal, v1alpha1.GateOpenedReason, r.Verdict.Released()})
		}
	}
}

// audited records an event on a target that a Gate with mode Audit would begin to hold.
func (n *targetNews) audited(obj *target.Object, g verdict.Gate, now time.Time) {
	if n.mayTellOf(g.Object, target.KeyOf(obj)) {
		n.about([]verdict.Gate{g}, now).tell(n, obj, notice{eventNormal, v1alpha1.WouldHoldReason, verdict.ExplainAudit(g, now)})
	}
}

// leaving returns the Gates that release a target although they are not open: they have mode Audit, no longer govern the target or
// are gone.
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

// about says which Gates an event on a target is about, what the first of them is and who decided that.
func (n *targetNews) about(gates []verdict.Gate, now time.Time) news {
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = g.Name
	}
	said := newsOfGate(target.FormatHeldBy(names), first(gates), now)
	if reason, _ := verdict.Refusal(gates); reason != "" {
		said[reasonNews] = reason
	}
	return said
}

// certified counts and tells what is new in the conditions of a Certificate.
func (n *targetNews) certified(obj *target.Object, list []metav1.Condition) {
	for _, now := range list {
		if now.Status != metav1.ConditionTrue || meta.IsStatusConditionTrue(obj.GetConditions(), now.Type) {
			continue
		}
		switch now.Type {
		case v1alpha1.RenewalDeferredCondition:
			n.metrics.deferred.WithLabelValues("outside_window").Inc()
		case v1alpha1.RenewalDisabledCondition:
			n.metrics.deferred.WithLabelValues("disabled").Inc()
			n.Eventf(obj, eventWarning, now.Type, "%s", now.Message)
		case v1alpha1.RenewalWindowBypassedCondition:
			n.metrics.bypassed.WithLabelValues("expiry_imminent").Inc()
			n.Eventf(obj, eventWarning, now.Type, "%s", now.Message)
		case v1alpha1.RenewalConfigInvalidCondition:
			n.Eventf(obj, eventWarning, now.Type, "%s", now.Message)
		}
	}
}

// isNewRefusal records the refusal of a pass, and returns whether it differs from the one before.
func (n *targetNews) isNewRefusal(key target.Key, text string) bool {
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
func (n *targetNews) Forget(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.told, uid)
}

// Evict removes a target.
func (n *targetNews) Evict(key target.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.refused, key)
}
