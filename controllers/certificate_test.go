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

func TestRenewalIsDeferredUntilGateOpensOrMargin(t *testing.T) {
	t.Parallel()
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
	expectNone(t, w.Writes.Take("Certificate"))

	w.In(hours(9))
	w.Reconcile(g)
	w.expectRenewal(www, "", "", isReleased...)
	equal(t, w.Reload(www).Object["spec"], before)

	w.In(hours(16))
	w.Reconcile(g)
	w.expectRenewal(www, atMargin, key(g), isDeferred...)
	equal(t, w.counted("deferred", "outside_window"), 2.0)

	// At the margin, the certificate is released for both Gates, with one event, even if one of them opens.
	other := w.Gate("frozen", v1alpha1.GateSpec{
		Default: "closed", Targets: []v1alpha1.TargetReference{certificates}, Interval: v1alpha1.Duration{Duration: 10000 * time.Hour}, Mode: v1alpha1.ModeLenient,
	})
	equal(t, w.Reconcile(other).RequeueAfter, margin.Sub(w.FakeClock.Now()))
	w.In(59 * day)
	w.Events.Take("")
	w.Reconcile(other)
	w.Reconcile(g)
	w.expectRenewal(www, "", key(other)+","+key(g), isBypassed...)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, Exempt: 1})
	w.Open(other, w.FakeClock.Now())
	w.Reconcile(other)
	w.Reconcile(g)
	w.expectRenewal(www, "", key(g), isBypassed...)
	if got := w.Events.Take("Certificate"); len(got) != 1 || !strings.HasPrefix(got[0], "Warning Certificate/www RenewalWindowBypassed: Certificate expires at 2027-01-22T12:00:00Z. It is renewed although gate") {
		t.Errorf("events %q", got)
	}
	equal(t, w.counted("bypassed", "expiry_imminent"), 1.0)
	w.report(www, nil, "Ready", "Issuing")
	w.Reconcile(g)
	w.expectRenewal(www, "", key(g), isBypassed...)

	w.issue(www, w.FakeClock.Now(), w.FakeClock.Now().Add(90*day))
	w.Reconcile(g)
	w.expectRenewal(www, "0 12 20 4 *", key(g), isDeferred...)
	expectNone(t, w.Events.Take("HeldAgain"))

	w.Must(cluster.Client.Delete(w.Context(), g))
	w.Reconcile(g)
	w.expectRenewal(www, "", "", isReleased...)
	equal(t, w.Reload(www).Object["spec"], before)
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
