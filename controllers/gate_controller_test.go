package controllers

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestSmoke(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g := w.gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}}})
	w.reconcile(g)
	if !w.suspended(app) {
		t.Fatal("not held")
	}
	t.Log(app.Object)
	t.Logf("%+v", g.Status)
	g.Annotations = map[string]string{v1alpha1.OpenRequestedAtAnnotation: start.Format(time.RFC3339)}
	w.must(w.Update(w.ctx, g))
	r := w.reconcile(g)
	if w.suspended(app) {
		t.Fatal("held")
	}
	t.Log(app.Object)
	t.Logf("%+v %v", g.Status, r)
	_ = meta.IsStatusConditionTrue
	for len(w.events.Events) > 0 {
		t.Log(<-w.events.Events)
	}
}
