package schedule_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// restless has an instant of a zone around which its offset changes.
var restless = []struct{ zone, at string }{
	{"UTC", "2026-06-01T00:00:00Z"},
	{"Europe/Oslo", "2026-03-29T01:00:00Z"},
	{"Europe/Oslo", "2026-10-25T01:00:00Z"},
	{"Europe/Dublin", "2026-10-25T01:00:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"Africa/Cairo", "2026-04-23T22:00:00Z"},
	{"Africa/Cairo", "2026-10-29T21:00:00Z"},
	{"Africa/Casablanca", "2026-02-15T02:00:00Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},
	{"Pacific/Kwajalein", "1993-08-21T12:00:00Z"},
	{"America/St_Johns", "2006-04-02T03:31:00Z"},
	{"America/St_Johns", "2006-10-29T02:31:00Z"},
	{"America/St_Johns", "1988-04-03T03:31:00Z"},
	{"Antarctica/Troll", "2026-03-29T01:00:00Z"},
	{"Africa/Monrovia", "1972-01-07T00:44:30Z"},
	{"Asia/Gaza", "2026-10-23T22:00:00Z"},
	{"America/Nuuk", "2026-03-29T01:00:00Z"},
}

// subject is a plan with an instant around which something may happen.
type subject struct {
	spec planSpec
	plan *schedule.Plan
	now  time.Time
}

// evenly returns a source of numbers in [0, n). Those of rapid are small as a
// rule, which would make up plans with nothing in them.
func evenly(t *rapid.T) func(n int) int {
	return func(n int) int {
		const spread = 0x9e3779b97f4a7c15
		return int(rapid.Uint64().Draw(t, "n") * spread >> 33 % uint64(n))
	}
}

func drawSubject(t *rapid.T) subject {
	place := rapid.SampledFrom(restless).Draw(t, "place")
	made := random{
		intn:   evenly(t),
		around: utc(place.at), zones: []string{place.zone, "UTC", "America/New_York"},
	}
	s := subject{spec: made.plan()}
	s.plan = newPlan(s.spec.config())
	s.now = drawInstant(t, utc(place.at), "now")
	t.Logf("at %s of %+v", s.now.Format(time.RFC3339Nano), s.spec)
	return s
}

func drawInstant(t *rapid.T, around time.Time, label string) time.Time {
	const days = 4 * 24 * 60 * 60
	at := around.Add(time.Duration(rapid.IntRange(-days, days).Draw(t, label)) * time.Second)
	return at.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 999999999}).Draw(t, label+" nanoseconds")))
}

// within returns instants of [from, until), the outermost included.
func within(t *rapid.T, from, until time.Time) []time.Time {
	all := []time.Time{from, until.Add(-1)}
	for range 8 {
		share := rapid.Int64Range(0, int64(until.Sub(from))-1).Draw(t, "within")
		all = append(all, from.Add(time.Duration(share)))
	}
	return all
}

func TestStateHoldsUntilNext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSubject(t)
		d := s.plan.Decide(s.now)
		if d.Next.At.IsZero() {
			for _, at := range within(t, s.now, s.now.AddDate(9, 0, 0)) {
				if got := s.plan.Decide(at).State; got != d.State {
					t.Fatalf("no change in sight, but at %s it is %s", at, got)
				}
			}
			return
		}
		if !d.Next.At.After(s.now) {
			t.Fatalf("next is in the past: %+v", d.Next)
		}
		for _, at := range within(t, s.now, d.Next.At) {
			if got := s.plan.Decide(at); got.State != d.State || got.Next != d.Next {
				t.Fatalf("at %s it is %+v, not as before %+v", at, got, d)
			}
		}
		at := s.plan.Decide(d.Next.At)
		if at.State == d.State || at.State != d.Next.State || at.Reason != d.Next.Reason || at.By != d.Next.By {
			t.Fatalf("%+v became %+v", d, at)
		}
	})
}

func TestReasonHoldsUntilUntil(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSubject(t)
		d := s.plan.Decide(s.now)
		if d.Until.IsZero() {
			if !d.Next.At.IsZero() {
				t.Fatalf("the state changes but the reason does not: %+v", d)
			}
			return
		}
		if !d.Until.After(s.now) {
			t.Fatalf("the reason is over: %+v", d)
		}
		if !d.Next.At.IsZero() && d.Until.After(d.Next.At) {
			t.Fatalf("the reason outlasts the state: %+v", d)
		}
		until := d.Until
		if far := s.now.AddDate(20, 0, 0); until.After(far) {
			until = far
		}
		for _, at := range within(t, s.now, until) {
			if got := s.plan.Decide(at); got.State != d.State || got.Reason != d.Reason {
				t.Fatalf("at %s it is %+v, not as before %+v", at, got, d)
			}
		}
	})
}

func TestIntervalsAreContiguousAndDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSubject(t)
		from, until := s.now, drawInstant(t, s.now, "until")
		all := slices.Collect(s.plan.Intervals(from, until))
		if from.Unix() >= until.Unix() {
			if len(all) > 0 {
				t.Fatalf("intervals of nothing: %v", all)
			}
			return
		}
		end := from.Truncate(time.Second)
		for i, v := range all {
			if !v.From.Equal(end) || !v.Until.After(v.From) {
				t.Fatalf("interval %d of %v does not go on from %s", i, all, end)
			}
			if i > 0 && all[i-1].State == v.State {
				t.Fatalf("interval %d of %v is not a change", i, all)
			}
			end = v.Until
		}
		if !end.Equal(until.Truncate(time.Second)) {
			t.Fatalf("%v ends at %s", all, end)
		}
	})
}

func TestTransitionsAreAtIntervalStarts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSubject(t)
		end := s.now.AddDate(0, 0, 8)
		var want, got []schedule.Transition
		for v := range s.plan.Intervals(s.now, end) {
			want = append(want, schedule.Transition{At: v.From, State: v.State, Reason: v.Reason, By: v.By, Event: v.Event})
		}
		for next := range s.plan.Transitions(s.now) {
			if len(got) == 0 && next != s.plan.Decide(s.now).Next {
				t.Fatalf("the first is %+v", next)
			}
			if !next.At.Before(end.Truncate(time.Second)) {
				break
			}
			got = append(got, next)
		}
		if !slices.Equal(got, want[1:]) {
			t.Fatalf("got  %v\nwant %v", got, want[1:])
		}
	})
}

func TestIntervalsCanBeCutAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSubject(t)
		end := s.now.AddDate(0, 0, 8)
		middle := within(t, s.now.Truncate(time.Second).Add(time.Second), end)[2]
		whole := slices.Collect(s.plan.Intervals(s.now, end))
		parts := slices.Collect(s.plan.Intervals(s.now, middle))
		for v := range s.plan.Intervals(middle, end) {
			last := len(parts) - 1
			if v.From.Equal(parts[last].Until) && v.State == parts[last].State {
				parts[last].Until = v.Until
				continue
			}
			parts = append(parts, v)
		}
		if !slices.Equal(whole, parts) {
			t.Fatalf("cut at %s it is\n%v, not\n%v", middle, parts, whole)
		}
	})
}

func TestCloseRequestAlwaysCloses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSubject(t)
		s.spec.close = [2]time.Time{
			s.now.Add(-time.Duration(rapid.IntRange(0, 3600).Draw(t, "since")) * time.Second),
			s.now.Add(time.Duration(rapid.IntRange(1, 3600).Draw(t, "for")) * time.Second),
		}
		got := newPlan(s.spec.config()).Decide(s.now)
		if got.State != schedule.Closed || got.Reason != schedule.CloseRequested || got.By != "close" {
			t.Fatalf("it is %+v", got)
		}
		if !got.Next.At.IsZero() && got.Next.At.Before(s.spec.close[1].Truncate(time.Second)) {
			t.Fatalf("it opens before the request ends: %+v", got)
		}
	})
}

// TestMoreClosePeriodsNeverOpen is fail closed: what closes a gate can only close.
func TestMoreClosePeriodsNeverOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSubject(t)
		more := random{
			intn:   evenly(t),
			around: s.now, zones: []string{"Europe/Oslo"}, count: 90,
		}
		spec, kind := s.spec, rapid.SampledFrom([]string{"hard", "soft", "notAfter", "close"}).Draw(t, "kind")
		switch kind {
		case "hard":
			spec.hard = append(slices.Clone(spec.hard), more.period())
		case "soft":
			spec.soft = append(slices.Clone(spec.soft), more.period())
		case "notAfter":
			if spec.notAfter = more.minute(); !s.spec.notAfter.IsZero() && s.spec.notAfter.Before(spec.notAfter) {
				spec.notAfter = s.spec.notAfter
			}
		case "close":
			if s.spec.close != [2]time.Time{} {
				t.Skip("there is a close request already")
			}
			spec.close = more.span()
		}
		closer := newPlan(spec.config())
		for _, at := range within(t, s.now, s.now.AddDate(0, 0, 4)) {
			if closer.Decide(at).State == schedule.Opened && s.plan.Decide(at).State == schedule.Closed {
				t.Fatalf("at %s more to close (%s) opens: %+v", at, kind, spec)
			}
		}
	})
}

func TestDecideIsPure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSubject(t)
		first := s.plan.Decide(s.now)
		s.plan.Decide(drawInstant(t, s.now, "else"))
		if again := s.plan.Decide(s.now); again != first {
			t.Fatalf("%+v became %+v", first, again)
		}
		if again := newPlan(s.spec.config()).Decide(s.now); again != first {
			t.Fatalf("compiled again %+v is %+v", first, again)
		}
		elsewhere := s.now.In(time.FixedZone("", 3600))
		if moved := s.plan.Decide(elsewhere); moved != first {
			t.Fatalf("in another zone %+v is %+v", first, moved)
		}
	})
}
