package webhooks

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// A webhook cannot open a Gate that a person has closed. The response and an event on the Gate report that.
func TestWebhookDoesNotOverrideManualClose(t *testing.T) {
	for name, handled := range map[string]bool{"the controller has handled the close": true, "the close is unhandled": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cluster.Client)
			events := record.NewFakeRecorder(10)
			w.gates.Events = events
			obj := w.ClosedGate("production")
			closedAt := w.clock.Now().UTC().Format(time.RFC3339)
			w.Edit(obj, func() {
				obj.Annotations = map[string]string{
					v1alpha1.CloseRequestedAtAnnotation: closedAt, v1alpha1.CloseRequestedByAnnotation: "alice", v1alpha1.CloseReasonAnnotation: "incident",
				}
			})
			handle := func() {
				gate.ApplyRequests(obj, ledger.Unstamped, w.clock.Now())
				w.Must(w.Client.Status().Update(t.Context(), obj))
			}
			if handled {
				handle()
			}
			w.clock.Step(time.Minute)
			opens := w.receiver("smoke", v1alpha1.GenericHMACReceiver)
			closes := w.receiver("alerts", v1alpha1.GenericReceiver)

			const body = `{"reason":"smoke tests passed"}`
			got := w.post(opens, body, "X-Signature", sign(body))
			want := "gate '" + w.Namespace + "/production' stays closed, a user has closed the gate, so a webhook cannot open it: close requested at " + closedAt + " by alice: incident\n"
			if got.code != http.StatusForbidden || got.body != want {
				t.Errorf("got %d %q, want %q", got.code, got.body, want)
			}
			if at, _, _ := w.request("production", v1alpha1.RequestOpen); at != "" {
				t.Errorf("an open is requested at %s", at)
			}
			if text := <-events.Events; !strings.HasPrefix(text, "Warning RequestRefused open requested by GateReceiver "+w.Namespace+"/smoke is refused, a user has closed the gate, so a webhook cannot open it: close requested") {
				t.Errorf("got event %q", text)
			}
			if !handled { // Flux may remove an unhandled close, which would be lost
				if got := w.post(closes, "{}"); got.code != http.StatusServiceUnavailable {
					t.Errorf("a close gets %+v", got)
				}
				handle()
			}
			if got := w.post(closes, "{}"); got.code != http.StatusOK {
				t.Errorf("a close gets %+v", got)
			}
		})
	}
}
