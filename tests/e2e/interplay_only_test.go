package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func auditing(w *fleet) { w.gateSpec = func(s *v1alpha1.GateSpec) { s.Mode = v1alpha1.ModeAudit } }

// inWaves puts app into the last wave of a release that stops at the Kustomization blocker, which never becomes ready.
func inWaves(w *fleet) {
	w.gateSpec = func(s *v1alpha1.GateSpec) {
		s.Targets = append(s.Targets, v1alpha1.TargetReference{Kind: "Kustomization", Name: "blocker"})
		s.Release = &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{{Name: "first", MatchLabels: map[string]string{"wave": "first"}}}}
	}
}

func TestInterplayForSomeTargets(t *testing.T) { onlyCases.run(t) }

var onlyCases = cases{
	"only-opens": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.openOnly("production")
		w.is(free)
		w.push()
		w.parentReconciles()
		w.close("production") // a request for the whole Gate ends the open request
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"only-closes": func(t *testing.T) {
		w := newFleet(t)
		w.closeOnly("production")
		w.is(held)
		w.fluxResume()
		w.is(held)
		w.openOnly("production")
		w.is(free)
		w.closeOnly("production")
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"only-by-exception": func(t *testing.T) {
		w := newFleet(t)
		e := &v1alpha1.GateException{ObjectMeta: metav1.ObjectMeta{Name: "hotfix"}, Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: "production"}, Default: v1alpha1.StateClosed,
			ValidFrom: metav1.NewTime(time.Now()), ValidUntil: metav1.NewTime(time.Now().Add(time.Hour)),
			Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "app"}},
		}}
		w.step("an exception closes app", false, func() {
			w.Create(e)
			w.model.close(w.Namespace + "/production")
		})
		w.is(held)
		w.openOnly("production") // a request takes precedence
		w.is(free)
		w.closeOnly("production")
		w.step("the exception is deleted", false, func() { w.Must(w.Client.Delete(w.Context(), e)) })
		w.open("production")
		w.is(free)
	},
	"only-flux-suspend": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.openOnly("production")
		w.fluxSuspend()
		w.is(suspended)
		w.fluxResume()
		w.is(free)
		w.fluxSuspend()
		w.close("production")
		w.is(suspended)
		w.open("production")
		w.is(suspended)
	},
	"only-two-gates": func(t *testing.T) {
		w := newFleet(t)
		w.newGate("freeze")
		w.close("production")
		w.close("freeze")
		w.openOnly("production")
		w.is(held)
		w.openOnly("freeze")
		w.is(free)
		w.closeOnly("production")
		w.is(held)
		w.open("production")
		w.open("freeze")
		w.is(free)
	},
	"only-resumed": func(t *testing.T) {
		w := newFleet(t, respecting)
		w.closeOnly("production")
		w.fluxResume()
		w.is(free)
		w.openOnly("production")
		w.is(free)
		w.closeOnly("production")
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"only-audit": func(t *testing.T) {
		w := newFleet(t, auditing)
		w.step("production with mode Audit closes for app", false, func() { w.requestOnly("production", v1alpha1.CloseRequestedAtAnnotation) })
		w.Eventually("app is counted", func() error {
			if counts := w.ReadGate("production").Status.Targets; counts == nil || counts.WouldHold != 1 || counts.Held != 0 {
				return fmt.Errorf("the counts are %+v", counts)
			}
			return nil
		})
		w.is(free)
	},
	"only-in-waves": func(t *testing.T) {
		w := newFleet(t, inWaves)
		blocker := w.Kustomization("blocker")
		blocker.SetLabels(map[string]string{"wave": "first"})
		w.Create(blocker)
		w.close("production")
		w.step("production opens, and its release stops", false, func() {
			w.makeRequest("production", v1alpha1.OpenRequestedAtAnnotation, metav1.ConditionTrue)
			w.Eventually("the release stops", func() error {
				if !conditions.IsTrue(w.ReadGate("production"), v1alpha1.ReleaseStoppedCondition) {
					return errors.New("the first wave is in progress")
				}
				return nil
			})
		})
		w.is(held)
		w.openOnly("production")
		w.is(free)
	},
}

// openOnly and closeOnly are requests only for app.
func (w *fleet) openOnly(gate string) {
	w.Helper()
	w.step(gate+" opens for app", false, func() {
		w.requestOnly(gate, v1alpha1.OpenRequestedAtAnnotation)
		w.model.open(w.Namespace + "/" + gate)
	})
}

func (w *fleet) closeOnly(gate string) {
	w.Helper()
	w.step(gate+" closes for app", false, func() {
		w.requestOnly(gate, v1alpha1.CloseRequestedAtAnnotation)
		w.model.close(w.Namespace + "/" + gate)
	})
}

// requestOnly makes a request for app. If the controller is running, it waits until the request is handled.
func (w *fleet) requestOnly(gate, annotation string) {
	w.Helper()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: gate}}
	w.Annotate(g, annotation, time.Now().UTC().Format(time.RFC3339Nano)+"/1h,only=Kustomization/app")
	if !w.down {
		w.Decided(g)
	}
}
