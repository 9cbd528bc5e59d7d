package webhooks

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/receivers"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// token of the receivers of a world. All types take it, also standard-webhooks.
const token = "whsec_czNjcjN0LTAxMjM0NTY3ODlhYmNkZWZn"

// world is a namespace with Gates and receivers, and a server of its own for them.
type world struct {
	*harness.World
	clock   *clocktesting.FakeClock
	table   *receivers.Table
	gates   *receivers.Gates
	url     string
	log     *recordedLog
	metrics *prometheus.Registry
}

// recordedLog has all that was logged.
type recordedLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *recordedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// logger returns one that logs all there is to log.
func (l *recordedLog) logger() logr.Logger {
	return funcr.NewJSON(func(line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{Verbosity: 9})
}

// newWorld starts a server on loopback. The client is what it reads and writes with.
func newWorld(t *testing.T, c client.Client) *world {
	t.Helper()
	return (&world{
		World: harness.NewWorld(t, cluster), log: &recordedLog{}, clock: clocktesting.NewFakeClock(time.Now().UTC().Truncate(time.Second)),
	}).replica(c)
}

// replica starts another server for the same Gates. Each has a table of its own.
func (w *world) replica(c client.Client) *world {
	w.Helper()
	other := *w
	w = &other
	w.table, w.gates, w.metrics = receivers.NewTable(c), receivers.NewGates(c), prometheus.NewRegistry()
	handler := receivers.NewHandler(w.table, w.gates, w.clock, w.log.logger(), receivers.MustMakeMetrics(w.metrics))
	listener, err := new(net.ListenConfig).Listen(w.Context(), "tcp", "127.0.0.1:0")
	w.Must(err)
	w.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- receivers.Serve(ctx, listener, handler) }()
	w.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			w.Error(err)
		}
	})
	return w
}

// actionOf returns open, or close for type generic, which cannot open.
func actionOf(kind string) v1alpha1.RequestAction {
	if kind == v1alpha1.GenericReceiver {
		return v1alpha1.RequestClose
	}
	return v1alpha1.RequestOpen
}

// receiver creates a receiver with a Secret of its own, has it loaded, and returns the
// path of its webhook.
func (w *world) receiver(name, kind string, change ...func(*v1alpha1.GateReceiverSpec)) string {
	w.Helper()
	obj := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GateReceiverSpec{
		Type: kind, SecretRef: &meta.LocalObjectReference{Name: name},
		GateRefs: []v1alpha1.GateReference{{Name: "production"}}, Action: actionOf(kind),
	}}
	for _, c := range change {
		c(&obj.Spec)
	}
	if obj.Spec.SecretRef != nil {
		w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": token}})
	}
	w.Create(obj)
	return w.load(name)
}

// load has a receiver loaded as its controller does.
func (w *world) load(name string) string {
	w.Helper()
	obj := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	w.Read(obj)
	path, err := w.table.Load(w.Context(), obj)
	w.Must(err)
	return path
}

// reply is what a sender got.
type reply struct {
	code   int
	body   string
	header http.Header
}

// post sends a webhook. Headers are pairs of name and value.
func (w *world) post(path, body string, headers ...string) reply {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
	w.Must(err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	return w.do(req)
}

func (w *world) do(req *http.Request) reply {
	w.Helper()
	response, err := http.DefaultClient.Do(req)
	w.Must(err)
	defer response.Body.Close() //nolint:errcheck // it was read
	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)
	w.Must(err)
	return reply{code: response.StatusCode, body: text.String(), header: response.Header}
}

// request returns the request that a Gate has, as action, time, by and reason.
func (w *world) request(name string, action v1alpha1.RequestAction) (at, by, reason string) {
	w.Helper()
	obj := w.ReadGate(name)
	prefix := fmt.Sprintf("%s.gate.fluxcd.io/", action)
	return obj.Annotations[prefix+"requestedAt"], obj.Annotations[prefix+"requestedBy"], obj.Annotations[prefix+"reason"]
}
