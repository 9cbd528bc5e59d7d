package calendars

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// oneConfigMap is a reader of the ConfigMap shop/days. It returns err unless that is nil.
type oneConfigMap struct {
	client.Reader
	data map[string]string
	err  error
}

func (c *oneConfigMap) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	into, _ := obj.(*corev1.ConfigMap)
	*into = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: c.data["no.ics"]}, Data: c.data}
	return c.err
}

// christmas is a calendar with an event in 2027.
const christmas = "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:20271225\nEND:VEVENT\nEND:VCALENDAR\n"

// frozenGate returns a Gate that is open except on the days of the ConfigMap.
func frozenGate(name string) *v1alpha1.Gate {
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	g.Spec.Default = v1alpha1.StateOpened
	g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "holidays", Calendar: &v1alpha1.CalendarReference{
		ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "days", Key: "no.ics"},
	}}}}
	return g
}

// decide returns the decision on a Gate with the calendars that a Reader returns.
func decide(t *testing.T, r *Reader, g *v1alpha1.Gate) gate.Decision {
	t.Helper()
	found, err := r.For(t.Context(), g, noon)
	if err != nil {
		t.Fatal(err)
	}
	return gate.NewSnapshot(g, found).Decide(noon)
}

func TestCalendarFaultClosesUntilFixed(t *testing.T) {
	days := schema.GroupResource{Resource: "configmaps"}
	for name, tc := range map[string]struct {
		reader oneConfigMap
		cause  string
	}{
		"missing":          {oneConfigMap{err: apierrors.NewNotFound(days, "days")}, "does not exist"},
		"without the key":  {oneConfigMap{data: map[string]string{"se.ics": ""}}, "does not exist in the ConfigMap"},
		"an invalid event": {oneConfigMap{data: map[string]string{"no.ics": strings.Replace(christmas, "UID:1\n", "UID:1\nRRULE:FREQ=SECONDLY\n", 1)}}, "line 5: "},
		"forbidden":        {oneConfigMap{err: apierrors.NewForbidden(days, "days", errors.New("no"))}, "the controller may not read it: install config/calendars, or grant the controller a Role"},
	} {
		works := &oneConfigMap{data: map[string]string{"no.ics": christmas}}
		r, g := &Reader{APIReader: works, Queues: &wokenGates{}}, frozenGate("shop")
		for _, step := range []struct {
			reader client.Reader
			state  v1alpha1.State
		}{{works, v1alpha1.StateOpened}, {&tc.reader, v1alpha1.StateClosed}, {works, v1alpha1.StateOpened}} {
			r.APIReader = step.reader
			d := decide(t, r, g)
			faults, isClosed := Faults(d), step.state == v1alpha1.StateClosed
			if d.State != step.state || len(faults) > 0 != isClosed {
				t.Errorf("%s: %s: %s, faults %+v", name, d.State, d.Message, faults)
			}
			if isClosed && (faults[0].Kind != "ConfigMap" || faults[0].Namespace != "shop" || faults[0].Name != "days" || faults[0].Reason != v1alpha1.CalendarFailedReason ||
				!strings.HasPrefix(faults[0].Message, "key no.ics: "+tc.cause)) {
				t.Errorf("%s: faults %+v", name, faults)
			}
		}
	}
}

// Without a last version, the decision in the status stays in force.
func TestUnreadCalendarKeepsLastVersion(t *testing.T) {
	works, fails := &oneConfigMap{data: map[string]string{"no.ics": christmas}}, &oneConfigMap{err: apierrors.NewInternalError(errors.New("disk full"))}
	r, g := &Reader{APIReader: fails, Queues: &wokenGates{}}, frozenGate("shop")
	if _, err := r.For(t.Context(), g, noon); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("before the first read: %v", err)
	}
	for _, r.APIReader = range []client.Reader{works, fails} {
		if d := decide(t, r, g); d.State != v1alpha1.StateOpened || len(d.Broken) > 0 {
			t.Errorf("%s: %s", d.State, d.Message)
		}
	}
}

func TestCalendarIsSharedUntilUnused(t *testing.T) {
	wakes := &wokenGates{}
	r, a, b := &Reader{APIReader: &oneConfigMap{data: map[string]string{"no.ics": christmas}}, Queues: wakes}, frozenGate("a"), frozenGate("b")
	decide(t, r, a)
	decide(t, r, b)
	days := types.NamespacedName{Namespace: "shop", Name: "days"}
	if f := r.Followed[days]; len(r.Followed) != 1 || len(f.Gates) != 2 || len(f.Read) != 1 {
		t.Fatalf("%d ConfigMaps are followed: %+v", len(r.Followed), f)
	}
	r.Changed(days)
	if len(wakes.gates) != 2 {
		t.Errorf("enqueued %q", wakes.gates)
	}
	a.Spec.ClosePeriods = nil
	decide(t, r, a)
	if f := r.Followed[days]; f == nil || len(f.Gates) != 1 {
		t.Errorf("followed %+v", f)
	}
	if r.Forget(b.UID); len(r.Followed) > 0 {
		t.Errorf("%d ConfigMaps are followed in the end", len(r.Followed))
	}
}

// The effect of an exception with a lead time depends on the openings of its Gate.
func TestExceptionWithLeadTimeWaitsForCalendars(t *testing.T) {
	r := &Reader{APIReader: &oneConfigMap{data: map[string]string{"no.ics": christmas}}, Queues: &wokenGates{}}
	g, suspended := frozenGate("shop"), frozenGate("suspended")
	suspended.Spec.Suspend = true
	with, without := &v1alpha1.GateException{}, &v1alpha1.GateException{}
	with.Spec.LeadTime = &v1alpha1.Duration{Duration: time.Hour}
	for name, tc := range map[string]struct {
		exception *v1alpha1.GateException
		gate      *v1alpha1.Gate
		want      error
	}{
		"with a lead time": {with, g, ErrPending}, "without": {without, g, nil}, "of a suspended Gate": {with, suspended, nil}, "without a Gate": {with, nil, nil},
	} {
		if _, err := r.SnapshotFor(tc.exception, tc.gate, nil); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	decide(t, r, g)
	if s, err := r.SnapshotFor(with, g, nil); err != nil || len(s.Broken()) > 0 {
		t.Errorf("after the Gate has read its calendars: %v", err)
	}
}
