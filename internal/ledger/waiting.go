package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

const (
	// maxWaiting is the maximum number of requesters with waiting open requests.
	maxWaiting = 8

	// maxWait bounds how long an open request may wait for approval, from its start time.
	maxWait = 7 * 24 * time.Hour
)

// needsApproval returns whether the Gate requires approvals for a request.
func (l *Ledger) needsApproval(r *Request) bool {
	return l.required > 0 && r.Action == v1alpha1.RequestOpen
}

// toAccepted converts a new request to an accepted one, and sets Waits and Emergency of r. If the request needs approvals and the API
// server stamps names, it sets Stamped, and Emergency if the requester declared one.
func (l *Ledger) toAccepted(s Stamps, r *Request, at metav1.MicroTime) v1alpha1.AcceptedRequest {
	accepted := v1alpha1.AcceptedRequest{
		Action: r.Action, RequestedAt: metav1.NewMicroTime(r.At), Window: r.Window, Unlimited: r.Unlimited, AcceptedAt: at,
		Targets: r.Targets, RequestedBy: r.By, Message: r.Reason, Source: r.source,
	}
	if l.needsApproval(r) && s == Stamped {
		accepted.Stamped = r.By != ""
		accepted.Emergency = accepted.Stamped && r.emergency
		r.Emergency = accepted.Emergency
	}
	r.Waits = l.lacks(&accepted)
	return accepted
}

// checkApprovable returns an error if a request needs approvals but cannot get any, or if it is an emergency without a reason.
func (l *Ledger) checkApprovable(r *v1alpha1.AcceptedRequest) error {
	switch {
	case l.required == 0 || r.Action != v1alpha1.RequestOpen:
		return nil
	case !r.Stamped:
		return fmt.Errorf(msgUnverified, format.Count(l.required, "approval"))
	case r.Emergency && r.Message == "":
		return errors.New(msgNoReason)
	}
	return nil
}

// lacks returns how many approvals a request still needs.
func (l *Ledger) lacks(r *v1alpha1.AcceptedRequest) int {
	if r.Action != v1alpha1.RequestOpen || r.Emergency {
		return 0
	}
	return max(0, l.required-len(r.Approvals))
}

// beginOrWait puts a request in force at an instant. If it lacks approvals, it becomes a waiting request, and replaces an older one of the
// same requester.
func (l *Ledger) beginOrWait(r v1alpha1.AcceptedRequest, at time.Time) error {
	if l.lacks(&r) == 0 {
		return l.begin(r, at)
	}
	if err := l.checkApprovable(&r); err != nil { // it was planned before the Gate required approvals
		return err
	}
	if err := l.refuses(&r, at); err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(l.waiting), func(other v1alpha1.AcceptedRequest) bool {
		return other.RequestedBy == r.RequestedBy && slices.Equal(other.Targets, r.Targets) && other.AcceptedAt.Before(&r.AcceptedAt)
	})
	users := map[string]bool{r.RequestedBy: true}
	for _, other := range others {
		users[other.RequestedBy] = true
	}
	if len(users) > maxWaiting {
		return fmt.Errorf(msgTooManyWaiting, maxWaiting)
	}
	r.State = v1alpha1.RequestWaiting
	l.waiting = slices.Concat(others, []v1alpha1.AcceptedRequest{r})
	return nil
}

// isClosed returns whether a close request for the whole Gate is in force at an instant.
func (l *Ledger) isClosed(now time.Time) bool {
	return slices.ContainsFunc(l.closes, func(s *inForce) bool { return s.lasts(now) })
}

// deadline returns when a request is dropped if it still lacks approvals.
func (l *Ledger) deadline(r *v1alpha1.AcceptedRequest) time.Time {
	own := *r
	if Withdraws(r.Window) {
		own.Window = nil // its duration of zero must not end the wait
	}
	return schedule.Earlier(l.requestEnd(&own), r.RequestedAt.Add(maxWait))
}

// void drops the requests that lack approvals if matches returns true for them. It adds them to l.voided, with the reason.
func (l *Ledger) void(why error, matches func(*v1alpha1.AcceptedRequest) bool) {
	drop := func(all []v1alpha1.AcceptedRequest) []v1alpha1.AcceptedRequest {
		return slices.DeleteFunc(slices.Clone(all), func(r v1alpha1.AcceptedRequest) bool {
			void := l.lacks(&r) > 0 && matches(&r)
			if void {
				request := newRequest(r)
				request.Err = why
				l.voided = append(l.voided, request)
			}
			return void
		})
	}
	l.waiting, l.planned = drop(l.waiting), drop(l.planned)
}

// voidUnapproved drops requests for the same targets that lack approvals when a close request begins: all waiting ones, and planned ones
// that were accepted before the close request.
func (l *Ledger) voidUnapproved(closed *v1alpha1.AcceptedRequest) {
	why := fmt.Errorf(msgVoidClosed, newRequest(*closed))
	l.void(why, func(r *v1alpha1.AcceptedRequest) bool {
		return concerns(closed.Targets, r.Targets) && (r.State == v1alpha1.RequestWaiting || closed.AcceptedAt.After(r.AcceptedAt.Time))
	})
}

// voidOlder drops requests that lack approvals and may be older than a close request that had already ended when the controller read it.
func (l *Ledger) voidOlder(closed *Request) {
	why := fmt.Errorf(msgVoidClosed, closed)
	l.void(why, func(r *v1alpha1.AcceptedRequest) bool {
		return concerns(closed.Targets, r.Targets) && !schedule.Earlier(r.RequestedAt.Time, r.AcceptedAt.Time).After(closed.At.Add(slack(closed.source, r.Source)))
	})
}

// approve drops waiting requests after their deadline, records new approvals, and begins waiting requests that have enough. It returns the
// requests that changed, with one entry for each approval.
func (l *Ledger) approve(s Stamps, now time.Time) (changed []Request) {
	for _, r := range l.waiting {
		if deadline := l.deadline(&r); !now.Before(deadline) {
			l.void(fmt.Errorf(msgVoidDeadline, format.Time(deadline)),
				func(other *v1alpha1.AcceptedRequest) bool { return other.AcceptedAt.Equal(&r.AcceptedAt) })
		}
	}
	for _, list := range [][]v1alpha1.AcceptedRequest{l.waiting, l.planned} {
		for i := range list {
			if s != Stamped {
				break
			}
			for _, by := range l.newApprovals(&list[i]) {
				list[i].Approvals = append(slices.Clip(list[i].Approvals), v1alpha1.RequestApproval{ApprovedBy: by, RecordedAt: metav1.NewMicroTime(now.Truncate(time.Microsecond))})
				request := newRequest(list[i])
				request.ApprovedBy, request.Waits = by, l.lacks(&list[i])
				changed = append(changed, request)
			}
		}
	}
	inOrder := func(a, b v1alpha1.AcceptedRequest) int { return a.AcceptedAt.Compare(b.AcceptedAt.Time) }
	for _, r := range slices.SortedFunc(slices.Values(l.waiting), inOrder) {
		if l.lacks(&r) == 0 {
			changed = l.beginApproved(r, changed, now)
		}
	}
	return append(changed, l.voided...)
}

// beginApproved puts a waiting request in force from the time of its last approval. It stores the result in the last entry about the
// request in changed, or appends an entry, and returns changed.
func (l *Ledger) beginApproved(r v1alpha1.AcceptedRequest, changed []Request, now time.Time) []Request {
	l.waiting = slices.DeleteFunc(l.waiting, func(other v1alpha1.AcceptedRequest) bool { return other.AcceptedAt.Equal(&r.AcceptedAt) })
	was := newRequest(r)
	i := len(changed) - 1
	for i >= 0 && !changed[i].Is(&was) {
		i--
	}
	if i < 0 { // the Gate now requires fewer approvals
		changed, i = append(changed, was), len(changed)
	}
	r.State, r.Until = v1alpha1.RequestInForce, nil
	for _, a := range r.Approvals {
		r.RequestedAt.Time = schedule.Later(r.RequestedAt.Time, a.RecordedAt.Time)
	}
	if err := l.beginNow(r, now); err != nil {
		changed[i].Err = err
	} else if r.Targets == nil && !Withdraws(r.Window) {
		changed[i].At = l.open.RequestedAt.Time
	} else {
		changed[i].At = r.RequestedAt.Time
	}
	return changed
}

// beginNow puts an approved request in force. It returns an error if the request is void because it has ended, has nothing to withdraw, or
// is refused.
func (l *Ledger) beginNow(r v1alpha1.AcceptedRequest, now time.Time) error {
	end := l.requestEnd(&r)
	switch {
	case Withdraws(r.Window):
		if !l.withdrawable(&r, now) {
			return errors.New(msgVoidNothingToWithdraw)
		}
	case !end.IsZero() && !now.Before(end):
		return fmt.Errorf(msgVoidOver, format.Time(end))
	}
	return l.begin(r, now)
}

// Unapproved returns the open requests that lack approvals at an instant: first those that are due, then planned ones. For a request that
// is due, Until is the time when it is dropped.
func (l *Ledger) Unapproved(now time.Time) (all []v1alpha1.AcceptedRequest) {
	for _, r := range slices.Concat(l.waiting, l.planned) {
		if l.lacks(&r) == 0 || r.State == v1alpha1.RequestWaiting && !now.Before(l.deadline(&r)) {
			continue
		}
		if r.State == v1alpha1.RequestWaiting {
			keepEnd(&r, l.deadline(&r))
		}
		all = append(all, r)
	}
	return all
}

// Lacks returns how many approvals a request for a Gate still needs.
func Lacks(g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest) int { return Read(g).lacks(r) }

// ApprovalMessage returns the message for an open request that lacks approvals, with the command that approves it.
func ApprovalMessage(namespace, name string, lacks int) string {
	return fmt.Sprintf(msgWaitsForOthers, format.Count(lacks, "approval"), approveCommand(namespace, name))
}

// approveCommand returns the command that approves the open request of a Gate.
func approveCommand(namespace, name string) string {
	return fmt.Sprintf("kubectl gate approve gate/%s -n %s", name, namespace)
}

// WaitingForApproval returns a message about the open requests of a Gate that wait for approval at an instant, with the command that
// approves them. It is empty if there are none.
func WaitingForApproval(g *v1alpha1.Gate, now time.Time) string {
	l := At(g, now)
	return l.WaitsForApproval(l.Unapproved(now))
}

// WaitsForApproval returns a message about the last of these open requests, with the number of the others and the command that approves it.
// It is empty if there are none.
func (l *Ledger) WaitsForApproval(all []v1alpha1.AcceptedRequest) string {
	if len(all) == 0 {
		return ""
	}
	r := &all[len(all)-1]
	what := "an open request of " + r.RequestedBy
	if Withdraws(r.Window) {
		what = "a request of " + r.RequestedBy + " to withdraw close requests"
	}
	text := fmt.Sprintf(msgWaitsForApproval, what, format.Time(r.RequestedAt.Time), format.Count(l.lacks(r), "more approval"))
	if has := formatApprovers(r); has != "" {
		text += " (has " + has + ")"
	}
	how := ": approve it with " + approveCommand(l.gate.Namespace, l.gate.Name)
	switch n := len(all) - 1; {
	case n == 1:
		return text + ", and 1 other waits" + how
	case n > 1:
		return text + fmt.Sprintf(", and %d others wait", n) + how
	}
	return text + how
}

// formatApprovers returns the names of the approvers, cut to maxApprovedBy bytes.
func formatApprovers(r *v1alpha1.AcceptedRequest) string {
	var names []string
	for _, a := range r.Approvals {
		names = append(names, a.ApprovedBy)
	}
	return format.OneLine(strings.Join(names, ", "), maxApprovedBy)
}

// maxApprovedBy bounds the names of the approvers in a message, in bytes.
const maxApprovedBy = 96
