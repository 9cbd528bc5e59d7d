package schedule_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

func TestIntervals(t *testing.T) {
	for _, tt := range []struct {
		name        string
		config      schedule.Config
		from, until int
		want        []string
	}{
		{"all of June", june(), 1, 30,
			[]string{
				"1-10 closed OutsideOpenPeriods ", "10-12 opened OpenPeriod window", "12-13 closed ClosePeriod soft",
				"13-14 opened OpenPeriod window", "14-15 closed ClosePeriod hard", "15-20 opened OpenPeriod window",
				"20-30 closed OutsideOpenPeriods ",
			}},
		{"a range within one state", june(), 16, 18, []string{"16-18 opened OpenPeriod window"}},
		{"a range that ends where the state changes", june(), 11, 12, []string{"11-12 opened OpenPeriod window"}},
		{"a range that begins where the state changes", june(), 12, 13, []string{"12-13 closed ClosePeriod soft"}},
		{"a range of nothing", june(), 11, 11, nil},
		{"a range the wrong way round", june(), 12, 11, nil},
		{"a reason that changes within a state is that of its beginning", requested([2]int{11, 13}, [2]int{}), 10, 16,
			[]string{"10-14 opened OpenPeriod window", "14-15 closed ClosePeriod hard", "15-16 opened OpenPeriod window"}},
		{"a plan without an end", schedule.Config{}, 1, 30, []string{"1-30 closed Default "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for i := range newPlan(tt.config).Intervals(utc(juneDay(tt.from)), utc(juneDay(tt.until))) {
				got = append(got, fmt.Sprintf("%d-%d %s %s %s", i.From.Day(), i.Until.Day(), i.State, i.Reason, i.By))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%q, want\n%q", got, tt.want)
			}
		})
	}
}

func TestIntervalsCanBeReadTwice(t *testing.T) {
	intervals := newPlan(june()).Intervals(utc(juneDay(1)), utc(juneDay(30)))
	if first, second := slices.Collect(intervals), slices.Collect(intervals); !slices.Equal(first, second) {
		t.Errorf("first %v, then %v", first, second)
	}
}

func TestIntervalsAreInUTC(t *testing.T) {
	oslo := time.FixedZone("Oslo", 2*60*60)
	plan := newPlan(june())
	for i := range plan.Intervals(utc(juneDay(1)).In(oslo), utc(juneDay(30)).In(oslo)) {
		if i.From.Location() != time.UTC || i.Until.Location() != time.UTC {
			t.Errorf("%s to %s", i.From, i.Until)
		}
	}
	if d := plan.Decide(utc(juneDay(1)).In(oslo)); d.Until.Location() != time.UTC || d.Next.At.Location() != time.UTC {
		t.Errorf("%+v", d)
	}
}
