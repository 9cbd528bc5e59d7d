package ui

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// noon is noon on a Thursday in winter.
var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// fake is a Reader with configurable results.
type fake struct {
	gates      []*v1alpha1.Gate
	exceptions []*v1alpha1.GateException
	targets    []Target
	notes      []string
	why        *explain.Explanation
	err        error
	// hangs makes Gates block until the context ends. asked counts the calls.
	hangs bool
	asked atomic.Int32
	// gathers blocks Gates until it is closed, unless it is nil.
	gathers chan struct{}
	// takes is how long Gates takes, by clock. key is the key of the viewer.
	takes time.Duration
	clock *clocktesting.FakePassiveClock
	key   string

	// refused is the error for all viewers. blind hides changes, and bare hides everything but names, states and times.
	refused     error
	blind, bare bool
	// versioned is true if Gates have versions. calendars are the CalendarFeeds.
	versioned bool
	calendars []v1alpha1.CalendarFeed

	mu      sync.Mutex
	watches int
	changed func(namespace string)
}

func (f *fake) Of(*http.Request) (Viewer, error) {
	return Viewer{Reader: f, Key: f.key, Person: f.key, Bare: f.bare}, f.refused
}

func (f *fake) Sees(context.Context, []string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.blind, f.err
}

func (f *fake) Subscriptions(_ context.Context, g *v1alpha1.Gate) ([]Subscription, error) {
	return SubscriptionsTo(g, f.calendars), f.err
}

func (f *fake) Gates(ctx context.Context, namespace, _ string) (*Visible, error) {
	f.asked.Add(1)
	if f.gathers != nil {
		select {
		case <-f.gathers:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if f.takes > 0 {
		f.clock.SetTime(f.clock.Now().Add(f.takes))
	}
	if f.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	var in []*v1alpha1.Gate
	for _, g := range f.gates {
		if namespace == "" || g.Namespace == namespace {
			in = append(in, g)
		}
	}
	known := &Visible{Set: preview.FromCluster(in, f.exceptions), Gates: in, Exceptions: f.exceptions, Notes: f.notes}
	if f.versioned {
		known.Version = func(g *v1alpha1.Gate) string { return g.Namespace + g.Name + g.ResourceVersion }
	}
	return known, nil
}

func (f *fake) Targets(context.Context, *v1alpha1.Gate) ([]Target, []string, error) {
	return f.targets, nil, f.err
}

func (f *fake) Why(context.Context, string, string, string) (*explain.Explanation, error) {
	return f.why, f.err
}

func (f *fake) Changes(ctx context.Context, changed func(namespace string)) error {
	f.mu.Lock()
	f.watches++
	f.changed = changed
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watches--
	return nil
}

// pages returns the handler of a reader, for a viewer in Oslo.
func pages(t testing.TB, reader *fake) http.Handler {
	t.Helper()
	oslo, err := tz.Load("Europe/Oslo")
	if err != nil {
		t.Fatal(err)
	}
	return New(optionsOf(reader, oslo))
}

// optionsOf returns the options for the pages of a reader.
func optionsOf(reader *fake, zone *time.Location) Options {
	reader.clock = clocktesting.NewFakePassiveClock(noon)
	return Options{Viewers: reader, Clock: reader.clock, Zone: zone, Command: "kubectl gate", Namespace: "shop", Log: log.New(io.Discard, "", 0)}
}

// get returns the response of a page.
func get(t testing.TB, reader *fake, path string) (code int, page string) {
	t.Helper()
	return asks(t, pages(t, reader), path, time.Minute)
}

// asks returns the response of a page, within a timeout.
func asks(t testing.TB, h http.Handler, path string, within time.Duration) (code int, page string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	return recorder.Code, recorder.Body.String()
}

// mainOf returns the main part of a page, truncated.
func mainOf(page string) string {
	_, page, _ = strings.Cut(page, "<main")
	return page[:min(len(page), 2000)]
}

// shows returns a page, and checks that it has the texts.
func shows(t *testing.T, reader *fake, path string, texts ...string) string {
	t.Helper()
	code, page := get(t, reader, path)
	if code != http.StatusOK {
		t.Errorf("%s answers %d: %s", path, code, mainOf(page))
	}
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("%s does not show %q: %s", path, text, mainOf(page))
		}
	}
	return page
}

// eventually waits until a condition is true, and fails after a timeout.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// gateOf returns a Gate that is open from 10:00 to 16:00 in Oslo and on which the controller has decided, with changes.
func gateOf(name string, change ...func(*v1alpha1.Gate)) *v1alpha1.Gate {
	start, end := "10:00", "16:00"
	g := &v1alpha1.Gate{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Generation: 1, Labels: map[string]string{"team": name}},
		Spec:       v1alpha1.GateSpec{Default: v1alpha1.StateClosed, TimeZone: "Europe/Oslo", OpenPeriods: []v1alpha1.Period{{Name: "day", Start: &start, End: &end}}},
		Status: v1alpha1.GateStatus{
			ObservedGeneration: 1,
			LastTransition:     &v1alpha1.Transition{At: metav1.NewTime(noon.Add(-3 * time.Hour)), State: v1alpha1.StateOpened, Reason: v1alpha1.OpenPeriodReason, Period: "day"},
			NextTransition:     &v1alpha1.Transition{At: metav1.NewTime(noon.Add(3 * time.Hour)), State: v1alpha1.StateClosed, Reason: v1alpha1.OutsideOpenPeriodsReason},
		},
	}
	for _, c := range change {
		c(g)
	}
	return g
}

// many returns Gates with ten periods each.
func many(n int) (gates []*v1alpha1.Gate) {
	for i := range n {
		gates = append(gates, gateOf(fmt.Sprintf("gate-%04d", i), func(g *v1alpha1.Gate) {
			g.Namespace = fmt.Sprintf("team-%02d", i%40)
			for k := range 6 {
				start, end := fmt.Sprintf("%02d:00", 17+k), fmt.Sprintf("%02d:30", 17+k)
				g.Spec.OpenPeriods = append(g.Spec.OpenPeriods, v1alpha1.Period{Name: fmt.Sprintf("evening-%d", k), Start: &start, End: &end, DaysOfWeek: []v1alpha1.DayOfWeek{v1alpha1.DayOfWeek(time.Weekday(k).String())}})
			}
			for k := range 3 {
				from, until := metav1.NewTime(noon.AddDate(0, k+1, 0)), metav1.NewTime(noon.AddDate(0, k+1, 5))
				g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, v1alpha1.ClosePeriod{Period: v1alpha1.Period{Name: fmt.Sprintf("freeze-%d", k), From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}})
			}
		}))
	}
	return gates
}
