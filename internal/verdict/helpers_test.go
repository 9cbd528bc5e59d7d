package verdict_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// gateOption changes a Gate of a test.
type gateOption func(*v1alpha1.Gate)

// newGate returns a Gate of namespace shop that has been in a state for an hour.
func newGate(name string, state v1alpha1.State, options ...gateOption) *v1alpha1.Gate {
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1}}
	g.Status.ObservedGeneration = 1
	status := metav1.ConditionFalse
	if state == v1alpha1.StateOpened {
		status = metav1.ConditionTrue
	}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: status, Reason: v1alpha1.DefaultReason}}
	g.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(noon.Add(-time.Hour)), State: state}
	for _, option := range options {
		option(g)
	}
	return g
}

func closed(name string, options ...gateOption) *v1alpha1.Gate {
	return newGate(name, v1alpha1.StateClosed, options...)
}

func opened(name string, options ...gateOption) *v1alpha1.Gate {
	return newGate(name, v1alpha1.StateOpened, options...)
}

func respecting(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeLenient }

func suspended(g *v1alpha1.Gate) { g.Spec.Suspend = true }

func audits(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeAudit }

func edited(g *v1alpha1.Gate) { g.Generation++ }

func deleted(g *v1alpha1.Gate) { g.DeletionTimestamp = &metav1.Time{Time: noon} }

func untold(g *v1alpha1.Gate) { g.Status = v1alpha1.GateStatus{} }

// next has a Gate change its state some time after noon.
func next(after time.Duration, state v1alpha1.State) gateOption {
	return func(g *v1alpha1.Gate) {
		g.Status.NextTransition = &v1alpha1.Transition{At: metav1.NewTime(noon.Add(after)), State: state}
	}
}

// because gives the condition Opened a reason, and names what decides.
func because(reason, by string) gateOption {
	return func(g *v1alpha1.Gate) {
		g.Status.Conditions[0].Reason = reason
		g.Status.LastTransition.Period = by
	}
}

func governing(gates ...*v1alpha1.Gate) []verdict.Gate {
	var all []verdict.Gate
	for _, g := range gates {
		all = append(all, verdict.Governing("shop/"+g.Name, g, noon))
	}
	return all
}
