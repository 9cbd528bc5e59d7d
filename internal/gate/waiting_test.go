package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// eyesOn makes a Gate require approvals.
func eyesOn(required int32) func(*v1alpha1.GateSpec) {
	return func(s *v1alpha1.GateSpec) {
		s.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: required}}
	}
}

// asks requests an open as a user, and returns the result.
func asks(g *v1alpha1.Gate, who, value string, now time.Time) ledger.Request {
	annotate(g, v1alpha1.RequestOpen, value)
	by(g, v1alpha1.RequestOpen, who, "hotfix")
	handled := gate.ApplyRequests(g, ledger.Stamped, now)
	return handled[len(handled)-1]
}

// approve has people approve all requests of a Gate, and returns what came of it.
func approve(g *v1alpha1.Gate, now time.Time, people ...string) []ledger.Request {
	var lines []string
	for _, r := range g.Status.Requests {
		_, what, _ := strings.Cut(ledger.FormatRequestApproval(g, &r, now), ",")
		for _, who := range people {
			lines = append(lines, what+" "+who)
		}
	}
	g.Annotations[v1alpha1.ApproveRequestedByAnnotation] = strings.Join(lines, "\n")
	return gate.ApplyRequests(g, ledger.Stamped, now)
}

func TestWaitingRequestHasMissingApprovals(t *testing.T) {
	g := closed(eyesOn(3))
	g.Name, g.Namespace = "production", "ops"
	if got := asks(g, "alice", stamp(noon), noon); got.Err != nil || got.String() != "open requested at 2026-11-23T12:00:00Z by alice, waits for 3 approvals: hotfix" {
		t.Errorf("it is told as %q, %v", got, got.Err)
	}
	const how = ": approve it with kubectl gate approve gate/production -n ops"
	says := func(now time.Time, want string) {
		t.Helper()
		if d := gate.Decide(g, now); d.State != v1alpha1.StateClosed || d.Message != want {
			t.Errorf("%s\ngot  %s\nwant %s", d.State, d.Message, want)
		}
	}
	says(noon, "Gate closed by default, an open request of alice at 2026-11-23T12:00:00Z waits for 3 more approvals"+how)
	news := approve(g, noon, "bob", "carol")
	if len(news) != 2 || news[1].ApprovedBy != "carol" || news[1].String() != "open requested at 2026-11-23T12:00:00Z by alice, approved by bob, carol, waits for 1 approval: hotfix" {
		t.Errorf("news %v", news)
	}
	says(noon, "Gate closed by default, an open request of alice at 2026-11-23T12:00:00Z waits for 1 more approval (has bob, carol)"+how)
	asks(g, "dora", stamp(noon.Add(time.Second)), noon.Add(time.Minute))
	says(noon.Add(time.Minute), "Gate closed by default, an open request of dora at 2026-11-23T12:00:01Z waits for 3 more approvals, and 1 other waits"+how)
}

func TestRequestByUnknownRequesterIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		stamps ledger.Stamps
		who    string
	}{
		"without the policies":       {ledger.Unstamped, "alice"},
		"without a name":             {ledger.Stamped, ""},
		"in the name of the last":    {ledger.Stamped, "GateReceiver ops/ci"},
		"an emergency, without them": {ledger.Unstamped, "alice"},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed(eyesOn(1))
			annotate(g, v1alpha1.RequestOpen, stamp(noon))
			by(g, v1alpha1.RequestOpen, tc.who, "hotfix")
			g.Annotations[v1alpha1.OpenReceivedAnnotation] = ""
			if strings.HasPrefix(name, "an emergency") {
				g.Annotations[v1alpha1.OpenEmergencyAnnotation] = stamp(noon)
			}
			news := gate.ApplyRequests(g, tc.stamps, noon)
			if len(news) != 1 || news[0].Err == nil || !strings.Contains(news[0].Err.Error(), "the requester is not verified: that needs config/policies") {
				t.Errorf("news %v", news)
			}
			approve(g, noon, "bob")
			if d := gate.Decide(g, noon); d.State != v1alpha1.StateClosed || len(g.Status.Requests) > 0 {
				t.Errorf("%s: %+v", d.State, g.Status.Requests)
			}
		})
	}
}

// Whether names are stamped may be unknown for a while. A close does not wait for that.
func TestOpenWaitsWhileStampsAreUnknown(t *testing.T) {
	g := opened(eyesOn(1))
	annotate(g, v1alpha1.RequestOpen, stamp(noon))
	by(g, v1alpha1.RequestOpen, "alice", "")
	if !ledger.NeedsStamps(g) {
		t.Error("nobody asks")
	}
	annotate(g, v1alpha1.RequestClose, stamp(noon.Add(time.Second)))
	by(g, v1alpha1.RequestClose, "carl", "")
	news := gate.ApplyRequests(g, ledger.StampsUnknown, noon.Add(2*time.Second))
	if len(news) != 1 || news[0].Action != v1alpha1.RequestClose || gate.Decide(g, noon.Add(2*time.Second)).State != v1alpha1.StateClosed {
		t.Errorf("news %v", news)
	}
	if !ledger.NeedsStamps(g) {
		t.Error("nobody asks again")
	}
	if news = gate.ApplyRequests(g, ledger.Stamped, noon.Add(3*time.Second)); len(news) != 1 || news[0].Err == nil {
		t.Errorf("an open before the close is accepted: %v", news)
	}
	if ledger.NeedsStamps(g) {
		t.Error("there is nothing new")
	}
}

func TestCountedApprovers(t *testing.T) {
	long := strings.Repeat("x", 340)
	for _, who := range []string{"alice", "", " alice", "alice ", "bob\x00", long} {
		g := closed(eyesOn(1))
		asks(g, "alice", stamp(noon), noon)
		if news := approve(g, noon, who); len(news) > 0 || gate.Decide(g, noon).State != v1alpha1.StateClosed {
			t.Errorf("%q approves: %v", who, news)
		}
	}
}

func TestWaitingRequestsAreBoundedPerUser(t *testing.T) {
	g := closed(eyesOn(1))
	for i := range 8 {
		if got := asks(g, fmt.Sprint("user-", i), stamp(noon.Add(time.Duration(i)*time.Second)), noon.Add(time.Minute)); got.Err != nil {
			t.Fatal(got.Err)
		}
	}
	if got := asks(g, "user-8", stamp(noon.Add(8*time.Second)), noon.Add(time.Minute)); got.Err == nil {
		t.Error("a ninth waits")
	}
	if got := asks(g, "user-3", stamp(noon.Add(9*time.Second)), noon.Add(time.Minute)); got.Err != nil || len(g.Status.Requests) != 8 {
		t.Errorf("%v, %d wait", got.Err, len(g.Status.Requests))
	}
}

func TestStampedEmergencyWithReasonOpensImmediately(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, emergency string
		webhook           bool
		want              v1alpha1.State
	}{
		"with a reason":      {"outage", stamp(noon), false, v1alpha1.StateOpened},
		"without":            {"", stamp(noon), false, v1alpha1.StateClosed},
		"of another request": {"outage", stamp(noon.Add(-time.Hour)), false, v1alpha1.StateClosed},
		"by a webhook":       {"outage", stamp(noon), true, v1alpha1.StateClosed},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed(eyesOn(1))
			annotate(g, v1alpha1.RequestOpen, stamp(noon))
			who := "alice"
			if tc.webhook {
				who = "GateReceiver ops/ci"
			}
			by(g, v1alpha1.RequestOpen, who, tc.reason)
			g.Annotations[v1alpha1.OpenEmergencyAnnotation] = tc.emergency
			news := gate.ApplyRequests(g, ledger.Stamped, noon)
			d := gate.Decide(g, noon)
			if d.State != tc.want || news[0].Err == nil && news[0].Emergency != (tc.want == v1alpha1.StateOpened) {
				t.Errorf("%s: %s, %v", d.State, d.Message, news)
			}
			gate.RecordHistory(g, d, news, noon, tc.want == v1alpha1.StateOpened)
			if e := g.Status.History[0]; tc.want == v1alpha1.StateOpened && (!e.Emergency || len(g.Status.History) != 1) {
				t.Errorf("history %+v", g.Status.History)
			}
		})
	}
}

func TestApprovalNamesRequestAndGate(t *testing.T) {
	g := closed(eyesOn(2))
	g.UID = "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"
	asks(g, "alice", stamp(noon), noon)
	good := ledger.FormatRequestApproval(g, &g.Status.Requests[0], noon)
	if want := "2026-11-23T12:00:00Z,request=2026-11-23T12:00:00.000000Z,uid=" + string(g.UID); good != want {
		t.Errorf("got %s, want %s", good, want)
	}
}

func TestApprovalsOfRequests(t *testing.T) {
	runScripts(t, map[string]string{
		// A request begins with its last approval.
		"without an end":          `closed; approvals 1; 12:00 alice opens; 12:09 bob approves; 12:09 reconciles opened until never`,
		"for a while":             `closed; approvals 1; 12:00 alice opens /10m; 12:09 bob approves; 12:09 reconciles opened until 12:19; 12:19 reconciles closed`,
		"planned, in time":        `closed; approvals 1; 12:00 alice opens 13:00/10m; 12:09 bob approves; 12:59:59 reconciles closed; 13:00 reconciles opened until 13:10`,
		"planned, after its time": `closed; approvals 1; 12:00 alice opens 13:00/10m; 13:05 bob approves; 13:05 reconciles opened until 13:15`,

		// Without enough approvals it becomes void.
		"after its window": `closed; approvals 1; 12:00 alice opens /10m; 12:09:59 reconciles closed recheck 12:10
			12:10 bob approves ! is void, it lacked approvals at 2026-11-23T12:10:00Z; 12:10 is closed = Gate closed by default`,
		"after spec.window": `closed 1h; approvals 1; 12:00 alice opens /2h; 12:59:59 reconciles closed recheck 13:00
			13:00 bob approves ! is void, it lacked approvals at 2026-11-23T13:00:00Z; 13:00 is closed = Gate closed by default`,
		"after 7 days": `closed; approvals 1; 12:00 alice opens; 30T11:59:59 reconciles closed recheck 30T12:00
			30T12:00 bob approves ! is void, it lacked approvals at 2026-11-30T12:00:00Z; 30T12:00 is closed = Gate closed by default`,
		"after 7 days, with more": `closed; approvals 1; 12:00 alice opens /2000h; 30T11:59:59 reconciles closed recheck 30T12:00
			30T12:00 bob approves ! is void, it lacked approvals at 2026-11-30T12:00:00Z; 30T12:00 is closed`,
		"after its time, if planned": `closed; approvals 1; 12:00 alice opens 13:00/10m; 13:09:59 reconciles closed
			13:10 bob approves ! is void, it lacked approvals at 2026-11-23T13:10:00Z; 13:10 is closed = Gate closed by default`,
		"like a withdrawal": `closed 1h; approvals 1; 11:59 carl closes 11:58; 12:00 alice opens /0s; 12:59:59 reconciles closed recheck 13:00
			13:00 bob approves ! is void, it lacked approvals at 2026-11-23T13:00:00Z; 13:00 is closed`,
		"not later by a longer window": `closed 1h; approvals 1; 12:00 alice opens; window 9h; 12:59:59 reconciles closed recheck 13:00
			13:00 bob approves ! is void, it lacked approvals at 2026-11-23T13:00:00Z; 13:00 is closed = Gate closed by default`,

		// The number counts that the Gate requires now.
		"fewer":          `closed; approvals 2; 12:00 alice opens; 12:00 bob approves; 12:00 is closed; approvals 1; 12:01 reconciles opened`,
		"none":           `closed; approvals 2; 12:00 alice opens; 12:00 bob approves; approvals 0; 12:01 reconciles opened`,
		"more":           `closed; approvals 2; 12:00 alice opens; 12:00 bob approves; approvals 3; 12:01 reconciles closed`,
		"more, in force": `closed; approvals 1; 12:00 alice opens; 12:00 bob approves; approvals 3; 12:01 reconciles opened`,
		"none before":    `closed; approvals 0; 12:00 alice opens 13:00; approvals 1; 12:00 bob approves; 13:00 reconciles closed ! the requester is not verified`,
	})
}
