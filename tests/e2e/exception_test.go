package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const hotfix = `apiVersion: gating.toolkit.fluxcd.io/v1alpha1
kind: GateException
metadata:
  name: hotfix
  namespace: %s
spec:
  gateRef:
    name: production
  timeZone: UTC
  validFrom: %q
  validUntil: %q
  openPeriods:
  - name: all-day
    start: "00:00"
    end: "24:00"
`

// commitException commits an exception, which a Kustomization with wait: true applies.
func (w *world) commitException(from, until time.Time) {
	w.Helper()
	manifest := fmt.Sprintf(hotfix, w.Namespace, from.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339))
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("exceptions"), from.String(), map[string]string{"hotfix.yaml": manifest}))
}

// exception waits until the condition Active of the exception has a reason.
func (w *world) exception(reason string) *v1alpha1.GateException {
	w.Helper()
	e := &v1alpha1.GateException{}
	w.Eventually("the exception is "+reason, func() error {
		if err := w.Client.Get(w.Context(), w.Key("hotfix"), e); err != nil {
			return err
		}
		if active := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ActiveCondition); active == nil || active.Reason != reason {
			return fmt.Errorf("the conditions are %v", e.Status.Conditions)
		}
		return nil
	})
	return e
}

func TestHotfixDuringFreezeIsOneTemporaryCommit(t *testing.T) {
	w := newWorld(t)
	app := w.heldApp()
	w.publish("v2")
	w.stays("v1")

	from := time.Now().Add(15 * time.Second).Truncate(time.Second)
	w.commitException(from, from.Add(20*time.Second))
	commits := w.kustomization("exceptions", "ExternalArtifact", "exceptions")
	w.Must(w.Client.Patch(w.Context(), commits, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"wait":true,"timeout":"10s"}}`))))
	w.exception(v1alpha1.PendingReason)
	w.Eventually("Flux does not wait until the exception applies", func() error {
		if err := w.TryRead(commits); err != nil {
			return err
		}
		if status, reason := harness.Condition(commits, fluxmeta.ReadyCondition); status != metav1.ConditionTrue {
			return fmt.Errorf("ready is %s because of %s", status, reason)
		}
		return nil
	})
	w.arrives("v2")
	if now := time.Now(); now.Before(from) {
		t.Errorf("released at %s, before %s", now, from)
	}
	e := w.exception(v1alpha1.InForceReason)
	w.reconcileNow(commits)
	if e.Labels[v1alpha1.GateLabel] != "production" || len(e.Finalizers) != 1 {
		t.Errorf("Flux removed labels or finalizers: %v %v", e.Labels, e.Finalizers)
	}
	w.suspend(app, true)
	w.exception(v1alpha1.ExpiredReason)
	w.publish("v3")
	w.stays("v2")
	g := w.Opened("production", metav1.ConditionFalse)
	if len(g.Status.Exceptions) != 1 || g.Status.Exceptions[0].AppliedAt == nil || g.Status.Exceptions[0].ExpiredAt == nil {
		t.Errorf("the status of the gate has %+v", g.Status.Exceptions)
	}
}

func TestPrunedExceptionEnds(t *testing.T) {
	w := newWorld(t)
	app := w.heldApp()
	w.commitException(time.Now(), time.Now().Add(time.Hour))
	w.kustomization("exceptions", "ExternalArtifact", "exceptions")
	w.suspend(app, false)
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("exceptions"), "reverted", map[string]string{"other.yaml": strings.Replace(w.configMap("v1"), "name: app", "name: other", 1)}))
	w.suspend(app, true)
	w.Eventually("the exception is deleted", func() error {
		err := w.Client.Get(w.Context(), w.Key("hotfix"), &v1alpha1.GateException{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the exception still exists: %w", err)
	})
	g := w.Opened("production", metav1.ConditionFalse)
	if len(g.Status.Exceptions) != 1 || g.Status.Exceptions[0].Reason != v1alpha1.ExpiredReason || meta.IsStatusConditionTrue(g.Status.Conditions, fluxmeta.StalledCondition) {
		t.Errorf("the status of the gate has %+v", g.Status.Exceptions)
	}
}
