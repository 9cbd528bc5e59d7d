package calendars

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

func calendarIn(namespace string, n int) timetable.CalendarKey {
	return timetable.CalendarKey{CalendarFile: timetable.CalendarFile{Namespace: namespace, Name: fmt.Sprintf("c%02d", n)}}
}

// overOf returns the calendars that exceed the budget, sorted.
func overOf(s *budget) (names []string) {
	for key := range s.over {
		names = append(names, key.Namespace+"/"+key.Name)
	}
	slices.Sort(names)
	return names
}

func TestCalendarsAreDividedByNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		taken map[string][]int
		want  string
	}{
		"there is enough":                    {map[string][]int{"a": {50}, "b": {50}}, ""},
		"one has too much":                   {map[string][]int{"a": {30, 30, 30, 30}, "b": {10}}, "a/c03"},
		"an equal share is never affected":   {map[string][]int{"a": {1000}, "b": {50}}, "a/c00"},
		"what some do not need is divided":   {map[string][]int{"a": {45, 10}, "b": {10}, "c": {45, 10}}, "a/c01 c/c01"},
		"a small calendar after a large one": {map[string][]int{"a": {99, 20}, "b": {50}}, "a/c00"},
		"both take more than there is":       {map[string][]int{"a": {51}, "b": {51}}, "a/c00 b/c00"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBudget(100)
			for namespace, taken := range tc.taken {
				for i, n := range taken {
					s.take(calendarIn(namespace, i), n)
				}
			}
			s.divide()
			if got := strings.Join(overOf(s), " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestDivisionDependsOnCalendarsOnly adds calendars in random order, some of them with another size first.
func TestDivisionDependsOnCalendarsOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		sizes := map[timetable.CalendarKey]int{}
		for range 1 + r.IntN(20) {
			sizes[calendarIn(string(rune('a'+r.IntN(4))), r.IntN(8))] = r.IntN(60)
		}
		var all []*budget
		for range 2 {
			s := newBudget(100)
			for key, size := range sizes { // in random order
				s.take(key, r.IntN(200))
				s.divide()
				s.take(key, size)
				s.divide()
			}
			all = append(all, s)
		}
		if a, b := overOf(all[0]), overOf(all[1]); !slices.Equal(a, b) {
			t.Fatalf("%v: %v, %v", sizes, a, b)
		}
		kept := 0
		for key, size := range sizes {
			if !all[0].over[key] {
				kept += size
			}
		}
		if kept > 100 {
			t.Fatalf("%v: %d are kept", sizes, kept)
		}
	}
}

// configMaps reads ConfigMaps from a map. Only Get is called.
type configMaps struct {
	client.Reader
	data map[types.NamespacedName]string
}

func (c configMaps) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	into, _ := obj.(*corev1.ConfigMap)
	*into = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: "1"}, Data: map[string]string{"ics": c.data[key]}}
	return nil
}

// wokenGates records which Gates are enqueued.
type wokenGates struct {
	enqueue.Enqueuer
	gates []string
	// then is called after each Gate, unless it is nil.
	then func()
}

func (w *wokenGates) Gate(key types.NamespacedName) {
	if w.gates = append(w.gates, key.String()); w.then != nil {
		w.then()
	}
}

// TestNamespaceOverBudgetLosesOnlyItsCalendars has two Gates of one namespace whose calendars exceed the budget together, and
// one Gate of another namespace.
func TestNamespaceOverBudgetLosesOnlyItsCalendars(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	text := func(rule string) string {
		return "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nDTSTART:20261101T000000Z\nDURATION:PT1H\nRRULE:" + rule + "\nEND:VEVENT\nEND:VCALENDAR\n"
	}
	calendarGate := func(namespace, name string) *v1alpha1.Gate {
		g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}}
		ref := &v1alpha1.CalendarReference{ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: name, Key: "ics"}}
		g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "x", Calendar: ref}}}
		return g
	}
	first, second, other := calendarGate("a", "c1"), calendarGate("a", "c2"), calendarGate("b", "c1")
	wakes := &wokenGates{}
	r := &Reader{Queues: wakes, budget: newBudget(1500), read: map[types.UID]readCalendars{}, APIReader: configMaps{data: map[types.NamespacedName]string{
		{Namespace: "a", Name: "c1"}: text("FREQ=DAILY"), {Namespace: "a", Name: "c2"}: text("FREQ=DAILY"), {Namespace: "b", Name: "c1"}: text("FREQ=WEEKLY"),
	}}}
	wakes.then = func() { r.IsCached(other, now) } // an Enqueuer may use the reader
	broken := func(g *v1alpha1.Gate) string {
		t.Helper()
		found, err := r.For(context.Background(), g, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range gate.NewSnapshot(g, found).Broken() {
			return b.Cause
		}
		return ""
	}
	if got := broken(second); got != "" {
		t.Errorf("the first calendar that is read: %s", got)
	}
	if a, b := broken(first), broken(other); a != "" || b != "" {
		t.Errorf("within its share: %s, %s", a, b)
	}
	if !slices.Equal(wakes.gates, []string{"a/c2"}) {
		t.Errorf("woken: %v", wakes.gates)
	}
	if got := broken(second); got != errOverBudget.Error() {
		t.Errorf("over the share: %q", got)
	}
	if n := len(r.Followed[types.NamespacedName{Namespace: "a", Name: "c2"}].Read); n != 0 {
		t.Errorf("%d calendars are kept that are over the share", n)
	}
	r.Forget(first.UID)
	if got := broken(second); got != "" || len(wakes.gates) != 2 {
		t.Errorf("after the first Gate is gone: %q, woken: %v", got, wakes.gates)
	}
}
