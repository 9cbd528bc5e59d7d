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

// token is the token of the receivers of a world. It is valid for all types, including standard-webhooks.
const token = "whsec_czNjcjN0LTAxMjM0NTY3ODlhYmNkZWZn"

// world is a namespace with Gates and receivers, and a server for them.
type world struct {
	*harness.World
	clock   *clocktesting.FakeClock
	table   *receivers.Table
	gates   *receivers.Gates
	url     string
	log     *recordedLog
	metrics *prometheus.Registry
}

// recordedLog records all log lines.
type recordedLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *recordedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// logger returns a logger that logs at all levels.
func (l *recordedLog) logger() logr.Logger {
	return funcr.NewJSON(func(line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{Verbosity: 9})
}

// newWorld starts a server on loopback. It reads and writes with the client c.
func newWorld(t *testing.T, c client.Client) *world {
	t.Helper()
	return (&world{
		World: harness.NewWorld(t, cluster), log: &recordedLog{}, clock: clocktesting.NewFakeClock(time.Now().UTC().Truncate(time.Second)),
	}).replica(c)
}

// replica starts another server for the same Gates. Each server has its own table of receivers.
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

// receiver creates a receiver with a new Secret, loads it, and returns the path of its webhook.
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

// load loads a receiver as its controller does.
func (w *world) load(name string) string {
	w.Helper()
	obj := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	w.Read(obj)
	path, err := w.table.Load(w.Context(), obj)
	w.Must(err)
	return path
}

// reply is the response to a sender.
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
	defer response.Body.Close() //nolint:errcheck // the body was read
	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)
	w.Must(err)
	return reply{code: response.StatusCode, body: text.String(), header: response.Header}
}

// request returns the request on a Gate for an action: its time, requester and reason.
func (w *world) request(name string, action v1alpha1.RequestAction) (at, by, reason string) {
	w.Helper()
	obj := w.ReadGate(name)
	prefix := fmt.Sprintf("%s.gate.fluxcd.io/", action)
	return obj.Annotations[prefix+"requestedAt"], obj.Annotations[prefix+"requestedBy"], obj.Annotations[prefix+"reason"]
}
