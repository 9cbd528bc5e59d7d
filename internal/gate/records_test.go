package gate_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// recorded returns the records of a Gate as "name Reason applied-expired".
func recorded(g *v1alpha1.Gate) (records []string) {
	for _, r := range g.Status.Exceptions {
		text := r.Name + " " + r.Reason
		if r.AppliedAt != nil {
			text += " " + r.AppliedAt.UTC().Format("15:04")
		}
		if r.ExpiredAt != nil {
			text += "-" + r.ExpiredAt.UTC().Format("15:04")
		}
		records = append(records, text)
	}
	return records
}

// record has a Gate note its exceptions at a time of the day of noon.
func record(g *v1alpha1.Gate, at string, exceptions ...*v1alpha1.GateException) string {
	gate.NewSnapshot(g, nil, exceptions...).RecordExceptions(utc("2026-11-23T" + at + ":00Z"))
	return strings.Join(recorded(g), ", ")
}

// hours returns an exception that is valid between two times of the day of noon.
func hours(name, from, until string) *v1alpha1.GateException {
	return exception(byDefault(isClosed), called(name), valid("2026-11-23T"+from+":00Z", "2026-11-23T"+until+":00Z"))
}

func TestExceptionLifecycleInGateStatus(t *testing.T) {
	none := []*v1alpha1.GateException{}
	x := []*v1alpha1.GateException{hours("x", "11:00", "13:00")}
	type step struct {
		at         string
		exceptions []*v1alpha1.GateException
		want       string
	}
	for name, steps := range map[string][]step{
		"it applies, expires and is deleted": {
			{"10:00", x, "x Pending"}, {"11:01", x, "x InForce 11:01"}, {"12:00", x, "x InForce 11:01"},
			{"13:00", x, "x Expired 11:01-13:00"}, {"14:00", x, "x Expired 11:01-13:00"}, {"15:00", none, "x Expired 11:01-13:00"},
		},
		"it is deleted while it applies": {
			{"11:00", x, "x InForce 11:00"}, {"12:00", none, "x Expired 11:00-12:00"}, {"14:00", none, "x Expired 11:00-12:00"},
		},
		"it is under deletion": {
			{"11:00", x, "x InForce 11:00"}, {"12:00", []*v1alpha1.GateException{exception(byDefault(isClosed), deleted)}, "x Expired 11:00-12:00"},
		},
		"it is seen to be gone long after it was over": {{"11:00", x, "x InForce 11:00"}, {"15:00", none, "x Expired 11:00-13:00"}},
		"it is deleted before it applied":              {{"10:00", x, "x Pending"}, {"10:30", none, ""}},
		"it was over before it was seen":               {{"14:00", x, "x Expired-13:00"}},
		"it is of another gate":                        {{"12:00", []*v1alpha1.GateException{exception(byDefault(isClosed), ofGate("staging"))}, ""}},
		"one of its name is created after it was over": {{"11:00", x, "x InForce 11:00"}, {"14:00", []*v1alpha1.GateException{hours("x", "15:00", "16:00")}, "x Pending, x Expired 11:00-13:00"}},
		"its end is moved into the past": {
			{"11:00", x, "x InForce 11:00"}, {"12:00", []*v1alpha1.GateException{hours("x", "10:00", "10:30")}, "x Expired 11:00-12:00"},
			{"12:10", []*v1alpha1.GateException{hours("x", "10:00", "10:30")}, "x Expired 11:00-12:00"},
		},
		"one of its name is created after it was noted so": {
			{"11:00", x, "x InForce 11:00"}, {"13:00", x, "x Expired 11:00-13:00"},
			{"14:00", []*v1alpha1.GateException{hours("x", "15:00", "16:00")}, "x Pending, x Expired 11:00-13:00"},
			{"15:00", []*v1alpha1.GateException{hours("x", "15:00", "16:00")}, "x InForce 15:00, x Expired 11:00-13:00"},
			{"16:00", []*v1alpha1.GateException{hours("x", "15:00", "16:00")}, "x Expired 15:00-16:00, x Expired 11:00-13:00"},
			{"17:00", none, "x Expired 15:00-16:00, x Expired 11:00-13:00"},
		},
		"one of its name was over before it was seen": {
			{"11:00", x, "x InForce 11:00"}, {"13:00", x, "x Expired 11:00-13:00"},
			{"17:00", []*v1alpha1.GateException{hours("x", "15:00", "16:00")}, "x Expired-16:00, x Expired 11:00-13:00"},
		},
		"it is deleted and created again as it was": {
			{"11:00", x, "x InForce 11:00"}, {"11:30", none, "x Expired 11:00-11:30"}, {"12:00", x, "x InForce 12:00, x Expired 11:00-11:30"},
			{"13:00", x, "x Expired 12:00-13:00, x Expired 11:00-11:30"}, {"14:00", x, "x Expired 12:00-13:00, x Expired 11:00-11:30"},
		},
		"Git brings back one that is over": {
			{"11:00", x, "x InForce 11:00"}, {"13:00", x, "x Expired 11:00-13:00"}, {"14:00", none, "x Expired 11:00-13:00"}, {"15:00", x, "x Expired 11:00-13:00"},
		},
		"it is moved to later while it applies": {
			{"11:00", x, "x InForce 11:00"}, {"12:00", []*v1alpha1.GateException{hours("x", "14:00", "15:00")}, "x Pending, x Expired 11:00-12:00"},
			{"14:00", []*v1alpha1.GateException{hours("x", "14:00", "15:00")}, "x InForce 14:00, x Expired 11:00-12:00"},
			{"14:10", []*v1alpha1.GateException{hours("x", "10:00", "10:30")}, "x Expired 14:00-14:10, x Expired 11:00-12:00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := production(closed())
			for _, s := range steps {
				if got := record(g, s.at, s.exceptions...); got != s.want {
					t.Errorf("at %s: got  %q\nwant %q", s.at, got, s.want)
				}
			}
		})
	}
}

func TestRecordHasFieldsOfException(t *testing.T) {
	g, e := production(closed()), exception(closesIn(midday))
	gate.NewSnapshot(g, nil, e).RecordExceptions(noon)
	r := g.Status.Exceptions[0]
	if r.Reason != v1alpha1.InForceReason || !r.ValidFrom.Equal(&e.Spec.ValidFrom) || !r.ValidUntil.Equal(&e.Spec.ValidUntil) {
		t.Errorf("got %+v", r)
	}
}

func TestRecordOfExceptionNamesItsTargets(t *testing.T) {
	g, e := production(closed()), exception(byDefault(isOpened), only("a", "b"))
	record(g, "12:00", e)
	record(g, "12:01")
	if got, want := g.Status.Exceptions[0].Only, "Kustomization/a, Kustomization/b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	record(g, "12:02", exception(byDefault(isOpened), only(strings.Repeat("a", 250)+".", "b")))
	if got := g.Status.Exceptions[0].Only; len(got) != 256 {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestRecordsAreInOrderAndBounded(t *testing.T) {
	g := production(closed())
	all := []*v1alpha1.GateException{
		hours("b-later", "20:00", "21:00"), hours("a-later", "20:00", "21:00"), hours("soon", "13:00", "14:00"), hours("active", "11:00", "13:00"),
	}
	want := "active InForce 12:00, soon Pending, a-later Pending, b-later Pending"
	for i := range v1alpha1.MaxExceptions {
		from := utc("2026-11-22T00:00:00Z").Add(time.Duration(i) * time.Hour)
		all = append(all, exception(byDefault(isClosed), called(fmt.Sprintf("past%d", i)), valid(stamp(from), stamp(from.Add(time.Hour)))))
	}
	for i := v1alpha1.MaxExceptions - 1; i >= 4; i-- {
		want += fmt.Sprintf(", past%d Expired-%02d:00", i, (i+1)%24)
	}
	for _, at := range []string{"12:00", "12:01"} {
		if got := record(g, at, all...); got != want {
			t.Errorf("at %s: got  %s\nwant %s", at, got, want)
		}
	}
	for i := range v1alpha1.MaxExceptions {
		all = append(all, hours(fmt.Sprintf("more%d", i), "15:00", "16:00"))
	}
	if got := record(g, "12:02", all...); strings.Contains(got, "Expired") || !strings.HasPrefix(got, "active TooManyExceptions 12:00, soon Pending, more0 Pending") ||
		len(g.Status.Exceptions) != v1alpha1.MaxExceptions {
		t.Errorf("got %s", got)
	}
}

// All that take effect are recorded, however many others are valid, and the others report that they are too many.
func TestEffectiveExceptionsAreRecorded(t *testing.T) {
	g := production(closed())
	var all []*v1alpha1.GateException
	for i := range 50 {
		e := exception(byDefault(isClosed), called(fmt.Sprintf("x%02d", i)), created(stamp(utc("2026-11-01T00:00:00Z").Add(-time.Duration(i)*time.Hour))))
		all = append(all, e)
	}
	count := func(reason string) (n int) {
		for i, r := range g.Status.Exceptions {
			if r.Reason == reason {
				n++
			}
			if reason == v1alpha1.InForceReason && i < v1alpha1.MaxEffectiveExceptions && r.Name != fmt.Sprintf("x%02d", 30+i) {
				t.Errorf("record %d is of %s", i, r.Name)
			}
		}
		return n
	}
	record(g, "12:00", all...)
	if inForce, tooMany := count(v1alpha1.InForceReason), count(v1alpha1.TooManyExceptionsReason); inForce != v1alpha1.MaxEffectiveExceptions || tooMany != v1alpha1.MaxExceptions-inForce {
		t.Errorf("%d apply and %d are too many: %v", inForce, tooMany, recorded(g))
	}
	for _, e := range all[30:] {
		if d := gate.DecideException(e, g, all, noon); d.Reason != v1alpha1.InForceReason {
			t.Errorf("%s: %s", e.Name, d.Message)
		}
	}
	if got := record(g, "12:30", all[:2]...); !strings.HasPrefix(got, "x00 InForce 12:00, x01 InForce 12:00, ") {
		t.Errorf("with room they go on: %s", got)
	}
}

// A status that was written by hand must not keep the Gate from being reconciled.
func TestTruncatedRecordIsAccepted(t *testing.T) {
	g := production(closed())
	for _, name := range []string{"a", "b"} {
		g.Status.Exceptions = append(g.Status.Exceptions, v1alpha1.ExceptionRecord{
			Name: name, Reason: v1alpha1.ExpiredReason, ValidFrom: *instant("2026-11-23T08:00:00Z"), ValidUntil: *instant("2026-11-23T09:00:00Z"),
		})
	}
	if got, want := record(g, "12:00", hours("x", "09:00", "10:00")), "x Expired-10:00, a Expired, b Expired"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRecordsAreIndependentOfExceptionOrder(t *testing.T) {
	var all []*v1alpha1.GateException
	for i := range 12 {
		at := utc("2026-11-23T00:00:00Z").Add(time.Duration(i/2) * 2 * time.Hour)
		all = append(all, exception(byDefault(isClosed), called(fmt.Sprintf("e%d", i)), valid(stamp(at), stamp(at.Add(3*time.Hour)))))
	}
	random := rand.New(rand.NewPCG(1, 2))
	var want [][]v1alpha1.ExceptionRecord
	for round := range 20 {
		g := production(closed())
		for i, at := range []string{"05:00", "09:00", "14:00"} {
			present := slices.Clone(all[i:])
			random.Shuffle(len(present), func(i, j int) { present[i], present[j] = present[j], present[i] })
			record(g, at, present...)
			if round == 0 {
				want = append(want, g.Status.Exceptions)
			} else if !reflect.DeepEqual(g.Status.Exceptions, want[i]) {
				t.Fatalf("at %s: got %v, want %v", at, recorded(g), want[i])
			}
		}
	}
}
