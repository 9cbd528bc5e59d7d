package webhooks

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

func TestWebhookBecomesRequest(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("smoke", v1alpha1.GenericHMACReceiver, func(s *v1alpha1.GateReceiverSpec) {
		s.Window = &v1alpha1.Duration{Duration: 30 * time.Minute}
	})
	const body = `{"reason":"smoke tests passed"}`
	if got := w.post(path, body, "X-Signature", sign(body)); got.code != http.StatusOK || got.body != "open requested\n" {
		t.Fatalf("got %+v", got)
	}
	at, by, reason := w.request("production", v1alpha1.RequestOpen)
	if want := w.clock.Now().UTC().Format(time.RFC3339) + "/30m0s"; at != want {
		t.Errorf("requested at %q, want %q", at, want)
	}
	if want := "GateReceiver " + w.Namespace + "/smoke"; by != want || reason != "smoke tests passed" {
		t.Errorf("requested by %q because %q", by, reason)
	}
	if at, _, _ := w.request("production", v1alpha1.RequestClose); at != "" {
		t.Errorf("a close is requested at %q", at)
	}
}

// The response and the Gate agree: the request is accepted, and waits.
func TestResponseReportsRequiredApprovals(t *testing.T) {
	w := newWorld(t, cluster.Client)
	obj := w.ClosedGate("production")
	w.Edit(obj, func() {
		obj.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 2}}
	})
	got := w.post(w.receiver("smoke", v1alpha1.GenericHMACReceiver), "{}", "X-Signature", sign("{}"))
	approve := "kubectl gate approve gate/production -n " + w.Namespace
	if want := "open requested\ngate '" + w.Namespace + "/production': the request waits for 2 approvals by others: " + approve + "\n"; got.code != http.StatusOK || got.body != want {
		t.Errorf("got %d %q, want %q", got.code, got.body, want)
	}
	obj = w.ReadGate("production")
	handled := gate.ApplyRequests(obj, ledger.Stamped, w.clock.Now())
	if message := ledger.WaitingForApproval(obj, w.clock.Now()); len(handled) != 1 || handled[0].Waits != 2 || !strings.HasSuffix(message, " waits for 2 more approvals: approve it with "+approve) {
		t.Errorf("%+v, the message of the gate is %q", handled, message)
	}
}
