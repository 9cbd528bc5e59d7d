package shards

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

var kustomizations = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}

// app creates a Kustomization whose source does not exist, so that only the gating-controller writes it.
func (w *world) app(name string, annotations ...string) *unstructured.Unstructured {
	w.Helper()
	obj := w.Kustomization(name)
	for i := 0; i < len(annotations); i += 2 {
		obj.SetAnnotations(map[string]string{annotations[i]: annotations[i+1]})
	}
	w.Create(obj)
	return obj
}

// gate creates a Gate of a shard that is reconciled each second.
func (w *world) gate(s *shard, name string, state v1alpha1.State, targets ...string) *v1alpha1.Gate {
	w.Helper()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: s.labels()}}
	g.Spec.Default, g.Spec.Interval.Duration = state, 10e9
	for _, target := range targets {
		g.Spec.Targets = append(g.Spec.Targets, v1alpha1.TargetReference{Kind: kustomizations.Kind, Name: target})
	}
	w.Create(g)
	return g
}

func (s *shard) labels() map[string]string {
	if s.label == "" {
		return nil
	}
	return map[string]string{key: s.label}
}

// open and close change the default of a Gate.
func (w *world) open(g *v1alpha1.Gate)  { w.set(g, v1alpha1.StateOpened) }
func (w *world) close(g *v1alpha1.Gate) { w.set(g, v1alpha1.StateClosed) }

func (w *world) set(g *v1alpha1.Gate, state v1alpha1.State) {
	w.Helper()
	w.EditGate(g, func(g *v1alpha1.Gate) { g.Spec.Default = state })
}

func (w *world) mode(g *v1alpha1.Gate, mode v1alpha1.Mode) {
	w.Helper()
	w.EditGate(g, func(g *v1alpha1.Gate) { g.Spec.Mode = mode })
}

// move assigns a Gate to a shard.
func (w *world) move(g *v1alpha1.Gate, to *shard) {
	w.Helper()
	w.EditGate(g, func(g *v1alpha1.Gate) { g.Labels = to.labels() })
}

// ready waits until Gates have the desired state, and all their targets are settled.
func (w *world) ready(gates ...*v1alpha1.Gate) {
	w.Helper()
	for _, g := range gates {
		w.Eventually("gate "+g.Name+" is ready", func() error {
			if err := w.TryRead(g); err != nil {
				return err
			}
			state := v1alpha1.StateClosed
			if conditions.IsTrue(g, v1alpha1.OpenedCondition) {
				state = v1alpha1.StateOpened
			}
			if g.Status.ObservedGeneration != g.Generation || !conditions.IsTrue(g, meta.ReadyCondition) || g.LatestRequest() == nil && state != g.Spec.Default {
				return fmt.Errorf("the gate is %s: %+v", state, g.Status)
			}
			return nil
		})
	}
}

// has waits until the leader of a shard reports metrics of a Gate, and the other shard does not.
func (w *world) has(s *shard, g *v1alpha1.Gate) {
	w.Helper()
	name := fmt.Sprintf("gating_gate_opened{name=%q,namespace=%q}", g.Name, g.Namespace)
	w.Eventually(fmt.Sprintf("only shard %q has gate %s", s.label, g.Name), func() error {
		for _, other := range []*shard{rest, one} {
			series, err := w.leads(other).series(w.Context())
			if err != nil {
				return err
			}
			if _, reported := series[name]; reported != (other == s) {
				return fmt.Errorf("shard %q reports it: %t", other.label, reported)
			}
		}
		return nil
	})
}

// version has the relevant fields of a version of a Kustomization.
type version struct {
	suspended bool
	heldBy    string
}

func versionOf(u *unstructured.Unstructured) version {
	suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend")
	return version{suspended, u.GetAnnotations()[v1alpha1.HeldByAnnotation]}
}

// is waits until a Kustomization is held by Gates, or released if there are none.
func (w *world) is(app *unstructured.Unstructured, gates ...*v1alpha1.Gate) {
	w.Helper()
	want := version{suspended: len(gates) > 0}
	for i, g := range gates {
		if i > 0 {
			want.heldBy += ","
		}
		want.heldBy += g.Namespace + "/" + g.Name
	}
	w.Eventually(fmt.Sprintf("%s is held by %q", app.GetName(), want.heldBy), func() error {
		if err := w.TryRead(app); err != nil {
			return err
		}
		if got := versionOf(app); got != want {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
}

// resume acts like flux resume.
func (w *world) resume(app *unstructured.Unstructured) {
	w.Helper()
	w.Must(w.Client.Patch(w.Context(), app, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":null}}`)), client.FieldOwner("flux")))
}

// records are the histories of all kinds that shards write in a namespace.
type records map[string]*harness.History

func (w *world) recordAll() records {
	w.Helper()
	all := records{"targets": w.Record(kustomizations), "gates": w.Record(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))}
	if lockInstalled {
		all["locks"] = w.Record(lockv1alpha1.GroupVersion.WithKind(lockv1alpha1.GateLockKind))
	}
	return all
}

// written returns an error with the last version of an object that was written, nil if none was.
func (r records) written() error {
	for kind, h := range r {
		if all := h.All(); len(all) > 0 {
			return fmt.Errorf("%d versions of %s, the last one %v", len(all), kind, all[len(all)-1].Object)
		}
	}
	return nil
}

// settled checks that there are no writes once all targets are settled, although all Gates are reconciled several times meanwhile.
func (w *world) settled() {
	w.Helper()
	w.Eventually("all writes are done", func() error {
		written := w.recordAll()
		return harness.Throughout(w.Context(), patience/3, "nothing is written", written.written)
	})
	if err := harness.Throughout(w.Context(), patience, "nothing is written", w.recordAll().written); err != nil {
		w.Error(err)
	}
}
