package calendarfeed

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	ics "github.com/arran4/golang-ical"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// testNow is a Tuesday morning.
var testNow = time.Date(2026, 11, 24, 9, 30, 0, 0, time.UTC)

// objects has the objects of a cluster, for any number of replicas.
type objects struct {
	client.Client
	// lists counts the lists that are read, and secrets the single objects. secretErr is the error of reading a single object, nil for none.
	mu             sync.Mutex
	lists, secrets int
	secretErr      error
}

func newObjects(t testing.TB, all ...client.Object) *objects {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o := &objects{}
	o.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			o.count(&o.lists)
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			o.count(&o.secrets)
			if o.secretErr != nil {
				return o.secretErr
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	return o
}

func (o *objects) count(n *int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*n++
}

// replica is a process that serves the calendars in objects.
type replica struct {
	testing.TB
	*Handler
	objects  *objects
	clock    *clocktesting.FakePassiveClock
	watches  *watches
	registry *prometheus.Registry
	logged   *strings.Builder
}

func newReplica(t testing.TB, o *objects) *replica {
	t.Helper()
	r := &replica{TB: t, objects: o, clock: clocktesting.NewFakePassiveClock(testNow), watches: &watches{}, registry: prometheus.NewRegistry(), logged: &strings.Builder{}}
	source := &Source{Cache: o, Watch: r.watches.watch}
	var mu sync.Mutex
	log := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		r.logged.WriteString(line + "\n")
	}, funcr.Options{Verbosity: 9})
	r.Handler = NewHandler(NewTable(o, source), r.clock, log, MustMakeMetrics(r.registry))
	return r
}

// load loads a calendar as its controller does, and returns its path.
func (r *replica) load(name string) string {
	r.Helper()
	obj := &v1alpha1.CalendarFeed{}
	if err := r.objects.Get(r.Context(), client.ObjectKey{Namespace: "apps", Name: name}, obj); err != nil {
		r.Fatal(err)
	}
	path, err := r.Table.Load(r.Context(), obj)
	if err != nil {
		r.Fatal(err)
	}
	return path
}

// get requests a path. headers are pairs of name and value.
func (r *replica) get(path string, headers ...string) *httptest.ResponseRecorder {
	r.Helper()
	return r.do(http.MethodGet, path, headers...)
}

func (r *replica) do(method, path string, headers ...string) *httptest.ResponseRecorder {
	r.Helper()
	req := httptest.NewRequestWithContext(r.Context(), method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

// shows gets a calendar, which must exist, and returns its events as an independent parser reads them.
func (r *replica) shows(path string) []*ics.VEvent {
	r.Helper()
	got := r.get(path)
	if got.Code != http.StatusOK {
		r.Fatalf("%d %s", got.Code, got.Body)
	}
	text := got.Body.String()
	for line := range strings.SplitSeq(text, "\r\n") {
		if len(line) > 75 || strings.ContainsAny(line, "\r\n") || !utf8.ValidString(line) {
			r.Errorf("a line of %d bytes: %q", len(line), line)
		}
	}
	calendar, err := ics.ParseCalendar(strings.NewReader(text))
	if err != nil {
		r.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range calendar.Events() {
		if names[e.Id()] {
			r.Errorf("two events %q", e.Id())
		}
		names[e.Id()] = true
	}
	return calendar.Events()
}

// summaries returns the summaries of events.
func summaries(events []*ics.VEvent) (all []string) {
	for _, e := range events {
		all = append(all, e.GetProperty(ics.ComponentPropertySummary).Value)
	}
	return all
}

func (r *replica) change(obj client.Object, change func()) {
	r.Helper()
	if err := r.objects.Get(r.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		r.Fatal(err)
	}
	change()
	if err := r.objects.Update(r.Context(), obj); err != nil {
		r.Fatal(err)
	}
}

// later advances the clock by checkInterval, so that the objects are read again.
func (r *replica) later() { r.clock.SetTime(r.clock.Now().Add(checkInterval)) }

// watches has the ConfigMaps of a cluster. A ConfigMap that is not in known has not been read yet, and one that is nil does not exist.
type watches struct {
	mu     sync.Mutex
	known  map[string]*corev1.ConfigMap
	failed error
	// open is the number of current watches, and opened that of all watches.
	open, opened int
}

type fakeWatch struct {
	*watches
	key string
}

func (w *watches) watch(key types.NamespacedName) ConfigMapWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.opened = w.open+1, w.opened+1
	return &fakeWatch{w, key.String()}
}

func (w *watches) set(name string, version int, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil {
		w.known = map[string]*corev1.ConfigMap{}
	}
	w.known[name] = nil
	if text != "" {
		w.known[name] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(version)}, Data: map[string]string{"no.ics": text}}
	}
}

func (w *fakeWatch) Latest() (*corev1.ConfigMap, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, known := w.known[w.key]
	return found, known
}

func (w *fakeWatch) Failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

func (w *fakeWatch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
}

// gateOf returns a Gate that is open from 10:00 to 12:00, after the changes.
func gateOf(name string, change ...func(*v1alpha1.Gate)) *v1alpha1.Gate {
	start, end := "10:00", "12:00"
	g := &v1alpha1.Gate{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "apps", UID: types.UID(name), CreationTimestamp: metav1.NewTime(testNow.AddDate(0, -1, 0)), Labels: map[string]string{"env": "production"},
		},
		Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{{Name: "day", Start: &start, End: &end}}},
	}
	for _, c := range change {
		c(g)
	}
	return g
}

// withHolidays adds a close period with a calendar in a ConfigMap.
func withHolidays(g *v1alpha1.Gate) {
	g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "holidays", Calendar: &v1alpha1.CalendarReference{
		ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "days", Key: "no.ics"}}}}}
}

func calendarOf(name string, change ...func(*v1alpha1.CalendarFeed)) *v1alpha1.CalendarFeed {
	c := &v1alpha1.CalendarFeed{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "apps", Generation: 1, CreationTimestamp: metav1.NewTime(testNow)},
		Spec:       v1alpha1.CalendarFeedSpec{SecretRef: meta.LocalObjectReference{Name: name}, Selector: &v1alpha1.LabelSelector{}, Days: 7},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func secretOf(name string, pairs ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "apps"}, Data: map[string][]byte{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		s.Data[pairs[i]] = []byte(pairs[i+1])
	}
	return s
}
