package act

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// now is a Saturday.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// freezing returns a Gate that is closed by default and has a close period of a day from now.
func freezing(mode v1alpha1.Override) *v1alpha1.Gate {
	from, until := metav1.NewTime(now), metav1.NewTime(now.AddDate(0, 0, 1))
	return &v1alpha1.Gate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "production"},
		Spec: v1alpha1.GateSpec{
			Default:      v1alpha1.StateClosed,
			ClosePeriods: []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}, Override: mode}},
		},
	}
}

func TestExceptionsOpenAndCloseForBothDefaults(t *testing.T) {
	for _, closes := range []bool{false, true} {
		for _, byDefault := range []v1alpha1.State{v1alpha1.StateClosed, v1alpha1.StateOpened} {
			g := freezing(v1alpha1.OverrideAllow)
			if g.Spec.Default = byDefault; closes {
				g.Spec.ClosePeriods = nil
			}
			f := &exceptionFlags{closes: closes, lasts: "1h"}
			e, err := f.exception(client.ObjectKeyFromObject(g), g, now)
			if err != nil {
				t.Fatal(err)
			}
			if errs := timetable.ValidateException(e); len(errs) > 0 {
				t.Errorf("invalid: %v", errs)
			}
			if doubts, inVain := (plannedException{gate: g, exception: e}).warnings(now); len(doubts) > 0 || inVain != "" {
				t.Errorf("closes %t, a gate that is %s by default: %q", closes, byDefault, doubts)
			}
			e.CreationTimestamp = preview.NotCreated
			want := "opened"
			if closes {
				want = "closed"
			}
			if d := gate.Decide(g, now.Add(time.Minute), e); string(d.State) != want {
				t.Errorf("the gate is %s by default, the exception brings %s, want %s", byDefault, d.State, want)
			}
		}
	}
}

func TestIneffectiveExceptionsAreReported(t *testing.T) {
	onlyCloses := anException(now.Add(30 * time.Minute))
	onlyCloses.Spec.OpenPeriods, onlyCloses.Spec.Default = nil, v1alpha1.StateClosed
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Gate)
		others []*v1alpha1.GateException
		want   []string
		inVain string
	}{
		"nothing does": {func(*v1alpha1.Gate) {}, nil, nil, ""},
		"a hard freeze": {
			func(g *v1alpha1.Gate) { g.Spec.ClosePeriods[0].Override = v1alpha1.OverrideDeny }, nil, nil,
			"the gate stays closed: close period freeze (override: Deny)",
		},
		"a hard freeze that ends before": {
			func(g *v1alpha1.Gate) {
				g.Spec.ClosePeriods[0].Override, g.Spec.ClosePeriods[0].Until = v1alpha1.OverrideDeny, v1alpha1.NewDateTime(now.Add(30*time.Minute))
			},
			nil, []string{"the gate is still closed from 2026-11-21 12:00 UTC until 2026-11-21 12:30 UTC: close period freeze (override: Deny)"}, "",
		},
		"not that it waits for approvals, which is said otherwise": {
			func(g *v1alpha1.Gate) {
				g.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 2}}
			}, nil, nil, "",
		},
		"a suspended gate": {func(g *v1alpha1.Gate) { g.Spec.Suspend = true }, nil, []string{"the gate is suspended"}, ""},
		"an invalid gate":  {func(g *v1alpha1.Gate) { g.Spec.TimeZone = "Mars" }, nil, []string{"the spec of the gate is invalid"}, ""},
		"another exception at that time": {
			func(*v1alpha1.Gate) {}, []*v1alpha1.GateException{anException(now.Add(30 * time.Minute))}, []string{"it overlaps with gateexception flux-system/hotfix, which is in force from "}, "",
		},
		"one that only closes": {
			func(*v1alpha1.Gate) {}, []*v1alpha1.GateException{onlyCloses}, []string{"the gate is still closed from 2026-11-21 12:30 UTC until 2026-11-21 13:00 UTC: exception hotfix"}, "",
		},
		"not one that begins when it ends": {func(*v1alpha1.Gate) {}, []*v1alpha1.GateException{anException(now.Add(time.Hour))}, nil, ""},
		"notAfter": {
			func(g *v1alpha1.Gate) { g.Spec.NotAfter = &metav1.Time{Time: now.Add(30 * time.Minute)} }, nil,
			[]string{"the gate is still closed from 2026-"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := freezing(v1alpha1.OverrideAllow)
			tc.change(g)
			e, err := (&exceptionFlags{lasts: "1h", name: "new"}).exception(client.ObjectKeyFromObject(g), g, now)
			if err != nil {
				t.Fatal(err)
			}
			got, inVain := plannedException{gate: g, exception: e, others: tc.others}.warnings(now)
			if !slices.EqualFunc(got, tc.want, strings.HasPrefix) || inVain != tc.inVain {
				t.Errorf("got %q, %q, want %q, %q", got, inVain, tc.want, tc.inVain)
			}
		})
	}
}

func TestIneffectiveExceptionsForSomeTargetsAreReported(t *testing.T) {
	apps := []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}}
	forApps := func(e *v1alpha1.GateException) { e.Spec.Targets = apps }
	shuts := func(e *v1alpha1.GateException) { e.Spec.Default = v1alpha1.StateClosed }
	deny := func(g *v1alpha1.Gate) { g.Spec.ClosePeriods[0].Override = v1alpha1.OverrideDeny }
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Gate)
		others []*v1alpha1.GateException
		want   []string
		inVain string
	}{
		"nothing does":  {func(*v1alpha1.Gate) {}, nil, nil, ""},
		"a hard freeze": {deny, nil, nil, "these targets stay closed: close period freeze (override: Deny)"},
		"a hard freeze that ends before": {
			func(g *v1alpha1.Gate) {
				deny(g)
				g.Spec.ClosePeriods[0].Until = v1alpha1.NewDateTime(now.Add(30 * time.Minute))
			},
			nil, []string{"these targets are still closed from 2026-11-21 12:00 UTC until 2026-11-21 12:30 UTC: close period freeze (override: Deny)"}, "",
		},
		"a close request for the gate": {
			func(g *v1alpha1.Gate) {
				g.Status.Requests = []v1alpha1.AcceptedRequest{{Action: v1alpha1.RequestClose, State: v1alpha1.RequestInForce, Unlimited: true, RequestedAt: metav1.NewMicroTime(now)}}
			},
			nil, nil, "these targets stay closed: close request",
		},
		"a suspended gate":                {func(g *v1alpha1.Gate) { g.Spec.Suspend = true }, nil, []string{"the gate is suspended"}, ""},
		"not one that closes the gate":    {func(*v1alpha1.Gate) {}, []*v1alpha1.GateException{anException(now, shuts)}, nil, ""},
		"not an exception for the target": {func(*v1alpha1.Gate) {}, []*v1alpha1.GateException{anException(now, forApps)}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := freezing(v1alpha1.OverrideAllow)
			tc.change(g)
			e := anException(now, forApps, func(e *v1alpha1.GateException) { e.Name = "new" })
			got, inVain := plannedException{gate: g, exception: e, others: tc.others}.warnings(now)
			if !slices.EqualFunc(got, tc.want, strings.HasPrefix) || inVain != tc.inVain {
				t.Errorf("got %q, %q, want %q, %q", got, inVain, tc.want, tc.inVain)
			}
			if !e.HasTargets() {
				t.Error("the exception has lost its targets")
			}
		})
	}
}

func TestPeriodsAreParsed(t *testing.T) {
	for text, want := range map[string]string{
		"22:00-05:00":                 "period-1: daily from 22:00 to 05:00",
		"mon-fri 10:00-12:00":         "period-1: Monday, Tuesday, Wednesday, Thursday, Friday from 10:00 to 12:00",
		"sun,SAT 08:00-24:00":         "period-1: Saturday, Sunday from 08:00 to 24:00",
		"friday-monday 08:00-09:00":   "period-1: Monday, Friday, Saturday, Sunday from 08:00 to 09:00",
		"mon,wed-thu 08:00-09:00":     "period-1: Monday, Wednesday, Thursday from 08:00 to 09:00",
		"daily 08:00-09:00":           `"daily" is not a day`,
		"mo 08:00-09:00":              `"mo" is not a day`,
		"":                            "write 22:00-05:00",
		"22:00":                       "write 22:00-05:00",
		"monday from 8 to 9 in Paris": "write 22:00-05:00",
	} {
		periods, err := readPeriods([]string{text})
		got := ""
		if err != nil {
			got = strings.TrimPrefix(err.Error(), `--period "`+text+`": `)
		} else {
			got = describePeriod(&periods[0], "", time.UTC)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestExceptionFlagsSelectListAndZone(t *testing.T) {
	tokyo := freezing(v1alpha1.OverrideAllow)
	tokyo.Spec.TimeZone = "Asia/Tokyo"
	period := []string{"22:00-05:00"}
	for name, tc := range map[string]struct {
		flags exceptionFlags
		gate  *v1alpha1.Gate
		want  string
	}{
		"neither":                         {exceptionFlags{}, tokyo, "opens all"},
		"--close":                         {exceptionFlags{closes: true}, tokyo, "closes all"},
		"--period":                        {exceptionFlags{periods: period}, tokyo, "Asia/Tokyo opens period-1"},
		"--close --period":                {exceptionFlags{closes: true, periods: period}, tokyo, "Asia/Tokyo closes period-1"},
		"--period of a gate without zone": {exceptionFlags{periods: period}, freezing(v1alpha1.OverrideAllow), "UTC opens period-1"},
		"--period --timezone":             {exceptionFlags{periods: period, zone: "Europe/Oslo"}, tokyo, "Europe/Oslo opens period-1"},
		"--period without a gate":         {exceptionFlags{periods: period, zone: "Europe/Oslo"}, nil, "Europe/Oslo opens period-1"},
		"--default closed":                {exceptionFlags{rest: "closed"}, tokyo, "default closed"},
		"--default closed --period":       {exceptionFlags{rest: "closed", periods: period}, tokyo, "Asia/Tokyo opens period-1 default closed"},
		"--default closed --close":        {exceptionFlags{rest: "closed", closes: true, periods: period}, tokyo, "Asia/Tokyo closes period-1 default closed"},
		"--default opened --period":       {exceptionFlags{rest: "opened", periods: period}, tokyo, "Asia/Tokyo closes period-1 default opened"},
		"--default opened --open":         {exceptionFlags{rest: "opened", opens: true, periods: period}, tokyo, "Asia/Tokyo opens period-1 default opened"},
	} {
		tc.flags.lasts = "1h"
		e, err := tc.flags.exception(client.ObjectKeyFromObject(tokyo), tc.gate, now)
		if err != nil {
			t.Fatal(err)
		}
		words := []string{string(e.Spec.TimeZone)}
		for _, p := range e.Spec.OpenPeriods {
			words = append(words, "opens "+p.Name)
		}
		for _, p := range e.Spec.ClosePeriods {
			words = append(words, "closes "+p.Name)
		}
		if e.Spec.Default != "" {
			words = append(words, "default "+string(e.Spec.Default))
		}
		if got := strings.TrimSpace(strings.Join(words, " ")); got != tc.want || len(timetable.ValidateException(e)) > 0 {
			t.Errorf("%s: got %q, want %q, %v", name, got, tc.want, timetable.ValidateException(e))
		}
	}
}

func TestDefaultNamesAreValid(t *testing.T) {
	at := time.Date(2026, 11, 26, 15, 4, 5, 0, time.FixedZone("here", 3600))
	if got := defaultName("production", at); got != "production-20261126-140405" {
		t.Error(got)
	}
	if got := defaultName(strings.Repeat("a.", 126)+"b", at); len(got) > longestName || strings.Contains(got, ".-") {
		t.Errorf("%d: %s", len(got), got)
	}
}

func TestExceptionEndsAfterItBegins(t *testing.T) {
	for _, tc := range []struct{ from, until, want string }{
		{"14:00", "16:00", "11-21 14:00 to 11-21 16:00"},
		{"11:00", "13:00", "11-22 11:00 to 11-22 13:00"},
		{"23:00", "01:00", "11-21 23:00 to 11-22 01:00"},
		{"friday 22:00", "monday 05:00", "11-27 22:00 to 11-30 05:00"},
		{"22:00", "tomorrow 23:00", "11-21 22:00 to 11-22 23:00"},
		{"", "2h", "11-21 12:00 to 11-21 14:00"},
		{"13:00", "2h", "11-21 13:00 to 11-21 15:00"},
		{"2026-12-24", "2026-12-31 12:00", "12-24 00:00 to 12-31 12:00"},
	} {
		from, until, err := (&exceptionFlags{from: tc.from, until: tc.until}).validity(now)
		if got := from.Format("01-02 15:04") + " to " + until.Format("01-02 15:04"); err != nil || got != tc.want {
			t.Errorf("from %s until %s: %s, %v, want %s", tc.from, tc.until, got, err, tc.want)
		}
	}
}
