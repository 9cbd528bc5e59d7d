package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// maxWaiting is how many people can each have an open request that waits for approval.
	maxWaiting = 8

	// maxWait is how long an open request waits for approval at most, from its time on.
	maxWait = 7 * 24 * time.Hour
)

// asksApprovalOf returns whether others have to approve a request.
func (c *course) asksApprovalOf(r *Request) bool {
	return c.required > 0 && r.Action == v1alpha1.RequestOpen
}

// note returns a new request as it is accepted at an instant, with what the API server has stamped.
func (c *course) note(s Stamps, r *Request, at metav1.MicroTime) v1alpha1.AcceptedRequest {
	accepted := v1alpha1.AcceptedRequest{
		Action: r.Action, RequestedAt: metav1.NewMicroTime(r.At), Window: r.Window, Unlimited: r.Unlimited, AcceptedAt: at,
		RequestedBy: r.By, Message: r.Reason, Source: r.source,
	}
	if c.asksApprovalOf(r) && s == Stamped {
		accepted.Stamped = r.By != ""
		accepted.Emergency = accepted.Stamped && r.emergency
		r.Emergency = accepted.Emergency
	}
	r.Waits = c.lacks(&accepted)
	return accepted
}

// mayAsk returns why a request cannot even wait for approval, nil if it can or need not.
func (c *course) mayAsk(r *v1alpha1.AcceptedRequest) error {
	switch {
	case c.required == 0 || r.Action != v1alpha1.RequestOpen:
		return nil
	case !r.Stamped:
		return fmt.Errorf("is refused, the gate requires %s, and the requester is not verified: that needs config/policies, see docs/guides/approval-by-hand.md", plural(c.required, "approval"))
	case r.Emergency && r.Message == "":
		return errors.New("is refused, an emergency needs a reason: request it again with one")
	}
	return nil
}

// lacks returns how many approvals a request still needs.
func (c *course) lacks(r *v1alpha1.AcceptedRequest) int {
	if r.Action != v1alpha1.RequestOpen || r.Emergency {
		return 0
	}
	return max(0, c.required-len(r.Approvals))
}

// beginOrWait puts a request in force at an instant, or has it wait for approval, in place of an older one of the same person.
func (c *course) beginOrWait(r v1alpha1.AcceptedRequest, at time.Time) error {
	if c.lacks(&r) == 0 {
		return c.begin(r, at)
	}
	if err := c.mayAsk(&r); err != nil { // it was planned before the gate asked for approvals
		return err
	}
	if err := c.refuses(&r, at); err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(c.waiting), func(other v1alpha1.AcceptedRequest) bool {
		return other.RequestedBy == r.RequestedBy && other.AcceptedAt.Before(&r.AcceptedAt)
	})
	if len(others) >= maxWaiting {
		return fmt.Errorf("is refused, the open requests of %d people wait for approval, and a gate keeps no more", len(others))
	}
	r.State = v1alpha1.RequestWaiting
	c.waiting = slices.Concat(others, []v1alpha1.AcceptedRequest{r})
	return nil
}

// isClosed returns whether a close request is in force at an instant.
func (c *course) isClosed(now time.Time) bool {
	return slices.ContainsFunc(c.closes, func(s *inForce) bool { return s.lasts(now) })
}

// deadlineOf returns when a request that nobody has approved until then is dropped.
func (c *course) deadlineOf(r *v1alpha1.AcceptedRequest) time.Time {
	own := *r
	if withdraws(r.Window) {
		own.Window = nil // it lasts no time, and waits as long as others
	}
	return earlier(c.endOf(&own), r.RequestedAt.Add(maxWait))
}

// void drops the unapproved requests that match, and notes why.
func (c *course) void(why error, matches func(*v1alpha1.AcceptedRequest) bool) {
	drop := func(all []v1alpha1.AcceptedRequest) []v1alpha1.AcceptedRequest {
		return slices.DeleteFunc(slices.Clone(all), func(r v1alpha1.AcceptedRequest) bool {
			void := c.lacks(&r) > 0 && matches(&r)
			if void {
				request := requestOf(r)
				request.Err = why
				c.voided = append(c.voided, request)
			}
			return void
		})
	}
	c.waiting, c.planned = drop(c.waiting), drop(c.planned)
}

// voidUnapproved drops what a close that begins comes before: what waits, and what was planned before somebody asked for the close.
func (c *course) voidUnapproved(closed *v1alpha1.AcceptedRequest) {
	why := fmt.Errorf("is void, somebody has closed the gate before it was approved: %s", requestOf(*closed))
	c.void(why, func(r *v1alpha1.AcceptedRequest) bool {
		return r.State == v1alpha1.RequestWaiting || closed.AcceptedAt.After(r.AcceptedAt.Time)
	})
}

// voidOlder drops what was requested before a close that nobody has seen until it was over.
func (c *course) voidOlder(closed *Request) {
	why := fmt.Errorf("is void, somebody has closed the gate before it was approved: %s", closed)
	c.void(why, func(r *v1alpha1.AcceptedRequest) bool {
		return !earlier(r.RequestedAt.Time, r.AcceptedAt.Time).After(closed.At.Add(slack(closed.source, r.Source)))
	})
}

// approve takes note of new approvals, and begins what has enough. It returns what is new.
func (c *course) approve(g *v1alpha1.Gate, s Stamps, now time.Time) (news []Request) {
	for _, r := range c.waiting {
		if deadline := c.deadlineOf(&r); !now.Before(deadline) {
			c.void(fmt.Errorf("is void, not enough people have approved it until %s", rfc3339(deadline)),
				func(other *v1alpha1.AcceptedRequest) bool { return other.AcceptedAt.Equal(&r.AcceptedAt) })
		}
	}
	for _, list := range [][]v1alpha1.AcceptedRequest{c.waiting, c.planned} {
		for i := range list {
			if s != Stamped {
				break
			}
			for _, by := range newApprovals(g, &list[i]) {
				list[i].Approvals = append(slices.Clip(list[i].Approvals), v1alpha1.RequestApproval{ApprovedBy: by, RecordedAt: metav1.NewMicroTime(now.Truncate(time.Microsecond))})
				request := requestOf(list[i])
				request.ApprovedBy, request.Waits = by, c.lacks(&list[i])
				news = append(news, request)
			}
		}
	}
	inOrder := func(a, b v1alpha1.AcceptedRequest) int { return a.AcceptedAt.Compare(b.AcceptedAt.Time) }
	for _, r := range slices.SortedFunc(slices.Values(c.waiting), inOrder) {
		if c.lacks(&r) == 0 {
			news = c.beginApproved(r, news, now)
		}
	}
	return append(news, c.voided...)
}

// beginApproved puts a request in force that has waited. It begins with its last approval, and lasts from then on. That is noted in the
// news of that approval.
func (c *course) beginApproved(r v1alpha1.AcceptedRequest, news []Request, now time.Time) []Request {
	c.waiting = slices.DeleteFunc(c.waiting, func(other v1alpha1.AcceptedRequest) bool { return other.AcceptedAt.Equal(&r.AcceptedAt) })
	was := requestOf(r)
	i := len(news) - 1
	for i >= 0 && !news[i].is(&was) {
		i--
	}
	if i < 0 { // the gate asks for fewer approvals than before
		news, i = append(news, was), len(news)
	}
	r.State, r.Until = v1alpha1.RequestInForce, nil
	for _, a := range r.Approvals {
		r.RequestedAt.Time = later(r.RequestedAt.Time, a.RecordedAt.Time)
	}
	if err := c.beginNow(r, now); err != nil {
		news[i].Err = err
	} else {
		news[i].At = c.open.RequestedAt.Time
	}
	return news
}

// beginNow puts a request in force that has waited, or returns why that is void.
func (c *course) beginNow(r v1alpha1.AcceptedRequest, now time.Time) error {
	end := c.endOf(&r)
	switch {
	case withdraws(r.Window):
		if !c.isClosed(now) {
			return errors.New("is void, there is no close request to withdraw any more")
		}
	case !end.IsZero() && !now.Before(end):
		return fmt.Errorf("is void, it was over at %s", rfc3339(end))
	}
	return c.begin(r, now)
}

// unapproved returns the open requests that are not in force at an instant for want of approvals: those whose time has come, and then
// those planned. The until of the former is when they are dropped.
func (c *course) unapproved(now time.Time) (all []v1alpha1.AcceptedRequest) {
	for _, r := range slices.Concat(c.waiting, c.planned) {
		if c.lacks(&r) == 0 || r.State == v1alpha1.RequestWaiting && !now.Before(c.deadlineOf(&r)) {
			continue
		}
		if r.State == v1alpha1.RequestWaiting {
			keepEnd(&r, c.deadlineOf(&r))
		}
		all = append(all, r)
	}
	return all
}

// Lacks returns how many approvals a request for a Gate still needs.
func Lacks(g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest) int { return courseOf(g).lacks(r) }

// WaitsForOthers says that an open request for a Gate lacks some approvals, and how to approve it.
func WaitsForOthers(namespace, name string, lacks int) string {
	return fmt.Sprintf("waits for %s by others: %s", plural(lacks, "approval"), approveCommand(namespace, name))
}

// approveCommand is the command that approves the open request of a Gate.
func approveCommand(namespace, name string) string {
	return fmt.Sprintf("kubectl gate approve gate/%s -n %s", name, namespace)
}

// WaitingForApproval says which open requests for a Gate wait for approval at an instant, and how to approve them. It is empty if none does.
func WaitingForApproval(g *v1alpha1.Gate, now time.Time) string {
	return strings.TrimPrefix(waitsForApproval(g, courseAt(g, now).unapproved(now)), ", ")
}

// waitsForApproval says which open requests wait for approval, and how to approve them. It is empty if none does.
func waitsForApproval(g *v1alpha1.Gate, all []v1alpha1.AcceptedRequest) string {
	if len(all) == 0 {
		return ""
	}
	r := &all[len(all)-1]
	what := "an open request of " + r.RequestedBy
	if withdraws(r.Window) {
		what = "a request of " + r.RequestedBy + " to withdraw close requests"
	}
	text := fmt.Sprintf(", %s at %s waits for %s", what, rfc3339(r.RequestedAt.Time), plural(Lacks(g, r), "more approval"))
	if has := approversOf(r); has != "" {
		text += " (has " + has + ")"
	}
	how := ": approve it with " + approveCommand(g.Namespace, g.Name)
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
	return OneLine(strings.Join(names, ", "), maxApprovedBy)
}

// maxApprovedBy bounds in bytes what a sentence says of those who have approved.
const maxApprovedBy = 96

// plural counts what a word names.
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
