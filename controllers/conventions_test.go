package controllers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestObservedGeneration(t *testing.T) {
	// The control plane starts before Go records which files a test reads, so that Go's cache of results would miss a change of the CRD.
	if _, err := os.ReadFile(filepath.Join(harness.Root(), "config", "crd", "bases", "gating.toolkit.fluxcd.io_gates.yaml")); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	if got := g.Status.ObservedGeneration; got != -1 {
		t.Errorf("a new gate has observed generation %d, want -1", got)
	}
	w.Reconcile(g)
	if g.Status.ObservedGeneration != 1 {
		t.Errorf("observed generation %d, want 1", g.Status.ObservedGeneration)
	}
	w.Edit(g, func() { g.Spec.Interval.Duration = time.Hour })
	w.Reconcile(g)
	if g.Status.ObservedGeneration != 2 {
		t.Errorf("observed generation %d, want 2", g.Status.ObservedGeneration)
	}
	for _, c := range g.Status.Conditions {
		if c.ObservedGeneration != 2 && c.Type == meta.ReadyCondition {
			t.Errorf("%s of generation %d", c.Type, c.ObservedGeneration)
		}
	}
	held := w.Reload(app) // the hold has changed the generation
	if c := conditions.Get(held, v1alpha1.ApprovedCondition); held.GetGeneration() != 2 || c == nil || c.ObservedGeneration != 2 {
		t.Errorf("generation %d, condition %+v", held.GetGeneration(), c)
	}
	w.Annotate(g, meta.ReconcileRequestAnnotation, "now, please")
	w.Reconcile(g)
	if got := g.Status.LastHandledReconcileAt; got != "now, please" {
		t.Errorf("last handled %q", got)
	}
}

func TestSuspendedGateChangesNothing(t *testing.T) {
	w := newWorld(t)
	held, late := w.NewKustomization("held", nil), w.NewKustomization("late", nil)
	g := w.ClosedGate("production", named("held"))
	w.Reconcile(g)
	w.Edit(g, func() {
		g.Spec.Suspend = true
		g.Spec.Targets = []v1alpha1.TargetReference{named("late")}
	})
	w.Open(g, start)
	w.Read(g)
	want := g.Status.DeepCopy()
	want.ObservedGeneration = g.Generation
	w.Writes.Take("")
	if result := w.Reconcile(g); result.RequeueAfter != 0 {
		t.Errorf("requeue after %s", result.RequeueAfter)
	}
	if writes := w.Writes.Take(""); len(writes) != 1 {
		t.Errorf("writes %q, want the status once", writes)
	}
	if w.Read(g); !equality.Semantic.DeepEqual(&g.Status, want) {
		t.Errorf("status is %+v, want %+v", g.Status, *want)
	}
	w.Reconcile(g)
	if writes := w.Writes.Take(""); len(writes) > 0 {
		t.Errorf("writes %q although the generation was observed", writes)
	}
	w.ExpectHeld(held, g)
	w.ExpectUntouched(late)
	w.Edit(g, func() { g.Spec.Suspend = false })
	w.Reconcile(g)
	w.ExpectReleased(held, g)

	// A Kustomization with wait: true waits for a Gate by its kstatus, even if the Gate was created suspended.
	created := w.Gate("created", v1alpha1.GateSpec{Default: "closed", Suspend: true, Targets: []v1alpha1.TargetReference{named("held")}})
	w.Reconcile(created)
	w.Read(created)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(created)
	w.Must(err)
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	w.Must(err)
	if reason := conditions.GetReason(created, meta.ReadyCondition); result.Status != status.CurrentStatus || reason != meta.SuspendedReason || conditions.Has(created, v1alpha1.OpenedCondition) {
		t.Errorf("kstatus is %s: %s, the reason of Ready is %q", result.Status, result.Message, reason)
	}
	w.ExpectReleased(held, g)
	w.Edit(created, func() { created.Spec.Suspend = false })
	w.Reconcile(created)
	w.ExpectHeld(held, created)
}

// A transition takes at most two writes of each target.
func TestNothingIsWrittenWhenNothingChanges(t *testing.T) {
	for name, prepare := range map[string]func(*world) *v1alpha1.Gate{
		"closed with held targets": func(w *world) *v1alpha1.Gate {
			w.NewKustomization("a", nil)
			w.NewKustomization("b", nil)
			return w.ClosedGate("production", all())
		},
		"closed with a foreign target": func(w *world) *v1alpha1.Gate {
			w.Suspend(w.NewKustomization("a", nil))
			return w.ClosedGate("production", all())
		},
		"closed with a target that another gate holds, too": func(w *world) *v1alpha1.Gate {
			w.NewKustomization("a", nil)
			w.Reconcile(w.ClosedGate("other", all()))
			return w.ClosedGate("production", all())
		},
		"opened while another gate holds": func(w *world) *v1alpha1.Gate {
			w.NewKustomization("a", nil)
			w.Reconcile(w.ClosedGate("other", all()))
			return w.Gate("production", v1alpha1.GateSpec{Default: "opened", Targets: []v1alpha1.TargetReference{all()}})
		},
		"opened by request": func(w *world) *v1alpha1.Gate {
			w.NewKustomization("a", nil)
			g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Window: duration(hours(2)), Targets: []v1alpha1.TargetReference{all()}})
			w.Reconcile(g)
			w.Open(g, start)
			return g
		},
		"released": func(w *world) *v1alpha1.Gate {
			w.NewKustomization("a", nil)
			g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Targets: []v1alpha1.TargetReference{all()}})
			w.Reconcile(g)
			w.Edit(g, func() { g.Spec.Targets = nil })
			return g
		},
		"resumed with mode Lenient": func(w *world) *v1alpha1.Gate {
			app := w.NewKustomization("a", nil)
			g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{all()}})
			w.Reconcile(g)
			w.Resume(app)
			return g
		},
		"stalled": func(w *world) *v1alpha1.Gate {
			w.NewKustomization("a", nil)
			g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: "closed", Targets: []v1alpha1.TargetReference{all()}}}
			broken(g)
			return w.Gate("production", g.Spec)
		},
		"with failures": func(w *world) *v1alpha1.Gate {
			ref := v1alpha1.TargetReference{Kind: "Deployment", Name: "a"}
			return w.ClosedGate("production", ref, ref)
		},
		"waiting for a dependency": func(w *world) *v1alpha1.Gate {
			w.NewKustomization("apps", nil)
			g := w.watchingGate(staging())
			w.Reconcile(g)
			return g
		},
		"with a refused request": func(w *world) *v1alpha1.Gate {
			g := w.ClosedGate("production")
			w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, "yesterday")
			return g
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := prepare(w)
			w.Writes.Take("")
			w.Reconcile(g)
			writes := map[string]int{}
			for _, write := range w.Writes.Take("") {
				_, object, _ := strings.Cut(write, " ")
				writes[object]++
			}
			for object, n := range writes {
				if n > 2 && strings.HasPrefix(object, "Kustomization/") || n > 5 {
					t.Errorf("%d writes of %s", n, object)
				}
			}
			w.Events.Take("")
			for i := range 2 {
				w.In(time.Duration(i) * time.Minute)
				w.Reconcile(g)
			}
			if writes := w.Writes.Take(""); len(writes) > 0 {
				t.Errorf("writes %q", writes)
			}
			if events := w.Events.Take(""); len(events) > 0 {
				t.Errorf("events %q", events)
			}
		})
	}
}
