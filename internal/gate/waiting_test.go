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

func TestApprovedRequestBeginsWithLastApproval(t *testing.T) {
	for name, tc := range map[string]struct {
		value      string
		approvedAt time.Time
		from, till time.Time
	}{
		"without an end":          {stamp(noon), noon.Add(9 * time.Minute), noon.Add(9 * time.Minute), time.Time{}},
		"for a while":             {stamp(noon) + "/10m", noon.Add(9 * time.Minute), noon.Add(9 * time.Minute), noon.Add(19 * time.Minute)},
		"planned, in time":        {stamp(noon.Add(time.Hour)) + "/10m", noon.Add(9 * time.Minute), noon.Add(time.Hour), noon.Add(70 * time.Minute)},
		"planned, after its time": {stamp(noon.Add(time.Hour)) + "/10m", noon.Add(65 * time.Minute), noon.Add(65 * time.Minute), noon.Add(75 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed(eyesOn(1))
			asks(g, "alice", tc.value, noon)
			approve(g, tc.approvedAt, "bob")
			opened := func(now time.Time) bool {
				gate.ApplyRequests(g, ledger.Stamped, now)
				return gate.Decide(g, now).State == v1alpha1.StateOpened
			}
			if tc.from.After(tc.approvedAt) && opened(tc.from.Add(-time.Second)) || !opened(tc.from) {
				t.Errorf("it does not open at %s: %+v", tc.from, g.Status.Requests)
			}
			if last := tc.till.Add(-time.Second); !tc.till.IsZero() && (!opened(last) || opened(tc.till)) {
				t.Errorf("it does not close at %s: %+v", tc.till, g.Status.Requests)
			}
		})
	}
}

func TestUnapprovedRequestIsVoidAfterDeadline(t *testing.T) {
	week := 7 * 24 * time.Hour
	for name, tc := range map[string]struct {
		g     *v1alpha1.Gate
		value string
		until time.Duration
	}{
		"after its window":             {closed(eyesOn(1)), stamp(noon) + "/10m", 10 * time.Minute},
		"after spec.window":            {closed(eyesOn(1), window(time.Hour)), stamp(noon) + "/2h", time.Hour},
		"after 7 days":                 {closed(eyesOn(1)), stamp(noon), week},
		"after 7 days, with more":      {closed(eyesOn(1)), stamp(noon) + "/2000h", week},
		"after its time, if planned":   {closed(eyesOn(1)), stamp(noon.Add(time.Hour)) + "/10m", 70 * time.Minute},
		"like a withdrawal":            {closed(eyesOn(1), window(time.Hour)), stamp(noon) + "/0s", time.Hour},
		"not later by a longer window": {closed(eyesOn(1), window(time.Hour)), stamp(noon), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasSuffix(tc.value, "/0s") {
				annotate(tc.g, v1alpha1.RequestClose, stamp(noon.Add(-2*time.Minute)))
				by(tc.g, v1alpha1.RequestClose, "carl", "")
				gate.ApplyRequests(tc.g, ledger.Stamped, noon.Add(-time.Minute))
			}
			if got := asks(tc.g, "alice", tc.value, noon); got.Err != nil || got.Waits != 1 {
				t.Fatalf("asked: %v, %v", got, got.Err)
			}
			if strings.HasPrefix(name, "not later") {
				tc.g.Spec.Window = duration(9 * time.Hour)
			}
			end := noon.Add(tc.until)
			if news := gate.ApplyRequests(tc.g, ledger.Stamped, end.Add(-time.Second)); len(news) > 0 {
				t.Errorf("too early: %v", news)
			}
			if d := gate.Decide(tc.g, end.Add(-time.Second)); !d.Recheck.Equal(end) && tc.g.Status.Requests[len(tc.g.Status.Requests)-1].State != v1alpha1.RequestPlanned {
				t.Errorf("it is looked at again at %s, not %s", d.Recheck, end)
			}
			news := approve(tc.g, end, "bob")
			if len(news) != 1 || news[0].Err == nil || news[0].Err.Error() != "is void, it lacked approvals at "+stamp(end) {
				t.Errorf("news %v", news)
			}
			if d := gate.Decide(tc.g, end); d.State != v1alpha1.StateClosed || strings.Contains(d.Message, "alice") {
				t.Errorf("%s: %s", d.State, d.Message)
			}
		})
	}
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

func TestPlannedRequestIsRefusedIfGateRequiresApprovalsSince(t *testing.T) {
	g := closed()
	asks(g, "alice", stamp(noon.Add(time.Hour)), noon)
	eyesOn(1)(&g.Spec)
	approve(g, noon, "bob")
	news := gate.ApplyRequests(g, ledger.Stamped, noon.Add(time.Hour))
	if len(news) != 1 || news[0].Err == nil || gate.Decide(g, noon.Add(time.Hour)).State != v1alpha1.StateClosed {
		t.Errorf("news %v", news)
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

func TestThePresentNumberOfApprovalsCounts(t *testing.T) {
	at := noon.Add(time.Minute)
	for name, tc := range map[string]struct {
		before, after int32
		want          v1alpha1.State
	}{
		"fewer":          {2, 1, v1alpha1.StateOpened},
		"none":           {2, 0, v1alpha1.StateOpened},
		"more":           {2, 3, v1alpha1.StateClosed},
		"more, in force": {1, 3, v1alpha1.StateOpened},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed(eyesOn(tc.before))
			asks(g, "alice", stamp(noon), noon)
			approve(g, noon, "bob")
			if eyesOn(tc.after)(&g.Spec); tc.after == 0 {
				g.Spec.Approvals = nil
			}
			gate.ApplyRequests(g, ledger.Stamped, at)
			if d := gate.Decide(g, at); d.State != tc.want {
				t.Errorf("%s: %s", d.State, d.Message)
			}
		})
	}
}

func TestNotAllNamesThatApproveCount(t *testing.T) {
	long := strings.Repeat("x", 340)
	for _, who := range []string{"alice", "", " alice", "alice ", "bob\x00", long} {
		g := closed(eyesOn(1))
		asks(g, "alice", stamp(noon), noon)
		if news := approve(g, noon, who); len(news) > 0 || gate.Decide(g, noon).State != v1alpha1.StateClosed {
			t.Errorf("%q approves: %v", who, news)
		}
	}
}

func TestPeopleWaitInBoundedNumbersAndEachForOneRequest(t *testing.T) {
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

func TestAStampedEmergencyWithAReasonOpensAtOnce(t *testing.T) {
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

func TestAnApprovalNamesARequestAndItsGate(t *testing.T) {
	g := closed(eyesOn(2))
	g.UID = "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"
	asks(g, "alice", stamp(noon), noon)
	good := ledger.FormatRequestApproval(g, &g.Status.Requests[0], noon)
	if want := "2026-11-23T12:00:00Z,request=2026-11-23T12:00:00.000000Z,uid=" + string(g.UID); good != want {
		t.Errorf("got %s, want %s", good, want)
	}
}
