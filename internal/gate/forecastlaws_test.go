package gate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// change is a change of the state of a Gate.
type change struct {
	at    int64
	state v1alpha1.State
}

// listener compares the announcements of a Gate with its preview.
type listener struct {
	*rapid.T
	gate       *v1alpha1.Gate
	exceptions []*v1alpha1.GateException
	now        time.Time
	// latest is the latest time that any replica has had.
	latest time.Time
	// told has the shortest announced lead of each change.
	told map[change]time.Duration
}

// stretches returns the states from now on, as far ahead as changes may be announced.
func (l *listener) stretches() (coming []change, at func(int64) v1alpha1.State) {
	intervals, errs := gate.Intervals(l.gate, l.now, l.now.Add(140*time.Hour), l.exceptions...)
	if len(errs) > 0 {
		l.Fatal(errs)
	}
	var all []change
	for i := range intervals {
		all = append(all, change{i.From.Unix(), v1alpha1.State(i.State.String())})
	}
	return all[1:], func(at int64) (state v1alpha1.State) {
		for _, c := range all {
			if c.at <= at {
				state = c.state
			}
		}
		return state
	}
}

// due returns the shortest lead that has been reached, zero if there is none.
func (l *listener) due(c change) (due time.Duration) {
	left := time.Unix(c.at, 0).Sub(l.now)
	for _, lead := range l.gate.Spec.NotifyBefore {
		if left <= lead.Duration && (due == 0 || lead.Duration < due) {
			due = lead.Duration
		}
	}
	return due
}

// listen computes the forecast now and stores it in the status, even if the process ends before the events are emitted.
func (l *listener) listen() gate.Forecast {
	coming, stateAt := l.stretches()
	f := gate.NewSnapshot(l.gate, nil, l.exceptions...).Forecast(l.now)
	instead := map[int64]bool{}
	for _, n := range f.Notices {
		c := change{n.At.Unix(), n.State}
		before, known := l.told[c]
		i := slices.Index(coming, c)
		switch due := l.due(c); {
		case i < 0 || !n.At.After(l.now):
			l.Fatalf("told of %v, which does not come", n)
		case due == 0:
			l.Fatalf("told of %v too early", n)
		case known && before <= due:
			l.Fatalf("told of %v twice: at %s, and now at %s", n, before, due)
		case !known && i >= 32:
			l.Fatalf("told of %v, which is one of many", n)
		default:
			l.told[c] = due
		}
		if !n.Instead.IsZero() {
			instead[n.Instead.Unix()] = true
		}
	}
	l.checkCalledOff(f, coming, stateAt, instead)
	for i, c := range coming {
		before, known := l.told[c]
		if due := l.due(c); due > 0 && (i < 32 && len(f.Announced) < v1alpha1.MaxAnnounced || known) && (!known || before > due) {
			l.Fatalf("not told of %v, which is due at %s, before at %s", c, due, before)
		}
	}
	if !slices.IsSortedFunc(f.Announced, func(a, b v1alpha1.Announcement) int { return a.At.Compare(b.At.Time) }) || len(f.Announced) > v1alpha1.MaxAnnounced {
		l.Fatalf("%d announced: %v", len(f.Announced), f.Announced)
	}
	l.gate.Status.Memory.Announced = f.Announced
	return f
}

// checkCalledOff checks that announced changes that will not happen are canceled or replaced, unless the Gate has that state anyway.
func (l *listener) checkCalledOff(f gate.Forecast, coming []change, stateAt func(int64) v1alpha1.State, instead map[int64]bool) {
	off := map[change]bool{}
	for _, a := range f.Canceled {
		off[change{a.At.Unix(), a.State}] = true
	}
	for c := range l.told {
		if c.at <= l.now.Unix() {
			if c.at <= l.latest.Add(-time.Minute).Unix() {
				delete(l.told, c)
			}
			continue
		}
		comes := slices.Contains(coming, c)
		switch wrong := !comes && !instead[c.at] && stateAt(c.at) != c.state; {
		case wrong && !off[c]:
			l.Fatalf("nobody hears that %v does not come", c)
		case !wrong && off[c]:
			l.Fatalf("%v is called off", c)
		}
		if !comes {
			delete(l.told, c)
		}
		delete(off, c)
	}
	if len(off) > 0 {
		l.Fatalf("called off is what was never told: %v", off)
	}
}

// passes advances the time until the next announcement or less. Before that, no announcement may be due.
func (l *listener) passes(f gate.Forecast) {
	most := 30 * time.Hour
	if !f.Next.IsZero() {
		if most = f.Next.Sub(l.now); most <= 0 {
			l.Fatalf("it is past %s", f.Next)
		}
	}
	if seconds := rapid.IntRange(0, int(most/time.Second)-1).Draw(l.T, "seconds"); rapid.Bool().Draw(l.T, "less") {
		l.now = l.now.Add(time.Duration(seconds) * time.Second)
		if f := l.listen(); !f.IsEmpty() {
			l.Fatalf("told %+v before its time", f)
		}
		return
	}
	l.now = l.now.Add(most)
	if coming, _ := l.stretches(); len(coming) >= 32 && l.due(coming[31]) > 0 {
		l.listen() // one of many is announced when it is among the soonest
		return
	}
	for _, n := range l.listen().Notices {
		if left := n.At.Sub(l.now); left != l.due(change{n.At.Unix(), n.State}) {
			l.Fatalf("told of %v when only %s are left", n, left)
		}
	}
}

// changes changes the schedule, the leads or the exceptions.
func (l *listener) changes() {
	switch rapid.IntRange(0, 3).Draw(l.T, "what changes") {
	case 0:
		l.exceptions = drawExceptions(l.T)
		l.exceptions = slices.DeleteFunc(l.exceptions, func(e *v1alpha1.GateException) bool { return len(timetable.ValidateException(e)) > 0 })
	case 1:
		l.exceptions = nil
	case 2:
		l.drawLeads()
	default:
		status := l.gate.Status
		l.gate = drawGate(l.T)
		if n := rapid.IntRange(14, 30).Draw(l.T, "minutes"); n > 20 && l.gate.Spec.Default == v1alpha1.StateOpened {
			l.gate.Spec.ClosePeriods = append(l.gate.Spec.ClosePeriods, closing(cron("often", fmt.Sprintf("*/%d * * * *", n), time.Minute), ""))
		}
		l.gate.Status = status
		l.drawLeads()
	}
}

func (l *listener) drawLeads() {
	leads := rapid.SliceOfNDistinct(rapid.SampledFrom([]time.Duration{time.Minute, 50 * time.Minute, time.Hour, 7 * time.Hour, 24 * time.Hour, 100 * time.Hour}), 1, 4, rapid.ID).Draw(l.T, "leads")
	notified(leads...)(&l.gate.Spec)
}

func TestEachChangeIsAnnouncedOncePerLeadInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &listener{T: t, gate: drawGate(t), now: noon, latest: noon, told: map[change]time.Duration{}}
		l.drawLeads()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			f := l.listen()
			if f := l.listen(); !f.IsEmpty() {
				t.Fatalf("told once more: %+v", f)
			}
			switch rapid.IntRange(0, 6).Draw(t, "then") {
			case 0: // another process reads what this one has written
				text, err := json.Marshal(l.gate.Status)
				l.gate.Status = v1alpha1.GateStatus{}
				if err := json.Unmarshal(text, &l.gate.Status); err != nil {
					t.Fatal(err)
				}
				if err != nil {
					t.Fatal(err)
				}
			case 1: // its clock is behind
				l.now = l.latest.Add(-time.Duration(rapid.IntRange(0, 59).Draw(t, "behind")) * time.Second)
			case 2, 3:
				l.changes()
			default:
				l.passes(f)
			}
			if l.now.After(l.latest) {
				l.latest = l.now
			}
		}
	})
}
