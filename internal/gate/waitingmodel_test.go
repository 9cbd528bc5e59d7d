package gate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// unapproved is an open request that waits for approval or is planned, as the model keeps it.
type unapproved struct {
	gateState
	lasts []time.Duration
	// name is how approvals name it.
	name     string
	approved []string
}

func (u unapproved) waits(at time.Time) bool { return !u.at.After(at) }

// ending returns when one of its windows is over if it begins at an instant, zero for never.
func (u unapproved) ending(begin time.Time) (end time.Time) {
	for _, d := range u.lasts {
		if at := begin.Add(d); end.IsZero() || at.Before(end) {
			end = at
		}
	}
	return end
}

// voidedBy returns whether a close comes before the approval of an open request.
func (r gateState) voidedBy(closed gateState, now time.Time) bool {
	begins := closed.begins()
	switch {
	case closed.action != v1alpha1.RequestClose || begins.After(now) || begins.Before(r.seen):
		return false
	case closed.seen.After(r.seen):
		return true
	case closed.seen.Equal(r.seen) && begins.Equal(r.seen):
		return closed.isLater(r)
	}
	return begins.After(r.seen) && !begins.Before(r.at)
}

// eyes is a Gate that requires approvals, and its model.
type eyes struct {
	*rapid.T
	gate    *v1alpha1.Gate
	now     time.Time
	accepts model
	pending []unapproved
}

// ask draws a request and writes it.
func (e *eyes) ask(action v1alpha1.RequestAction) unapproved {
	u := unapproved{gateState: gateState{action: action, seen: e.now, webhook: rapid.IntRange(0, 3).Draw(e.T, "webhook") == 0}}
	u.who = rapid.SampledFrom([]string{"alice", "bob"}).Draw(e.T, "who")
	u.at = e.now.Add(-time.Duration(rapid.IntRange(0, 30).Draw(e.T, "seconds behind")) * time.Second)
	if u.webhook {
		u.who = "GateReceiver ops/ci"
	} else if rapid.IntRange(0, 2).Draw(e.T, "planned") == 0 {
		u.at = e.now.Add(time.Duration(rapid.IntRange(1, 6).Draw(e.T, "half hours ahead")) * 30 * time.Minute)
	}
	value := stamp(u.at)
	if own := rapid.SampledFrom([]time.Duration{0, 40 * time.Minute, 5 * time.Hour}).Draw(e.T, "for"); own > 0 {
		value, u.lasts = value+"/"+own.String(), append(u.lasts, own)
	}
	if limit := e.gate.Spec.Window; limit != nil && (action == v1alpha1.RequestOpen || len(u.lasts) == 0) {
		u.lasts = append(u.lasts, limit.Duration)
	}
	u.end = u.ending(u.at)
	if u.withdraws = !u.webhook && !u.at.After(e.now) && rapid.IntRange(0, 4).Draw(e.T, "withdraws") == 0; u.withdraws {
		u.end, value, u.lasts = u.at, stamp(u.at)+"/0s", nil
		if limit := e.gate.Spec.Window; limit != nil {
			u.lasts = append(u.lasts, limit.Duration)
		}
	}
	annotate(e.gate, action, value)
	by(e.gate, action, u.who, "outage")
	return u
}

// approves writes approvals of what the status shows, and of what it does not.
func (e *eyes) approves() {
	var lines []string
	for _, r := range e.gate.Status.Requests {
		_, what, _ := strings.Cut(ledger.FormatRequestApproval(e.gate, &r, e.now), ",")
		for _, who := range rapid.SampledFrom([][]string{{}, {}, {"bob"}, {"carol"}, {"alice", "dora"}, {"carol", "carol"}}).Draw(e.T, "approvers") {
			lines = append(lines, what+" "+who)
		}
		lines = append(lines, what, what+" ", what+"0 mallory", strings.Replace(what, "uid=", "uid=x", 1)+" mallory")
	}
	if before := e.gate.Annotations[v1alpha1.ApproveRequestedByAnnotation]; before != "" {
		lines = append(lines, before) // not removed in the meantime
	}
	e.gate.Annotations[v1alpha1.ApproveRequestedByAnnotation] = strings.Join(lines, "\n")
}

// named returns how approvals name a request that was accepted just now.
func (e *eyes) named(u unapproved) string {
	for _, r := range e.gate.Status.Requests {
		if r.RequestedBy == u.who && r.AcceptedAt.Truncate(time.Second).Equal(u.seen) && r.Action == u.action {
			_, what, _ := strings.Cut(ledger.FormatRequestApproval(e.gate, &r, e.now), ",")
			return what
		}
	}
	return "" // void at once
}

// begin has the planned requests wait whose time has come.
func (e *eyes) begin() {
	e.pending = slices.DeleteFunc(e.pending, func(u unapproved) bool {
		return slices.ContainsFunc(e.accepts, func(c gateState) bool { return u.voidedBy(c, e.now) }) ||
			u.at.After(u.seen) && u.waits(e.now) && slices.ContainsFunc(e.accepts.inForce(u.at), func(c gateState) bool { return c.refuses(u.gateState) })
	})
	before := slices.Clone(e.pending)
	e.pending = slices.DeleteFunc(e.pending, func(u unapproved) bool {
		return slices.ContainsFunc(before, func(o unapproved) bool {
			return o.at.After(o.seen) && o.waits(e.now) && o.who == u.who && u.waits(o.at) && u.seen.Before(o.seen)
		})
	})
}

// accept remembers an accepted request.
func (e *eyes) accept(u unapproved, broken bool) {
	if u.action == v1alpha1.RequestOpen && u.at.After(e.now) { // an open replaces any planned open
		e.pending = slices.DeleteFunc(e.pending, func(o unapproved) bool { return !o.waits(e.now) })
		e.accepts = slices.DeleteFunc(e.accepts, func(o gateState) bool { return o.action == u.action && o.at.After(e.now) })
	}
	if u.action == v1alpha1.RequestClose || broken {
		e.accepts = e.accepts.add(u.gateState)
		return
	}
	if u.waits(e.now) {
		e.pending = slices.DeleteFunc(e.pending, func(o unapproved) bool { return o.waits(e.now) && o.who == u.who })
	}
	u.name = e.named(u)
	e.pending = append(e.pending, u)
}

// count counts approvals after all else.
func (e *eyes) count() {
	lines := strings.Split(e.gate.Annotations[v1alpha1.ApproveRequestedByAnnotation], "\n")
	for i := range e.pending {
		u := &e.pending[i]
		for _, who := range []string{"alice", "bob", "carol", "dora", "mallory"} {
			if who != u.who && !slices.Contains(u.approved, who) && slices.Contains(lines, u.name+" "+who) {
				u.approved = append(u.approved, who)
			}
		}
	}
	e.pending = slices.DeleteFunc(e.pending, func(u unapproved) bool {
		deadline := u.ending(u.at)
		if u.waits(e.now) && (!deadline.IsZero() && !e.now.Before(deadline) || !e.now.Before(u.at.Add(7*24*time.Hour))) {
			return true
		}
		if len(u.approved) < e.gate.RequiredApprovals() {
			return false
		}
		if u.waits(e.now) {
			u.at, u.late = e.now, 1
			u.end = u.ending(u.at)
			if u.withdraws {
				u.end = u.at
			}
		}
		e.accepts = append(e.accepts, u.gateState)
		return true
	})
}

// restart keeps what the API server keeps.
func (e *eyes) restart() {
	raw, err := json.Marshal(e.gate)
	if err != nil {
		e.Fatal(err)
	}
	e.gate = &v1alpha1.Gate{}
	e.gate.Annotations = map[string]string{}
	if err := json.Unmarshal(raw, e.gate); err != nil {
		e.Fatal(err)
	}
}

func (e *eyes) check() {
	if d := gate.Decide(e.gate, e.now); d.State != e.accepts.stateAt(e.now, e.gate.Spec.Default) {
		e.Fatalf("at %s it is %s: %s\naccepted %+v\npending %+v\nremembered %+v", stamp(e.now), d.State, d.Message, e.accepts, e.pending, e.gate.Status.Requests)
	}
}

// No request opens without the approvals of others, a close always wins, and the status alone remembers all of that.
func TestRequestOpensOnceApproved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &eyes{T: t, gate: opened(), now: noon}
		if rapid.Bool().Draw(t, "closed by default") {
			e.gate = closed()
		}
		e.gate.Annotations = map[string]string{}
		e.gate.UID = "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"
		e.gate.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: rapid.Int32Range(1, 2).Draw(t, "required")}}
		if rapid.Bool().Draw(t, "has a window") {
			e.gate.Spec.Window = duration(2 * time.Hour)
		}
		for range rapid.IntRange(1, 14).Draw(t, "steps") {
			e.now = e.now.Add(time.Duration(rapid.IntRange(61, 3000).Draw(t, "seconds later")) * time.Second)
			asked := map[v1alpha1.RequestAction]unapproved{}
			broken := false
			for _, action := range rapid.SampledFrom([][]v1alpha1.RequestAction{
				{v1alpha1.RequestOpen}, {v1alpha1.RequestClose}, {v1alpha1.RequestClose, v1alpha1.RequestOpen}, {}, {},
			}).Draw(t, "actions") {
				asked[action] = e.ask(action)
				if action == v1alpha1.RequestOpen && rapid.IntRange(0, 5).Draw(t, "emergency") == 0 {
					e.gate.Annotations[v1alpha1.OpenEmergencyAnnotation] = e.gate.Annotations[v1alpha1.OpenRequestedAtAnnotation]
					broken = !asked[action].webhook
				}
			}
			e.approves()
			e.begin()
			for _, handled := range gate.ApplyRequests(e.gate, ledger.Stamped, e.now) {
				u, isNew := asked[handled.Action]
				isNew = isNew && handled.ApprovedBy == "" && handled.Value == e.gate.Annotations[handled.Annotation] && handled.At.Equal(u.at) && handled.Emergency == (broken && handled.Action == v1alpha1.RequestOpen)
				if handled.Err == nil && isNew {
					e.accept(u, broken)
				}
			}
			e.begin()
			e.count()
			e.restart()
			e.check()
		}
		for range 16 { // what is planned comes to pass as well
			e.now = e.now.Add(29 * time.Minute)
			e.begin()
			gate.ApplyRequests(e.gate, ledger.Stamped, e.now)
			e.count()
			e.check()
		}
	})
}
