package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// The conditions of a Certificate that a closed Gate holds, that is released before it expires, and that an open Gate releases.
var (
	isDeferred = []string{"Approved=False GateClosed", "RenewalDeferred=True OutsideAllowedWindow"}
	isDisabled = []string{"Approved=False GateClosed", "RenewalDisabled=True UserConfigured"}
	isBypassed = []string{"Approved=True ExpiryImminent", "RenewalWindowBypassed=True ExpiryImminent"}
	isReleased = []string{"Approved=True GateOpened"}
)

// atMargin is the minute of the year at which cert-manager renews.
const atMargin = "0 12 21 1 *"

func (w *world) nights(targets ...v1alpha1.TargetReference) *v1alpha1.Gate {
	w.Helper()
	return w.Gate("nights", v1alpha1.GateSpec{
		Default: "closed", TimeZone: "Europe/Oslo", Targets: targets, Interval: v1alpha1.Duration{Duration: 1000 * time.Hour},
		OpenPeriods: []v1alpha1.Period{{Name: "nights", DaysOfWeek: []v1alpha1.DayOfWeek{"Monday"}, Start: ptr.To("22:00"), End: ptr.To("05:00")}},
	})
}

func TestRenewalIsDeferredUntilGateOpens(t *testing.T) {
	w := newWorld(t)
	www := w.certificate("www", nil)
	before := w.Reload(www).Object["spec"]
	g := w.nights(certificates)
	w.Reconcile(g)
	w.expectRenewal(www, atMargin, key(g), isDeferred...)
	w.expectMessage(www, "RenewalDeferred", fmt.Sprintf("Gate '%s' is closed. Next allowed renewal window starts at 2026-11-23T22:00:00+01:00 (Europe/Oslo)."+
		" It is renewed at 2027-01-21T12:00:00Z at the latest. To renew it manually: cmctl renew -n %s www", key(g), w.Namespace))
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, Held: 1})

	w.Writes.Take("")
	w.Reconcile(g)
	if writes := w.Writes.Take("Certificate"); len(writes) > 0 {
		t.Errorf("nothing changed, but wrote %q", writes)
	}

	w.In(hours(9))
	w.Reconcile(g)
	w.expectRenewal(www, "", "", isReleased...)
	equal(t, w.Reload(www).Object["spec"], before)

	w.In(hours(16))
	w.Reconcile(g)
	w.expectRenewal(www, atMargin, key(g), isDeferred...)
	if got := w.counted("deferred", "outside_window"); got != 2 {
		t.Errorf("%v renewals deferred", got)
	}
}

func TestCertificateIsReleasedAtMarginAndHeldAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	www := w.certificate("www", nil)
	w.issue(www, start.Add(-30*day), expiry)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: "closed", Targets: []v1alpha1.TargetReference{certificates},
		Interval: v1alpha1.Duration{Duration: 10000 * time.Hour}, Mode: v1alpha1.ModeLenient,
	})
	if result := w.Reconcile(g); result.RequeueAfter != margin.Sub(start) {
		t.Errorf("looked at again after %s, want %s", result.RequeueAfter, margin.Sub(start))
	}
	w.expectRenewal(www, atMargin, key(g), isDeferred...)

	w.In(59 * day)
	w.Events.Take("")
	w.Reconcile(g)
	w.expectRenewal(www, "", key(g), isBypassed...)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, Exempt: 1})
	if got := w.Events.Take("Certificate"); len(got) != 1 || !strings.HasPrefix(got[0], "Warning Certificate/www RenewalWindowBypassed: Certificate expires at 2027-01-22T12:00:00Z. It is renewed although gate '") {
		t.Errorf("events %q", got)
	}
	w.report(www, nil, "Ready", "Issuing")
	w.Reconcile(g)
	w.expectRenewal(www, "", key(g), isBypassed...)

	w.issue(www, w.FakeClock.Now(), w.FakeClock.Now().Add(90*day))
	w.Reconcile(g)
	w.expectRenewal(www, "0 12 20 4 *", key(g), isDeferred...)
	if got := w.Events.Take("HeldAgain"); len(got) > 0 {
		t.Errorf("no user resumed it, but got %q", got)
	}
	if got := w.counted("bypassed", "expiry_imminent"); got != 1 {
		t.Errorf("%v renewals bypassed", got)
	}
}

func TestRenewalChangedByAnotherClient(t *testing.T) {
	w := newWorld(t)
	theirs := map[string]any{"renewal": map[string]any{"policy": "RenewBefore", "windows": []any{map[string]any{"cron": "0 3 * * *", "windowDuration": "1h"}}}}
	www := w.certificate("www", theirs)
	g := w.ClosedGate("production", certificates)
	for range 2 {
		w.Reconcile(g)
		w.expectRenewal(www, "0 3 * * *", "")
		equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, SuspendedByOthers: 1})
	}
	w.Open(g, start)
	w.Reconcile(g)
	w.expectRenewal(www, "0 3 * * *", "")

	// Another client takes over the renewal of one held certificate, and a controller removes the hold of the other one.
	api, web := w.certificate("api", nil), w.certificate("web", nil)
	w.In(time.Hour)
	w.Close(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.Must(cluster.Client.Patch(w.Context(), &api.Unstructured, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"renewal":{"policy":"RenewBefore","windows":[{"cron":"0 4 * * *","windowDuration":"1h"}]}}}`)), client.FieldOwner("kubectl-edit")))
	w.Reconcile(g)
	w.expectRenewal(api, "0 4 * * *", "", "Approved=True Resumed")
	w.Reload(web)
	unstructured.RemoveNestedField(web.Object, "spec", "renewal")
	w.Must(cluster.Client.Update(w.Context(), &web.Unstructured, client.FieldOwner("cert-manager-certificates-ingress-shim")))
	w.Events.Take("")
	w.Reconcile(g)
	w.expectRenewal(web, atMargin, key(g), isDeferred...)
	if got := w.Events.Take("HeldAgain"); len(got) != 1 {
		t.Errorf("events %q", got)
	}
	if len(web.GetLabels()) > 0 {
		t.Errorf("labels %v", web.GetLabels())
	}
}

func TestUngovernedCertificateIsCleanedUp(t *testing.T) {
	w := newWorld(t)
	held, needless := w.certificate("www", nil), w.certificate("needless", map[string]any{"renewBefore": "1h"})
	spec := w.Reload(held).Object["spec"]
	leaves := func(obj *target.Object, renewal string) {
		t.Helper()
		w.expectRenewal(obj, renewal, "", isReleased...)
	}
	g := w.ClosedGate("production", certificates)
	w.Reconcile(g)
	w.expectRenewal(held, atMargin, key(g), isDeferred...)
	if len(w.Reload(needless).GetConditions()) == 1 {
		t.Error("no condition was set")
	}
	w.Must(cluster.Client.Delete(w.Context(), g))
	w.Reconcile(g)
	leaves(held, "")
	leaves(needless, "1h")
	equal(t, held.Object["spec"], spec)

	w.In(59 * day)
	g = w.ClosedGate("later", certificates)
	w.Reconcile(g)
	w.expectRenewal(held, "", key(g), isBypassed...)
	w.Edit(g, func() { g.Spec.Targets = nil })
	w.Reconcile(g)
	leaves(held, "")
	equal(t, held.Object["spec"], spec)
}

func TestCrashAfterAnyWriteToCertificateIsRepaired(t *testing.T) {
	for name, tc := range map[string]struct {
		change     func(*world, *v1alpha1.Gate)
		held       string
		conditions []string
	}{
		"closing":    {func(w *world, g *v1alpha1.Gate) { w.Close(g, w.In(hours(2))) }, atMargin, isDeferred},
		"opening":    {func(w *world, g *v1alpha1.Gate) { w.Open(g, w.In(hours(2))) }, "", isReleased},
		"the margin": {func(w *world, _ *v1alpha1.Gate) { w.In(59 * day) }, "", isBypassed},
		"getting strict": {func(w *world, g *v1alpha1.Gate) {
			w.Edit(g, func() { g.Spec.Certificates = &v1alpha1.CertificatePolicy{Strict: true} })
		}, "never", isDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range enough {
				w := newWorld(t)
				www := w.certificate("www", nil)
				g := w.ClosedGate("production", certificates)
				if name == "closing" {
					w.Open(g, w.In(hours(1)))
				}
				w.Reconcile(g)
				tc.change(w, g)
				w.Writes.Before = crashing(n)
				_, err := w.Try(g)
				w.Writes.Reset()
				w.Reconcile(g)
				by := key(g)
				if name == "opening" {
					by = ""
				}
				w.expectRenewal(www, tc.held, by, tc.conditions...)
				if t.Failed() {
					t.Fatalf("after a crash at write %d: %v", n, err)
				}
				if err == nil {
					return // all writes were made
				}
			}
			t.Errorf("more than %d writes", enough)
		})
	}
}
