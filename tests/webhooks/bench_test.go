package webhooks

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/receivers"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// benchSenders is the number of concurrent senders. Each has its own receiver.
	benchSenders = 8
	// benchRequests is the number of requests per measurement.
	benchRequests = 100
	// benchTurns is the number of pairs of measurements, one with webhooks and one without them. They are short, and the median of their
	// ratios counts, so that other load on the machine affects both. Together they stay below the burst limit of a receiver.
	benchTurns = 5
)

// BenchmarkWebhook measures how many webhooks per second become requests on Gates. The baseline is a client that reads and patches the
// same Gates directly, measured alternately: of-plain is 1 if webhooks cost nothing. Webhooks also read a Secret.
func BenchmarkWebhook(b *testing.B) {
	for _, kind := range []string{v1alpha1.GenericReceiver, v1alpha1.GenericHMACReceiver} {
		for _, gates := range []int{benchSenders, 1} {
			b.Run(fmt.Sprintf("type=%s/gates=%d", kind, gates), func(b *testing.B) {
				for range b.N {
					l := newBenchLoad(b, kind, gates)
					l.turn(b, l.post)
					var posted, plain, postTimes, plainTimes []time.Duration
					var ratios []float64
					for range benchTurns {
						without, times := l.turn(b, l.annotate)
						plain, plainTimes = append(plain, without), append(plainTimes, times...)
						with, times := l.turn(b, l.post)
						posted, postTimes = append(posted, with), append(postTimes, times...)
						ratios = append(ratios, without.Seconds()/with.Seconds())
					}
					slices.Sort(ratios)
					b.ReportMetric(perSecond(posted), "req/s")
					b.ReportMetric(perSecond(plain), "plain/s")
					b.ReportMetric(ratios[len(ratios)/2], "of-plain")
					b.ReportMetric(p99(postTimes), "p99-ms")
					b.ReportMetric(p99(plainTimes), "plain-p99-ms")
					b.ReportMetric(0, "ns/op")
				}
			})
		}
	}
}

func perSecond(turns []time.Duration) float64 {
	var total time.Duration
	for _, turn := range turns {
		total += turn
	}
	return float64(len(turns)*benchRequests) / total.Seconds()
}

func p99(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[(len(times)-1)*99/100].Microseconds()) / 1000
}

// benchLoad is a server with a receiver for each sender.
type benchLoad struct {
	*harness.World
	kind, url string
	paths     []string
	gates     []string
	http      *http.Client
	sent      atomic.Int64
}

func newBenchLoad(b *testing.B, kind string, gates int) *benchLoad {
	b.Helper()
	l := &benchLoad{
		World: harness.NewWorld(b, cluster), kind: kind,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchSenders}},
	}
	l.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token"}, StringData: map[string]string{v1alpha1.ReceiverTokenKey: token}})
	table := receivers.NewTable(l.Client)
	for i := range gates {
		l.ClosedGate(fmt.Sprintf("gate-%d", i))
	}
	for i := range benchSenders {
		gate := fmt.Sprintf("gate-%d", i%gates)
		obj := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: fmt.Sprintf("sender-%d", i)}, Spec: v1alpha1.GateReceiverSpec{
			Type: kind, SecretRef: &meta.LocalObjectReference{Name: "token"}, GateRefs: []v1alpha1.GateReference{{Name: gate}}, Action: actionOf(kind),
		}}
		path, err := table.Load(b.Context(), obj)
		l.Must(err)
		l.paths, l.gates = append(l.paths, path), append(l.gates, gate)
	}
	handler := receivers.NewHandler(table, receivers.NewGates(l.Client), clock.RealClock{}, logr.Discard(), receivers.MustMakeMetrics(prometheus.NewRegistry()))
	listener, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	l.Must(err)
	l.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- receivers.Serve(ctx, listener, handler) }()
	b.Cleanup(func() {
		cancel()
		l.Must(<-stopped)
	})
	return l
}

// turn makes all senders send, and returns how long that took in total, and for each request.
func (l *benchLoad) turn(b *testing.B, send func(ctx context.Context, sender int) error) (time.Duration, []time.Duration) {
	b.Helper()
	times := make([]time.Duration, benchRequests)
	var running sync.WaitGroup
	var next atomic.Int64
	began := time.Now()
	for sender := range benchSenders {
		running.Go(func() {
			for i := next.Add(1) - 1; i < benchRequests; i = next.Add(1) - 1 {
				start := time.Now()
				if err := send(b.Context(), sender); err != nil {
					b.Error(err)
					return
				}
				times[i] = time.Since(start)
			}
		})
	}
	running.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return time.Since(began), times
}

func (l *benchLoad) post(ctx context.Context, sender int) error {
	body := fmt.Sprintf(`{"reason":"request %d"}`, l.sent.Add(1))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+l.paths[sender], strings.NewReader(body))
	if err != nil {
		return err
	}
	if l.kind == v1alpha1.GenericHMACReceiver {
		mac := hmac.New(sha256.New, []byte(token))
		mac.Write([]byte(body))
		req.Header.Set("X-Signature", fmt.Sprintf("sha256=%x", mac.Sum(nil)))
	}
	response, err := l.http.Do(req)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", response.StatusCode, text)
	}
	return err
}

// annotate writes as much as a webhook does, but no request: a second webhook would wait until the controller handles the first one, and
// no controller runs.
func (l *benchLoad) annotate(ctx context.Context, sender int) error {
	obj := &v1alpha1.Gate{}
	if err := l.Client.Get(ctx, l.Key(l.gates[sender]), obj); err != nil {
		return err
	}
	before := obj.DeepCopy()
	metav1.SetMetaDataAnnotation(&obj.ObjectMeta, "example.com/requestedAt", time.Now().UTC().Format(time.RFC3339Nano))
	metav1.SetMetaDataAnnotation(&obj.ObjectMeta, "example.com/reason", fmt.Sprintf("request %d", l.sent.Add(1)))
	return l.Client.Patch(ctx, obj, client.MergeFrom(before))
}
