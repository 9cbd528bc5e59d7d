package controllers_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestStrictestGateDecides(t *testing.T) {
	w := newWorld(t)
	www := w.certificate("www", nil)
	lax := w.ClosedGate("lax", certificates)
	strict := w.Gate("strict", v1alpha1.GateSpec{
		Default: "closed", Targets: []v1alpha1.TargetReference{certificates}, Certificates: &v1alpha1.CertificatePolicy{Strict: true},
	})
	both := key(lax) + "," + key(strict)
	w.Reconcile(lax)
	w.Reconcile(strict)
	w.Reconcile(lax)
	w.expectRenewal(www, "never", both, isDisabled...)
	w.In(59 * day)
	w.Reconcile(lax)
	w.Reconcile(strict)
	w.expectRenewal(www, "never", both, isDisabled...)
	w.Open(strict, w.FakeClock.Now())
	w.Reconcile(strict)
	w.Reconcile(lax)
	w.expectRenewal(www, "", key(lax), isBypassed...)
	w.Open(lax, w.FakeClock.Now())
	w.Reconcile(lax)
	w.expectRenewal(www, "", "", isReleased...)
}

// Another Gate opens when a certificate is released at the margin.
func TestBypassEmitsOneEvent(t *testing.T) {
	w := newWorld(t)
	www := w.certificate("www", nil)
	a, b := w.ClosedGate("a", certificates), w.ClosedGate("b", certificates)
	w.Reconcile(a)
	w.Reconcile(b)
	w.In(59 * day)
	w.Reconcile(a)
	w.Reconcile(b)
	w.Open(a, w.FakeClock.Now())
	w.Reconcile(a)
	w.expectRenewal(www, "", key(b), isBypassed...)
	w.Reconcile(b)
	if got := w.counted("bypassed", "expiry_imminent"); got != 1 {
		t.Errorf("%v bypassed", got)
	}
}

// The cache has the Gates of one shard only.
func TestGatesOfOtherShardsCount(t *testing.T) {
	w := newWorld(t)
	strict := w.Gate("strict", v1alpha1.GateSpec{Default: "closed", Certificates: &v1alpha1.CertificatePolicy{Strict: true}})
	www := w.certificate("www", map[string]any{})
	www.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: target.FormatHeldBy([]string{key(strict), w.Namespace + "/gone"})})
	w.Client = emptyGates{interceptor.NewClient(cluster.Client, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
	})}
	gates, err := w.Reconcilers().Targets.Gates.For(w.Context(), www, start)
	if err != nil || len(gates) != 2 || !verdict.Terms(gates).Strict || gates[0].Effect == gates[1].Effect {
		t.Errorf("got %+v, %v", gates, err)
	}
}
