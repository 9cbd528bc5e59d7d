package certificates

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The certificates of these tests are due soon after they are issued, and are released between 30 and 90 seconds before they expire.
const (
	heldLifetime = 3 * time.Minute
	heldDue      = 30 * time.Second
)

// deadline is the latest time at which a held certificate is renewed without strict.
func (c certificate) deadline() time.Time {
	return c.notAfter.Add(-c.notAfter.Sub(c.notBefore) / 6).Truncate(time.Minute)
}

// gate creates a Gate for all Certificates of the namespace.
func (w *world) gate(spec v1alpha1.GateSpec, labels map[string]string) *v1alpha1.Gate {
	w.Helper()
	spec.Targets = []v1alpha1.TargetReference{{Kind: "Certificate", Name: "app"}}
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "nights", Labels: labels}, Spec: spec}
	w.Create(g)
	return g
}

func (w *world) closedGate() *v1alpha1.Gate {
	w.Helper()
	return w.gate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed}, nil)
}

func (w *world) open(g *v1alpha1.Gate) {
	w.Helper()
	w.EditGate(g, func(g *v1alpha1.Gate) {
		g.Annotations = map[string]string{v1alpha1.OpenRequestedAtAnnotation: time.Now().Format(time.RFC3339Nano)}
	})
}

// condition returns the status and the reason of a condition of the Certificate.
func (w *world) condition(name string) string {
	w.Helper()
	obj := harness.Object("cert-manager.io/v1", "Certificate", w.Key("app"))
	w.Read(obj)
	status, reason := harness.Condition(obj, name)
	return string(status) + " " + reason
}

// held waits until cert-manager plans the renewal of a certificate at the time that the hold sets: at the deadline, or never.
func (w *world) held(c certificate, at time.Time) {
	w.Helper()
	w.eventually("the renewal is held", func(got certificate) error {
		if got.revision != c.revision || !got.renewal.Equal(at) || got.ready != "Ready" {
			return fmt.Errorf("got %+v, want the renewal at %s", got, at)
		}
		if reported := w.condition(v1alpha1.ApprovedCondition); reported != "False GateClosed" {
			return errors.New(reported)
		}
		return nil
	})
}

// kept expects that a certificate is not renewed before a time.
func (w *world) kept(c certificate, until time.Time) {
	w.Helper()
	w.Throughout(time.Until(until), "the certificate is not renewed", func() error {
		if got := w.read(); got.revision != c.revision {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
}

// deferred creates a closed Gate and a Certificate whose renewal is held, but not its first issue.
func (w *world) deferred() (*v1alpha1.Gate, certificate) {
	w.Helper()
	g := w.closedGate()
	w.create(heldLifetime, heldDue, nil)
	first := w.issued()
	w.held(first, first.deadline())
	return g, first
}

func TestRenewalWaitsForWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	from := metav1.NewTime(time.Now().Add(heldDue + 25*time.Second).Truncate(time.Second))
	until := metav1.NewTime(from.Add(time.Hour))
	w.gate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{{Name: "soon", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}}}, nil)
	w.create(heldLifetime, heldDue, nil) // the first issue is not held
	first := w.issued()
	w.held(first, first.deadline())
	if reported := w.condition(v1alpha1.RenewalDeferredCondition); reported != "True OutsideAllowedWindow" {
		t.Errorf("RenewalDeferred is %s", reported)
	}
	w.kept(first, from.Time)
	second := w.renewed(first)
	if second.notBefore.Before(from.Time) || second.notBefore.After(first.deadline()) {
		t.Errorf("renewed at %s, the window opened at %s", second.notBefore, from)
	}
	w.eventually("all traces of the hold are removed", func(got certificate) error {
		if reported := w.condition(v1alpha1.RenewalDeferredCondition); reported != " " || !got.renewal.Equal(got.notBefore.Add(heldDue)) {
			return fmt.Errorf("RenewalDeferred is %s: %+v", reported, got)
		}
		return nil
	})
}

func TestManualOpenRenewsImmediately(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, first := w.deferred()
	w.kept(first, first.notBefore.Add(heldDue+patience))
	opened := time.Now().Add(-time.Second)
	w.open(g)
	if second := w.renewed(first); second.notBefore.Before(opened) {
		t.Errorf("renewed at %s, opened at %s", second.notBefore, opened)
	}
}

// cert-manager renews it without the controller: the only gating-controller for this Gate has been killed.
func TestCertificateIsRenewedBeforeExpiryWhileControllerIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed}, map[string]string{shard: w.Namespace})
	alone, err := cluster.StartGatingController(w.Context(), "--watch-label-selector="+shard+"="+w.Namespace)
	w.Must(err)
	w.create(heldLifetime, heldDue, nil)
	first := w.issued()
	w.held(first, first.deadline())
	w.Must(alone.Kill())
	w.kept(first, first.deadline())
	second := w.renewed(first)
	if second.notBefore.After(first.notAfter) {
		t.Errorf("renewed at %s, expired at %s", second.notBefore, first.notAfter)
	}
	// The window continues, so that cert-manager plans renewals by its own rule again.
	w.eventually("the renewed certificate is ready", func(got certificate) error {
		if got.ready != "Ready" || !got.renewal.Equal(got.notBefore.Add(heldDue)) {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
	alone, err = cluster.StartGatingController(w.Context(), "--watch-label-selector="+shard+"="+w.Namespace)
	w.Must(err)
	defer func() { w.Must(alone.Stop()) }()
	w.eventually("the renewal is held again", func(got certificate) error {
		if !got.renewal.Equal(got.deadline()) || got.ready != "Ready" {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
}

// cert-manager ignores windows if the issuer recommends a time for the renewal. So the renewal is disabled, and only the controller can
// release it.
func TestControllerRenewsCertificateBeforeExpiry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, first := w.deferred()
	obj := harness.Object("cert-manager.io/v1", "Certificate", w.Key("app"))
	w.Must(cluster.Client.Status().Patch(w.Context(), obj, client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"acme":{"ari":{"suggestedWindow":{"start":"2020-01-01T00:00:00Z","end":"2020-01-02T00:00:00Z"}}}}}`))))
	w.held(first, time.Time{})
	w.kept(first, first.deadline())
	w.eventually("the bypass is reported, or over", func(got certificate) error {
		if reported := w.condition(v1alpha1.RenewalWindowBypassedCondition); reported != "True ExpiryImminent" && got.revision == first.revision {
			return errors.New(reported)
		}
		return nil
	})
	second := w.renewed(first)
	if second.notBefore.After(first.notAfter) {
		t.Errorf("renewed at %s, expired at %s", second.notBefore, first.notAfter)
	}
	w.held(second, time.Time{})
}

func TestStrictGateHoldsEvenIfCertificateExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.gate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Certificates: &v1alpha1.CertificatePolicy{Strict: true}}, nil)
	w.create(lifetime, heldDue, nil)
	first := w.issued()
	w.held(first, time.Time{})
	if reported := w.condition(v1alpha1.RenewalDisabledCondition); reported != "True UserConfigured" {
		t.Errorf("RenewalDisabled is %s", reported)
	}
	w.kept(first, first.notAfter.Add(patience))
	w.open(g)
	w.renewed(first)
}

func TestManualRenewalWorksWhileHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, first := w.deferred()
	w.Must(cluster.RenewCertificate(w.Context(), w.Key("app")))
	w.renewed(first)
	// cert-manager may issue twice within a second if it has not observed the first issue yet.
	var last certificate
	w.eventually("the renewal is held", func(got certificate) error {
		if last = got; !got.renewal.Equal(got.deadline()) || got.ready != "Ready" {
			return fmt.Errorf("got %+v", got)
		}
		if reported := w.condition(v1alpha1.ApprovedCondition); reported != "False GateClosed" {
			return errors.New(reported)
		}
		return nil
	})
	w.kept(last, last.notBefore.Add(heldDue+patience))
}

// The docs list what cannot be held. The hold must be restored afterwards.
func TestSpecChangeIsIssuedWhileHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, first := w.deferred()
	time.Sleep(time.Until(first.notBefore.Add(time.Second))) // certificates are distinguished by the second in which they begin
	w.Must(w.patch(`{"spec":{"dnsNames":["new.example.com"]}}`))
	second := w.renewed(first)
	w.held(second, second.deadline())
}

func TestInvalidGateChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, first := w.deferred()
	never, hour := "0 0 31 4-6/2 *", &v1alpha1.Duration{Duration: time.Hour}
	w.EditGate(g, func(g *v1alpha1.Gate) {
		g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "never", Schedule: &never, Duration: hour}}}
	})
	w.eventually("the Certificate reports the invalid spec", func(certificate) error {
		if reported := w.condition(v1alpha1.RenewalConfigInvalidCondition); reported != "True InvalidSpec" {
			return errors.New(reported)
		}
		return nil
	})
	w.held(first, first.deadline())
	w.kept(first, first.notBefore.Add(heldDue+patience))
}

// The windows of another user stay in effect, not those of the Gate.
func TestWindowsOfOthersAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.closedGate()
	w.create(heldLifetime, heldDue, window(time.Now().AddDate(0, 6, 0)))
	first := w.issued()
	w.renewed(first)
	obj := harness.Object("cert-manager.io/v1", "Certificate", w.Key("app"))
	w.Read(obj)
	if windows, _, _ := unstructured.NestedSlice(obj.Object, "spec", "renewal", "windows"); len(windows) != 1 || obj.GetAnnotations()[v1alpha1.HeldByAnnotation] != "" {
		t.Errorf("got %v, %v", obj.Object["spec"], obj.GetAnnotations())
	}
}

// The real webhook must accept every form of a hold.
func TestCertManagerWebhookAcceptsControllerWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, validated)
	g := w.closedGate()
	w.create(3*time.Hour, time.Hour, nil)
	first := w.issued()
	w.held(first, first.deadline())
	w.EditGate(g, func(g *v1alpha1.Gate) { g.Spec.Certificates = &v1alpha1.CertificatePolicy{Strict: true} })
	w.held(first, time.Time{})
	w.EditGate(g, func(g *v1alpha1.Gate) { g.Spec.Certificates = nil })
	w.held(first, first.deadline())
	w.open(g)
	w.eventually("the renewal is planned as before", func(got certificate) error {
		if !got.renewal.Equal(first.notBefore.Add(time.Hour)) || got.revision != 1 {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
}
