// Package machinecerts decides which Machine of Cluster API gets new certificates next, and when. It has no client and no clock, and uses
// only the standard library.
//
// The Canonical Kubernetes provider refreshes the certificates of a Machine if the Machine has a request: an annotation with their new
// lifetime. The provider reports a status, first in-progress. In the end, it removes the request, sets the status to done and writes the
// new expiry. If it fails, it sets the status to failed, keeps the request and tries again. It never restarts a refresh that is in
// progress. After a crash, it waits until the request is removed, and then removes the status.
package machinecerts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy contains the conditions under which a MachineCertificateRefresh permits refreshes at an instant.
type Policy struct {
	// Name is namespace/name of the MachineCertificateRefresh. It is empty for requests whose record was removed.
	Name string
	// Open is true if all Gates are open.
	Open bool
	// Idle is true if no refresh may start, because one has failed or the MachineCertificateRefresh does not exist.
	Idle bool
	// Within is how long before their expiry certificates are refreshed.
	Within time.Duration
	// Timeout is how long the refresh of one Machine may take.
	Timeout time.Duration
	// Margin is how long before their expiry certificates are refreshed even if a Gate is closed, unless Strict is set.
	Margin time.Duration
	Strict bool
}

// Outcome is the outcome of a refresh.
type Outcome uint8

const (
	// Done means that the certificates have been refreshed.
	Done Outcome = iota
	// Failed means that the refresh failed or timed out.
	Failed
	// TooShort means that the certificates have been refreshed, but are already due again.
	TooShort
	// Withdrawn means that the request was withdrawn before the provider started, for example because a Gate closed.
	Withdrawn
	// TakenOver means that another client has changed the request.
	TakenOver
)

// Stops returns whether no other refresh may start after an outcome.
func (o Outcome) Stops() bool { return o == Failed || o == TooShort }

// End is the end of a refresh. The record must be removed, and the request if it still exists.
type End struct {
	// Machine is namespace/name.
	Machine string
	Outcome Outcome
	// Message is a message for users.
	Message string
}

// Fault describes a Machine that is not refreshed although it is, or may be, due.
type Fault struct {
	// Machine is namespace/name.
	Machine string
	// Message is a message for users.
	Message string
}

// Decision is the next action for the Machines of a policy.
type Decision struct {
	// Ends lists the refreshes that have ended.
	Ends []End
	// Next lists the Machines that may be refreshed, most urgent first. Start one of them, then decide again.
	Next []string
	// Running is the Machine that is being refreshed for the policy.
	Running string
	// Due is the number of Machines to refresh. Held is the number of those that wait for the Gates to open.
	Due, Held int
	// Faults lists problems that need attention.
	Faults []Fault
	// Recheck is when to decide again even if no Machine changes. Zero means never.
	Recheck time.Time
}

// Decide returns the decision at an instant for the Machines that a policy selects and those that have its record.
func Decide(policy Policy, machines []Machine, now time.Time) Decision {
	d := Decision{}
	machines = slices.DeleteFunc(slices.Clone(machines), func(m Machine) bool { return m.Deleting })
	slices.SortFunc(machines, compare)
	busy := map[string]*Machine{}
	var candidates []*Machine
	for i := range machines {
		m := &machines[i]
		if end, ok := policy.end(m, now); ok {
			d.Ends = append(d.Ends, end)
		}
		if m.Record != nil && m.Record.Refresh == policy.Name {
			d.Running = m.Name
			d.recheck(m.Record.RequestedAt.Add(policy.Timeout), now)
		}
		if m.busy() {
			if was := busy[m.Cluster]; was == nil || m.stuck() {
				busy[m.Cluster] = m
			}
		}
		if policy.consider(&d, m, now) {
			candidates = append(candidates, m)
		}
	}
	if policy.Idle {
		return d
	}
	for _, m := range candidates {
		by := busy[m.Cluster]
		switch {
		case by == nil && d.Running == "":
			d.Next = append(d.Next, m.Name)
		case by == nil:
		case by.stuck():
			d.fault(by.Name, "a refresh requested by another client failed: remove the request, because other Machines of the cluster wait for it")
		}
	}
	return d
}

// compare orders Machines by urgency: those of the control plane first, and then by expiry.
func compare(a, b Machine) int {
	if a.ControlPlane != b.ControlPlane {
		if a.ControlPlane {
			return -1
		}
		return 1
	}
	expiryA, _ := a.expiry()
	expiryB, _ := b.expiry()
	return cmp.Or(expiryA.Compare(expiryB), strings.Compare(a.Name, b.Name))
}

// busy returns whether a refresh is requested or in progress. Until it has ended, the provider ignores other requests.
func (m *Machine) busy() bool {
	return m.Request != None || m.Record != nil || m.Status == StatusInProgress
}

// stuck returns whether a failed request by another client blocks the other Machines of the cluster.
func (m *Machine) stuck() bool { return m.Request == Others && m.Status == StatusFailed }

// consider counts a Machine, records when to check it again, and returns whether
// it may be refreshed now.
func (p Policy) consider(d *Decision, m *Machine, now time.Time) bool {
	if !m.Selected || p.Within == 0 || m.Expiry == "" {
		return false
	}
	expiry, ok := m.expiry()
	if !ok {
		d.fault(m.Name, fmt.Sprintf("the expiry of the certificates is not a time in RFC 3339: %.64q", m.Expiry))
		return false
	}
	d.recheck(expiry.Add(-p.Within), now)
	if !p.Open && !p.Strict {
		d.recheck(expiry.Add(-p.Margin), now)
	}
	if expiry.Add(-p.Within).After(now) {
		return false
	}
	d.Due++
	switch {
	case m.busy():
		return false
	case p.Open || p.Imminent(expiry, now):
		return true
	}
	d.Held++
	return false
}

// Imminent returns whether certificates that expire at an instant are refreshed even if a Gate is closed.
func (p Policy) Imminent(expiry, now time.Time) bool {
	return !p.Strict && !expiry.Add(-p.Margin).After(now)
}

// end returns how a refresh has ended. It returns false if it has not ended.
func (p Policy) end(m *Machine, now time.Time) (End, bool) {
	over := func(outcome Outcome, format string, args ...any) (End, bool) {
		return End{Machine: m.Name, Outcome: outcome, Message: fmt.Sprintf(format, args...)}, true
	}
	ours := m.Record != nil && m.Record.Refresh == p.Name
	deadline := time.Time{}
	if ours {
		deadline = m.Record.RequestedAt.Add(p.Timeout)
	}
	expiry, known := m.expiry()
	switch {
	case ours && m.Request == Others:
		return over(TakenOver, "another client requested a refresh")
	case ours && m.Request == None && m.Status == StatusDone && known && expiry.After(m.Record.Expiry):
		if p.Within > 0 && !expiry.Add(-p.Within).After(now) {
			return over(TooShort, "the certificates have been refreshed but expire at %s, which is due at once: does the CA expire?", stamp(expiry))
		}
		return over(Done, "the certificates expire at %s", stamp(expiry))
	case ours && m.Status == StatusFailed:
		return over(Failed, "the provider reports that the refresh failed")
	case ours && !deadline.After(now):
		return over(Failed, "the refresh had not ended after %s: %s", p.Timeout, m.describeProgress())
	case m.Request == Ours && m.Status != StatusInProgress && (ours || m.Record == nil) && !p.keepsRequest(m, now):
		return over(Withdrawn, "the request was withdrawn before the provider started")
	}
	return End{}, false
}

// keepsRequest returns whether to keep a request that the provider has not acted on yet.
func (p Policy) keepsRequest(m *Machine, now time.Time) bool {
	expiry, known := m.expiry()
	return m.Record != nil && m.Selected && (p.Open || known && p.Imminent(expiry, now))
}

// describeProgress returns the request, the status and the expiry of the Machine as text, to show the progress of the provider.
func (m *Machine) describeProgress() string {
	request, status := "the request still exists", "there is no status"
	if m.Request == None {
		request = "the request was removed"
	}
	if m.Status != "" {
		status = fmt.Sprintf("the status is %.32q", m.Status)
	}
	return fmt.Sprintf("%s, %s, the certificates expire at %.32q", request, status, m.Expiry)
}

func (d *Decision) recheck(at, now time.Time) {
	if at.After(now) && (d.Recheck.IsZero() || at.Before(d.Recheck)) {
		d.Recheck = at
	}
}

// fault records a fault once.
func (d *Decision) fault(machine, message string) {
	if fault := (Fault{Machine: machine, Message: message}); !slices.Contains(d.Faults, fault) {
		d.Faults = append(d.Faults, fault)
	}
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
