package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/sentence"
)

const (
	// maxWaiting is how many people can each have an open request that waits for approval.
	maxWaiting = 8

	// maxWait is how long an open request waits for approval at most, from its time on.
	maxWait = 7 * 24 * time.Hour
)

// asksApprovalOf returns whether others have to approve a request.
func (l *Ledger) asksApprovalOf(r *Request) bool {
	return l.required > 0 && r.Action == v1alpha1.RequestOpen
}

// note returns a new request as it is accepted at an instant, with what the API server has stamped.
func (l *Ledger) note(s Stamps, r *Request, at metav1.MicroTime) v1alpha1.AcceptedRequest {
	accepted := v1alpha1.AcceptedRequest{
		Action: r.Action, RequestedAt: metav1.NewMicroTime(r.At), Window: r.Window, Unlimited: r.Unlimited, AcceptedAt: at,
		RequestedBy: r.By, Message: r.Reason, Source: r.source,
	}
	if l.asksApprovalOf(r) && s == Stamped {
		accepted.Stamped = r.By != ""
		accepted.Emergency = accepted.Stamped && r.emergency
		r.Emergency = accepted.Emergency
	}
	r.Waits = l.lacks(&accepted)
	return accepted
}

// mayAsk returns why a request cannot even wait for approval, nil if it can or need not.
func (l *Ledger) mayAsk(r *v1alpha1.AcceptedRequest) error {
	switch {
	case l.required == 0 || r.Action != v1alpha1.RequestOpen:
		return nil
	case !r.Stamped:
		return fmt.Errorf("is refused, the gate requires %s, and the requester is not verified: that needs config/policies, see docs/guides/approval-by-hand.md", sentence.Count(l.required, "approval"))
	case r.Emergency && r.Message == "":
		return errors.New("is refused, an emergency needs a reason: request it again with one")
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

// beginOrWait puts a request in force at an instant, or has it wait for approval, in place of an older one of the same person.
func (l *Ledger) beginOrWait(r v1alpha1.AcceptedRequest, at time.Time) error {
	if l.lacks(&r) == 0 {
		return l.begin(r, at)
	}
	if err := l.mayAsk(&r); err != nil { // it was planned before the gate asked for approvals
		return err
	}
	if err := l.refuses(&r, at); err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(l.waiting), func(other v1alpha1.AcceptedRequest) bool {
		return other.RequestedBy == r.RequestedBy && other.AcceptedAt.Before(&r.AcceptedAt)
	})
	if len(others) >= maxWaiting {
		return fmt.Errorf("is refused, the open requests of %d people wait for approval, and a gate keeps no more", len(others))
	}
	r.State = v1alpha1.RequestWaiting
	l.waiting = slices.Concat(others, []v1alpha1.AcceptedRequest{r})
	return nil
}

// isClosed returns whether a close request is in force at an instant.
func (l *Ledger) isClosed(now time.Time) bool {
	return slices.ContainsFunc(l.closes, func(s *inForce) bool { return s.lasts(now) })
}

// deadlineOf returns when a request that nobody has approved until then is dropped.
func (l *Ledger) deadlineOf(r *v1alpha1.AcceptedRequest) time.Time {
	own := *r
	if Withdraws(r.Window) {
		own.Window = nil // it lasts no time, and waits as long as others
	}
	return schedule.Earlier(l.endOf(&own), r.RequestedAt.Add(maxWait))
}

// void drops the unapproved requests that match, and notes why.
func (l *Ledger) void(why error, matches func(*v1alpha1.AcceptedRequest) bool) {
	drop := func(all []v1alpha1.AcceptedRequest) []v1alpha1.AcceptedRequest {
		return slices.DeleteFunc(slices.Clone(all), func(r v1alpha1.AcceptedRequest) bool {
			void := l.lacks(&r) > 0 && matches(&r)
			if void {
				request := requestOf(r)
				request.Err = why
				l.voided = append(l.voided, request)
			}
			return void
		})
	}
	l.waiting, l.planned = drop(l.waiting), drop(l.planned)
}

// voidUnapproved drops what a close that begins comes before: what waits, and what was planned before somebody asked for the close.
func (l *Ledger) voidUnapproved(closed *v1alpha1.AcceptedRequest) {
	why := fmt.Errorf("is void, a user has closed the gate before it was approved: %s", requestOf(*closed))
	l.void(why, func(r *v1alpha1.AcceptedRequest) bool {
		return r.State == v1alpha1.RequestWaiting || closed.AcceptedAt.After(r.AcceptedAt.Time)
	})
}

// voidOlder drops what was requested before a close that nobody has seen until it was over.
func (l *Ledger) voidOlder(closed *Request) {
	why := fmt.Errorf("is void, a user has closed the gate before it was approved: %s", closed)
	l.void(why, func(r *v1alpha1.AcceptedRequest) bool {
		return !schedule.Earlier(r.RequestedAt.Time, r.AcceptedAt.Time).After(closed.At.Add(slack(closed.source, r.Source)))
	})
}

// approve takes note of new approvals, and begins what has enough. It returns what is new.
func (l *Ledger) approve(s Stamps, now time.Time) (news []Request) {
	for _, r := range l.waiting {
		if deadline := l.deadlineOf(&r); !now.Before(deadline) {
			l.void(fmt.Errorf("is void, not enough people have approved it until %s", sentence.Time(deadline)),
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
				request := requestOf(list[i])
				request.ApprovedBy, request.Waits = by, l.lacks(&list[i])
				news = append(news, request)
			}
		}
	}
	inOrder := func(a, b v1alpha1.AcceptedRequest) int { return a.AcceptedAt.Compare(b.AcceptedAt.Time) }
	for _, r := range slices.SortedFunc(slices.Values(l.waiting), inOrder) {
		if l.lacks(&r) == 0 {
			news = l.beginApproved(r, news, now)
		}
	}
	return append(news, l.voided...)
}

// beginApproved puts a request in force that has waited. It begins with its last approval, and lasts from then on. That is noted in the
// news of that approval.
func (l *Ledger) beginApproved(r v1alpha1.AcceptedRequest, news []Request, now time.Time) []Request {
	l.waiting = slices.DeleteFunc(l.waiting, func(other v1alpha1.AcceptedRequest) bool { return other.AcceptedAt.Equal(&r.AcceptedAt) })
	was := requestOf(r)
	i := len(news) - 1
	for i >= 0 && !news[i].Is(&was) {
		i--
	}
	if i < 0 { // the gate asks for fewer approvals than before
		news, i = append(news, was), len(news)
	}
	r.State, r.Until = v1alpha1.RequestInForce, nil
	for _, a := range r.Approvals {
		r.RequestedAt.Time = schedule.Later(r.RequestedAt.Time, a.RecordedAt.Time)
	}
	if err := l.beginNow(r, now); err != nil {
		news[i].Err = err
	} else {
		news[i].At = l.open.RequestedAt.Time
	}
	return news
}

// beginNow puts a request in force that has waited, or returns why that is void.
func (l *Ledger) beginNow(r v1alpha1.AcceptedRequest, now time.Time) error {
	end := l.endOf(&r)
	switch {
	case Withdraws(r.Window):
		if !l.isClosed(now) {
			return errors.New("is void, there is no close request to withdraw any more")
		}
	case !end.IsZero() && !now.Before(end):
		return fmt.Errorf("is void, it was over at %s", sentence.Time(end))
	}
	return l.begin(r, now)
}

// Unapproved returns the open requests that are not in force at an instant for want of approvals: those whose time has come, and then
// those planned. The until of the former is when they are dropped.
func (l *Ledger) Unapproved(now time.Time) (all []v1alpha1.AcceptedRequest) {
	for _, r := range slices.Concat(l.waiting, l.planned) {
		if l.lacks(&r) == 0 || r.State == v1alpha1.RequestWaiting && !now.Before(l.deadlineOf(&r)) {
			continue
		}
		if r.State == v1alpha1.RequestWaiting {
			keepEnd(&r, l.deadlineOf(&r))
		}
		all = append(all, r)
	}
	return all
}

// Lacks returns how many approvals a request for a Gate still needs.
func Lacks(g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest) int { return Read(g).lacks(r) }

// WaitsForOthers says that an open request for a Gate lacks some approvals, and how to approve it.
func WaitsForOthers(namespace, name string, lacks int) string {
	return fmt.Sprintf("waits for %s by others: %s", sentence.Count(lacks, "approval"), approveCommand(namespace, name))
}

// approveCommand is the command that approves the open request of a Gate.
func approveCommand(namespace, name string) string {
	return fmt.Sprintf("kubectl gate approve gate/%s -n %s", name, namespace)
}

// WaitingForApproval says which open requests for a Gate wait for approval at an instant, and how to approve them. It is empty if none does.
func WaitingForApproval(g *v1alpha1.Gate, now time.Time) string {
	l := At(g, now)
	return l.WaitsForApproval(l.Unapproved(now))
}

// WaitsForApproval says which of these open requests wait for approval, and how to approve them. It is empty if there are none.
func (l *Ledger) WaitsForApproval(all []v1alpha1.AcceptedRequest) string {
	if len(all) == 0 {
		return ""
	}
	r := &all[len(all)-1]
	what := "an open request of " + r.RequestedBy
	if Withdraws(r.Window) {
		what = "a request of " + r.RequestedBy + " to withdraw close requests"
	}
	text := fmt.Sprintf("%s at %s waits for %s", what, sentence.Time(r.RequestedAt.Time), sentence.Count(l.lacks(r), "more approval"))
	if has := approversOf(r); has != "" {
		text += " (has " + has + ")"
	}
	how := ": approve it with " + approveCommand(l.gate.Namespace, l.gate.Name)
	switch n := len(all) - 1; {
	case n == 1:
		return text + ", and so does 1 other" + how
	case n > 1:
		return text + fmt.Sprintf(", and so do %d others", n) + how
	}
	return text + how
}

func approversOf(r *v1alpha1.AcceptedRequest) string {
	var names []string
	for _, a := range r.Approvals {
		names = append(names, a.ApprovedBy)
	}
	return sentence.OneLine(strings.Join(names, ", "), maxApprovedBy)
}

// maxApprovedBy bounds in bytes what a sentence says of those who have approved.
const maxApprovedBy = 96
