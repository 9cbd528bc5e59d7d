package schedule_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// Minutes that the model evaluates: before the scan for ticks that reach into it (the longest duration and a jump of the wall clock), and
// after it for later transitions.
const (
	scanned = 7 * 24 * 60
	before  = 6 * 24 * 60
	after   = 4 * 24 * 60
	// settled is the part of after that is certain: a jump is a day at most.
	settled = after - 2*24*60
)

// TestOracle compares random plans, in every zone of the database and around one of its transitions, with a model that evaluates the clock
// of the zone at every single minute. SCHEDULE_ORACLE_SEED replays a run, and SCHEDULE_ORACLE_ROUNDS multiplies the plans.
func TestOracle(t *testing.T) {
	seed := environment(t, "SCHEDULE_ORACLE_SEED", rand.Uint64())
	rounds := environment(t, "SCHEDULE_ORACLE_ROUNDS", 1)
	zones := tz.Names()
	for i, name := range zones {
		if testing.Short() && i%20 != int(seed%20) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for round := range rounds {
				hash := fnv.New64a()
				_, _ = fmt.Fprint(hash, name, round)
				r := rand.New(rand.NewPCG(seed, hash.Sum64()))
				scan := newScan(t, r, name, zones)
				if !scan.compare(t) {
					t.Fatalf("replay with SCHEDULE_ORACLE_SEED=%d SCHEDULE_ORACLE_ROUNDS=%d", seed, rounds)
				}
			}
		})
	}
}

func environment(t *testing.T, name string, unset uint64) uint64 {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return unset
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// scan is a plan with what the model says of it from first on, a minute each.
type scan struct {
	random   *rand.Rand
	spec     planSpec
	plan     *schedule.Plan
	first    int64
	verdicts []verdict
	// covered has the names of periods with the minutes that they cover.
	covered map[string][]bool
}

func newScan(t *testing.T, r *rand.Rand, zone string, zones []string) *scan {
	t.Helper()
	around := aTransition(t, r, zone)
	making := random{intn: r.IntN, around: around, zones: append([]string{zone, "UTC"}, zones...)}
	s := &scan{random: r, spec: making.plan(), covered: map[string][]bool{}}
	s.plan = newPlan(s.spec.config())
	s.first = around.Unix()/60 - int64(r.IntN(scanned))

	m := newModel(t, s.spec, s.first, scanned+settled)
	s.verdicts = m.verdicts()
	for name, minutes := range m.covered {
		s.covered[name] = minutes[m.early:]
	}
	return s
}

func location(t testing.TB, zone string) *time.Location {
	t.Helper()
	loc, err := tz.Load(zone)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// aTransition returns one of a zone from 1975 to 2037, or any instant of those
// if it has none.
func aTransition(t *testing.T, r *rand.Rand, zone string) time.Time {
	t.Helper()
	at := time.Date(1975, 1, 1, 0, 0, 0, 0, time.UTC)
	some := at.Add(time.Duration(r.IntN(62*365*24*60)) * time.Minute)
	var transitions []time.Time
	for at = at.In(location(t, zone)); ; {
		if at = nextTransition(at); at.IsZero() || at.Year() > 2037 {
			break
		}
		transitions = append(transitions, at)
	}
	if len(transitions) == 0 {
		return some
	}
	return transitions[r.IntN(len(transitions))]
}

// nextTransition returns when the zone of an instant changes next, the zero time if it
// does not.
func nextTransition(at time.Time) time.Time {
	_, next := at.ZoneBounds()
	for from := at; !next.IsZero() && !next.After(at); {
		// On the last day of a leap year, Go returns a wrong transition, see https://go.dev/issue/81583.
		from = from.Add(time.Hour)
		_, next = from.ZoneBounds()
	}
	return next
}

func (s *scan) minute(i int) time.Time { return time.Unix((s.first+int64(i))*60, 0).UTC() }

// compare iterates over the minutes backwards, to know the next change.
func (s *scan) compare(t *testing.T) bool {
	t.Helper()
	flip, reason := -1, -1
	for i := len(s.verdicts) - 2; i >= 0; i-- {
		if s.verdicts[i+1].state != s.verdicts[i].state {
			flip = i + 1
		}
		if s.verdicts[i+1] != s.verdicts[i] {
			reason = i + 1
		}
		if i >= scanned || flip < 0 && i%60 != 0 && i != reason-1 {
			// Without a known change, Decide searches nine years; the intervals cover these minutes.
			continue
		}
		at := s.minute(i)
		fault := s.judge(i, flip, reason, s.plan.Decide(at.Add(time.Duration(s.random.IntN(60))*time.Second)))
		if fault == "" && (i%60 == 0 || i == flip-1) {
			fault = s.judgeInterval(i, flip)
		}
		if fault != "" {
			loc := location(t, s.zone())
			t.Errorf("at %s, %s, of\n%+v\n%s", at.Format(time.RFC3339), at.In(loc), s.spec, fault)
			return false
		}
	}
	return true
}

func (s *scan) zone() string {
	for _, specs := range [][]periodSpec{s.spec.windows, s.spec.soft, s.spec.hard} {
		for _, p := range specs {
			if p.zone != "" {
				return p.zone
			}
		}
	}
	return "UTC"
}

// judge returns what is wrong with a decision at the minute i. The
// next change of state after it and that of the reason are at flip and reason, or out of
// sight and negative.
func (s *scan) judge(i, flip, reason int, d schedule.Decision) string {
	end := s.minute(len(s.verdicts))
	want := s.verdicts[i]
	switch {
	case verdictOf(d.State, d.Reason, d.By) != want:
		return fmt.Sprintf("it is %s %s by %q, want %+v", d.State, d.Reason, d.By, want)
	case s.covered[d.By] != nil && !s.covered[d.By][i]:
		return fmt.Sprintf("it is by %s, which is not in force", d.By)
	case s.covered[d.By] == nil && (want.reason == schedule.OpenPeriod || want.reason == schedule.ClosePeriod):
		return fmt.Sprintf("%s is by %q, want a period", want.reason, d.By)
	case !d.Until.IsZero() && !d.Until.After(s.minute(i)):
		return fmt.Sprintf("it is until %s, which is over", d.Until)
	case reason >= 0 && (d.Until.IsZero() || d.Until.After(s.minute(reason))):
		return fmt.Sprintf("it is until %s, want %s at the latest", d.Until, s.minute(reason))
	case flip < 0 && !d.Next.At.IsZero() && d.Next.At.Before(end):
		return fmt.Sprintf("next is %+v, want none before %s", d.Next, end)
	case flip < 0:
		return ""
	}
	next := verdictOf(d.Next.State, d.Next.Reason, d.Next.By)
	if !d.Next.At.Equal(s.minute(flip)) || next != s.verdicts[flip] {
		return fmt.Sprintf("next is %+v, want %+v at %s", d.Next, s.verdicts[flip], s.minute(flip))
	}
	if s.covered[d.Next.By] != nil && !s.covered[d.Next.By][flip] {
		return fmt.Sprintf("next is by %s, which is not in force then", d.Next.By)
	}
	return ""
}

// judgeInterval is judge for the first interval from the minute i on.
func (s *scan) judgeInterval(i, flip int) string {
	until := flip
	if flip < 0 || flip > scanned {
		until = scanned
	}
	for got := range s.plan.Intervals(s.minute(i), s.minute(scanned)) {
		v := verdictOf(got.State, got.Reason, got.By)
		if !got.From.Equal(s.minute(i)) || !got.Until.Equal(s.minute(until)) || v != s.verdicts[i] {
			return fmt.Sprintf("the interval is %+v, want until %s", got, s.minute(until))
		}
		return ""
	}
	return "there is no interval"
}
