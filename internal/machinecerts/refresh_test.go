package machinecerts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/machinecerts"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func opened(change ...func(*machinecerts.Policy)) machinecerts.Policy {
	g := machinecerts.Policy{Name: "ops/nights", Open: true, Within: 30 * day, Timeout: time.Hour, Margin: day}
	for _, c := range change {
		c(&g)
	}
	return g
}

func closed(change ...func(*machinecerts.Policy)) machinecerts.Policy {
	return opened(append([]func(*machinecerts.Policy){func(g *machinecerts.Policy) { g.Open = false }}, change...)...)
}

func strict(g *machinecerts.Policy) { g.Strict = true }
func idle(g *machinecerts.Policy)   { g.Idle = true }

// machine returns a worker whose certificates expire some time from now.
func machine(name string, expires time.Duration, change ...func(*machinecerts.Machine)) machinecerts.Machine {
	m := machinecerts.Machine{
		Name: "fleet/" + name, Cluster: "fleet/c1", Selected: true, Expiry: now.Add(expires).Format(time.RFC3339),
	}
	for _, c := range change {
		c(&m)
	}
	return m
}

func controlPlane(m *machinecerts.Machine) { m.ControlPlane = true }
func deleting(m *machinecerts.Machine)     { m.Deleting = true }
func stray(m *machinecerts.Machine)        { m.Selected = false }
func theirs(m *machinecerts.Machine)       { m.Request = machinecerts.Others }
func orphan(m *machinecerts.Machine)       { m.Request = machinecerts.Ours }
func removed(m *machinecerts.Machine)      { m.Request = machinecerts.None }
func renewed(m *machinecerts.Machine)      { m.Expiry = now.Add(365 * day).Format(time.RFC3339) }

func of(cluster string) func(*machinecerts.Machine) {
	return func(m *machinecerts.Machine) { m.Cluster = cluster }
}

func status(s string) func(*machinecerts.Machine) {
	return func(m *machinecerts.Machine) { m.Status = s }
}

func expiry(s string) func(*machinecerts.Machine) {
	return func(m *machinecerts.Machine) { m.Expiry = s }
}

// asked returns a change that adds a request that was made some time ago, when the certificates had their current expiry.
func asked(gate string, ago time.Duration) func(*machinecerts.Machine) {
	return func(m *machinecerts.Machine) {
		at, err := time.Parse(time.RFC3339, m.Expiry)
		if err != nil {
			panic(err)
		}
		m.Request = machinecerts.Ours
		m.Record = &machinecerts.Record{Refresh: gate, RequestedAt: now.Add(-ago), Expiry: at}
	}
}

const us = "ops/nights"

// ends returns the ended refreshes as "name outcome".
func ends(d machinecerts.Decision) []string {
	names := []string{"done", "failed", "too short", "withdrawn", "taken over"}
	var all []string
	for _, e := range d.Ends {
		all = append(all, strings.TrimPrefix(e.Machine, "fleet/")+" "+names[e.Outcome])
	}
	return all
}

func next(d machinecerts.Decision) []string {
	var all []string
	for _, name := range d.Next {
		all = append(all, strings.TrimPrefix(name, "fleet/"))
	}
	return all
}

func TestMostUrgentMachineIsNext(t *testing.T) {
	for name, tc := range map[string]struct {
		gate      machinecerts.Policy
		machines  []machinecerts.Machine
		next      []string
		due, held int
	}{
		"none at all": {gate: opened()},
		"none that is due": {gate: opened(), machines: []machinecerts.Machine{
			machine("a", 30*day+time.Second), machine("b", 300*day),
		}},
		"due to the second": {gate: opened(), machines: []machinecerts.Machine{machine("a", 30*day)}, next: []string{"a"}, due: 1},
		"expired already":   {gate: opened(), machines: []machinecerts.Machine{machine("a", -day)}, next: []string{"a"}, due: 1},
		"the soonest expiry first, then the name": {gate: opened(), machines: []machinecerts.Machine{
			machine("c", 2*day), machine("b", 3*day), machine("a", 3*day), machine("d", day),
		}, next: []string{"d", "c", "a", "b"}, due: 4},
		"the control plane first, however late it expires": {gate: opened(), machines: []machinecerts.Machine{
			machine("w", -day), machine("cp-b", 29*day, controlPlane), machine("cp-a", 29*day, controlPlane),
		}, next: []string{"cp-a", "cp-b", "w"}, due: 3},
		"an expiry in another zone": {gate: opened(), machines: []machinecerts.Machine{
			machine("b", 0, expiry("2026-11-24T01:00:00+02:00")), machine("a", 0, expiry("2026-11-23T23:30:00Z")),
		}, next: []string{"b", "a"}, due: 2},
		"no expiry yet":   {gate: opened(), machines: []machinecerts.Machine{machine("a", 0, expiry(""))}},
		"being deleted":   {gate: opened(), machines: []machinecerts.Machine{machine("a", day, deleting)}},
		"not governed":    {gate: opened(), machines: []machinecerts.Machine{machine("a", day, stray)}},
		"after a failure": {gate: opened(idle), machines: []machinecerts.Machine{machine("a", day)}, due: 1},
		"a gate that does not say how": {gate: machinecerts.Policy{Name: us, Open: true, Idle: true, Margin: day}, machines: []machinecerts.Machine{
			machine("a", day),
		}},
		"a status of an earlier round": {gate: opened(), machines: []machinecerts.Machine{
			machine("a", day, status("done")), machine("b", 2*day, status("failed")),
		}, next: []string{"a", "b"}, due: 2},
	} {
		t.Run(name, func(t *testing.T) { expectNext(t, tc.gate, tc.machines, tc.next, tc.due, tc.held) })
	}
}

func expectNext(t *testing.T, gate machinecerts.Policy, machines []machinecerts.Machine, want []string, due, held int) {
	t.Helper()
	d := machinecerts.Decide(gate, machines, now)
	if !slices.Equal(next(d), want) || d.Due != due || d.Held != held || len(d.Ends) > 0 {
		t.Errorf("got %v, %d due, %d held, ends %v; want %v, %d due, %d held", next(d), d.Due, d.Held, ends(d), want, due, held)
	}
}

func TestClosedGateRefreshesOnlyImminentExpiry(t *testing.T) {
	short := func(g *machinecerts.Policy) { g.Within = time.Hour }
	for name, tc := range map[string]struct {
		gate      machinecerts.Policy
		machines  []machinecerts.Machine
		next      []string
		due, held int
	}{
		"waiting":                  {gate: closed(), machines: []machinecerts.Machine{machine("a", 2*day), machine("b", 90*day)}, due: 1, held: 1},
		"at the margin":            {gate: closed(), machines: []machinecerts.Machine{machine("a", day), machine("b", day+time.Second)}, next: []string{"a"}, due: 2, held: 1},
		"expired":                  {gate: closed(), machines: []machinecerts.Machine{machine("a", -day)}, next: []string{"a"}, due: 1},
		"strict":                   {gate: closed(strict), machines: []machinecerts.Machine{machine("a", -day)}, due: 1, held: 1},
		"the margin is not longer": {gate: closed(short), machines: []machinecerts.Machine{machine("a", 2*time.Hour)}},
		"the provider is busy":     {gate: closed(), machines: []machinecerts.Machine{machine("a", 2*day, status("in-progress"))}, due: 1},
		"after a failure":          {gate: closed(idle), machines: []machinecerts.Machine{machine("a", time.Hour)}, due: 1},
	} {
		t.Run(name, func(t *testing.T) { expectNext(t, tc.gate, tc.machines, tc.next, tc.due, tc.held) })
	}
}

func TestOneMachineAtATime(t *testing.T) {
	for name, tc := range map[string]struct {
		machine machinecerts.Machine
		next    []string
		running string
		faults  int
	}{
		"nothing else":                           {machine("x", 90*day), []string{"a", "b"}, "", 0},
		"ours is pending":                        {machine("x", day, asked(us, time.Minute)), nil, "fleet/x", 0},
		"ours is in progress":                    {machine("x", day, asked(us, time.Minute), status("in-progress")), nil, "fleet/x", 0},
		"ours, which the gate no longer governs": {machine("x", day, asked(us, time.Minute), status("in-progress"), stray), nil, "fleet/x", 0},
		"ours, in another cluster":               {machine("x", day, asked(us, time.Minute), of("fleet/c2")), nil, "fleet/x", 0},
		"ours, on a machine that is deleted":     {machine("x", day, asked(us, time.Minute), deleting), []string{"a", "b"}, "", 0},
		"that of another gate":                   {machine("x", day, asked("ops/other", time.Minute)), []string{"b"}, "", 0},
		"somebody's":                             {machine("x", 90*day, theirs), []string{"b"}, "", 0},
		"somebody's, which failed":               {machine("x", 90*day, theirs, status("failed")), []string{"b"}, "", 1},
		"somebody's, in another cluster":         {machine("x", 90*day, theirs, of("fleet/c3")), []string{"a", "b"}, "", 0},
		"nobody's, but the provider is busy":     {machine("x", 90*day, status("in-progress")), []string{"b"}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := machinecerts.Decide(opened(), []machinecerts.Machine{machine("a", day), machine("b", 2*day, of("fleet/c2")), tc.machine}, now)
			if !slices.Equal(next(d), tc.next) || d.Running != tc.running || len(d.Faults) != tc.faults || len(d.Ends) > 0 {
				t.Errorf("got %v, running %q, ends %v, faults %v", next(d), d.Running, ends(d), d.Faults)
			}
		})
	}
}

// A provider that is busy with a Machine ignores a new request for it.
func TestBusyMachineIsNotStarted(t *testing.T) {
	d := machinecerts.Decide(opened(), []machinecerts.Machine{machine("a", day, status("in-progress"))}, now)
	if len(d.Next) > 0 || d.Due != 1 {
		t.Errorf("got %+v", d)
	}
}

func TestStuckMachineIsOneFailure(t *testing.T) {
	failed, waiting := machine("z", 90*day, theirs, status("failed")), machine("y", 80*day, theirs)
	d := machinecerts.Decide(opened(), []machinecerts.Machine{failed, waiting, machine("a", day), machine("b", day)}, now)
	if len(d.Faults) != 1 || d.Faults[0].Machine != "fleet/z" {
		t.Errorf("got %+v", d.Faults)
	}
}

func TestRefreshOutcomes(t *testing.T) {
	pending, old := asked(us, time.Minute), asked(us, time.Hour)
	for name, tc := range map[string]struct {
		gate    machinecerts.Policy
		machine machinecerts.Machine
		want    string
		message string
	}{
		"pending":                             {opened(), machine("a", day, pending), "", ""},
		"pending, of an earlier round: done":  {opened(), machine("a", day, pending, status("done")), "", ""},
		"in progress":                         {opened(), machine("a", day, pending, status("in-progress")), "", ""},
		"done":                                {opened(), machine("a", day, pending, removed, status("done"), renewed), "a done", "2027-11-23"},
		"done after the timeout":              {opened(), machine("a", day, old, removed, status("done"), renewed), "a done", ""},
		"done while closed":                   {closed(), machine("a", day, pending, removed, status("done"), renewed), "a done", ""},
		"done, but the request is there":      {opened(), machine("a", day, pending, status("done"), renewed), "", ""},
		"done, but the expiry is not later":   {opened(), machine("a", day, pending, removed, status("done")), "", ""},
		"done, but the expiry is gone":        {opened(), machine("a", day, pending, removed, status("done"), expiry("")), "", ""},
		"renewed, but not done":               {opened(), machine("a", day, pending, removed, renewed, status("in-progress")), "", ""},
		"done, but due at once":               {opened(), machine("a", day, pending, removed, status("done"), expiry("2026-12-20T00:00:00Z")), "a too short", "2026-12-20"},
		"failed":                              {opened(), machine("a", day, pending, status("failed")), "a failed", "the provider reports"},
		"failed, and the request was removed": {opened(), machine("a", day, pending, removed, status("failed")), "a failed", ""},
		"failed while closed":                 {closed(), machine("a", day, pending, status("failed")), "a failed", ""},
		"just before the timeout":             {opened(), machine("a", day, asked(us, time.Hour-time.Second)), "", ""},
		"silently ignored":                    {opened(), machine("a", day, old), "a failed", "had not ended after 1h0m0s: the request still exists, there is no status"},
		"stuck in progress":                   {opened(), machine("a", day, old, status("in-progress")), "a failed", `the status is "in-progress"`},
		"stuck in progress while closed":      {closed(), machine("a", day, old, status("in-progress")), "a failed", ""},
		"never advances":                      {opened(), machine("a", day, old, removed, status("done")), "a failed", `the request was removed, the status is "done", the certificates expire at "2026-11-24T12:00:00Z"`},
		"pending while closed":                {closed(), machine("a", 2*day, pending), "a withdrawn", ""},
		"pending while closed, at the margin": {closed(), machine("a", day, pending), "", ""},
		"pending while closed, strict":        {closed(strict), machine("a", day, pending), "a withdrawn", ""},
		"in progress while closed":            {closed(strict), machine("a", 2*day, pending, status("in-progress")), "", ""},
		"pending, no longer governed":         {opened(), machine("a", day, pending, stray), "a withdrawn", ""},
		"in progress, no longer governed":     {opened(), machine("a", day, pending, stray, status("in-progress")), "", ""},
		"another gate's, pending":             {opened(), machine("a", day, asked("ops/other", 2*time.Hour)), "", ""},
		"another gate's, while we are closed": {closed(), machine("a", 2*day, asked("ops/other", time.Minute)), "", ""},
		"another gate's, in progress":         {closed(), machine("a", 2*day, asked("ops/other", 2*time.Hour), status("in-progress")), "", ""},
		"another gate's, done":                {closed(), machine("a", 2*day, asked("ops/other", time.Minute), removed, status("done"), renewed), "", ""},
		"no record":                           {opened(), machine("a", day, orphan), "a withdrawn", ""},
		"no record, in progress":              {opened(), machine("a", day, orphan, status("in-progress")), "", ""},
		"no record, nobody's":                 {machinecerts.Policy{Timeout: time.Hour}, machine("a", day, orphan, stray), "a withdrawn", ""},
		"taken over":                          {closed(), machine("a", day, pending, theirs), "a taken over", ""},
		"taken over after the timeout":        {opened(), machine("a", day, old, theirs, status("failed")), "a taken over", ""},
		"somebody's, while closed":            {closed(strict), machine("a", day, theirs), "", ""},
		"being deleted":                       {closed(), machine("a", 2*day, old, deleting), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := machinecerts.Decide(tc.gate, []machinecerts.Machine{tc.machine}, now)
			if got := strings.Join(ends(d), ", "); got != tc.want {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
			if len(d.Ends) > 0 && !strings.Contains(d.Ends[0].Message, tc.message) {
				t.Errorf("message %q, want %q", d.Ends[0].Message, tc.message)
			}
		})
	}
}

func TestOnlyFailuresStopTheBatch(t *testing.T) {
	for outcome, want := range map[machinecerts.Outcome]bool{
		machinecerts.Done: false, machinecerts.Failed: true, machinecerts.TooShort: true, machinecerts.Withdrawn: false, machinecerts.TakenOver: false,
	} {
		if outcome.Stops() != want {
			t.Errorf("outcome %d: got %t", outcome, !want)
		}
	}
}

func TestRecheckTimes(t *testing.T) {
	for name, tc := range map[string]struct {
		gate    machinecerts.Policy
		machine machinecerts.Machine
		want    time.Duration
	}{
		"when it becomes due":                          {opened(), machine("a", 40*day), 10 * day},
		"also while the gate is closed":                {closed(), machine("a", 40*day), 10 * day},
		"when the margin begins":                       {closed(), machine("a", 4*day), 3 * day},
		"not at the margin of a strict gate":           {closed(strict), machine("a", 4*day), 0},
		"not at the margin while it is open":           {opened(idle), machine("a", 4*day), 0},
		"at the timeout":                               {opened(), machine("a", day, asked(us, time.Minute)), 59 * time.Minute},
		"at the timeout of what is no longer governed": {opened(), machine("a", day, asked(us, time.Minute), status("in-progress"), stray), 59 * time.Minute},
		"not for another gate's":                       {opened(), machine("a", day, asked("ops/other", time.Minute)), 0},
		"not for a broken expiry":                      {opened(), machine("a", day, expiry("tomorrow")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := machinecerts.Decide(tc.gate, []machinecerts.Machine{tc.machine, machine("late", 300*day), machine("gone", 35*day, deleting)}, now)
			want := now.Add(tc.want)
			if tc.want == 0 {
				want = now.Add(270 * day) // the recheck for the Machine late
			}
			if !d.Recheck.Equal(want) {
				t.Errorf("got %s, want %s", d.Recheck, want)
			}
		})
	}
	if d := machinecerts.Decide(opened(), nil, now); !d.Recheck.IsZero() {
		t.Errorf("nothing to wait for: %s", d.Recheck)
	}
}

func TestInvalidExpiryIsError(t *testing.T) {
	for _, value := range []string{"tomorrow", "2026-11-23", "1795435200", "2026-11-23T12:00:00"} {
		d := machinecerts.Decide(opened(), []machinecerts.Machine{machine("a", 0, expiry(value)), machine("b", day)}, now)
		if len(d.Faults) != 1 || d.Faults[0].Machine != "fleet/a" || !slices.Equal(next(d), []string{"b"}) {
			t.Errorf("%q: got %+v", value, d)
		}
	}
}

func TestRecordRoundTrip(t *testing.T) {
	record := machinecerts.Record{Refresh: us, RequestedAt: now.Add(time.Nanosecond), Expiry: now.Add(day)}
	const want = `{"refresh":"ops/nights","requestedAt":"2026-11-23T12:00:00.000000001Z","expiry":"2026-11-24T12:00:00Z"}`
	if record.String() != want {
		t.Errorf("got  %s\nwant %s", record, want)
	}
	if got := machinecerts.ParseRecord(want); got == nil || *got != record {
		t.Errorf("got %v", got)
	}
	for _, value := range []string{"", "{", "[]", `{"refresh":7}`, `{"refresh":"a/b","requestedAt":"tomorrow"}`} {
		if got := machinecerts.ParseRecord(value); got != nil {
			t.Errorf("%q: got %v", value, got)
		}
	}
}
