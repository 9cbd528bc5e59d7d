package webhooks

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fluxcd/gating-controller/receivers"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// BenchmarkFlaggerCheck measures checks over loopback with a thousand Gates in the cache, compared with a server that only returns 200.
func BenchmarkFlaggerCheck(b *testing.B) {
	w := harness.NewWorld(b, cluster)
	for i := range 1000 {
		w.ClosedGate(fmt.Sprintf("gate-%d", i))
	}
	flagger := &receivers.Flagger{Gates: startCache(b, w.Namespace), Handler: receivers.NewHandler(receivers.NewTable(nil), nil,
		clocktesting.NewFakeClock(time.Now()), logr.Discard(), receivers.MustMakeMetrics(prometheus.NewRegistry()))}
	body := fmt.Sprintf(`{"name":"gate-500","namespace":%q,"phase":"Progressing","metadata":{"some":"message"}}`, w.Namespace)
	for _, server := range []struct {
		name    string
		handler http.Handler
		code    int
	}{
		{"nothing", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }), http.StatusOK},
		{"check", flagger, http.StatusForbidden},
	} {
		b.Run(server.name, func(b *testing.B) { measure(b, server.handler, body, server.code) })
	}
}

// measure sends requests one after the other and reports the 99th percentile of their duration.
func measure(b *testing.B, handler http.Handler, body string, code int) {
	b.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		response, err := server.Client().Post(server.URL+"/gate/check", "application/json", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		took = append(took, time.Since(began))
		if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != code {
			b.Fatal(response.Status, err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[(len(took)-1)*99/100].Microseconds()), "µs-p99")
}
