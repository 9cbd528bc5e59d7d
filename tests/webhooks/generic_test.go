package webhooks

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestAWebhookBecomesAnOrdinaryRequest(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("smoke", v1alpha1.GenericReceiver, func(s *v1alpha1.GateReceiverSpec) {
		s.Window = &metav1.Duration{Duration: 30 * time.Minute}
	})
	if got := w.post(path, `{"reason":"smoke tests passed"}`); got.code != http.StatusOK || got.body != "open requested\n" {
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
