package gate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// maxRequestDistance is how far from now the time of a request may be. Farther
// ones are taken for typing errors.
const maxRequestDistance = 366 * 24 * time.Hour

// Bounds in bytes of what is copied from annotations into the status, events
// and logs. The name of any service account fits, and the sentence of an event
// with both stays below the 1024 bytes that events.k8s.io allows.
const (
	maxBy     = len("system:serviceaccount::") + 63 + 253
	maxReason = 512
)

// A Request is an annotation that was not handled before.
type Request struct {
	Action v1alpha1.RequestAction
	// Annotation that holds the request, and its value.
	Annotation, Value string
	// At is the time that the request is in force from.
	At time.Time
	// Window is how long it asks to be in force, nil for as long as the Gate says.
	Window *metav1.Duration
	// By is who made it, and Reason is given with it.
	By, Reason string
	// Err says why the request was refused, nil if it was accepted.
	Err error
}

// String says what is requested, when, by whom and why.
func (r Request) String() string {
	text := fmt.Sprintf("%s requested at %s", r.Action, rfc3339(r.At))
	if r.Window != nil {
		text += " for " + r.Window.Duration.String()
	}
	if r.By != "" {
		text += " by " + r.By
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

type requestAnnotation struct {
	action                           v1alpha1.RequestAction
	requestedAt, requestedBy, reason string
}

var requestAnnotations = []requestAnnotation{
	{v1alpha1.RequestOpen, v1alpha1.OpenRequestedAtAnnotation, v1alpha1.OpenRequestedByAnnotation, v1alpha1.OpenReasonAnnotation},
	{v1alpha1.RequestClose, v1alpha1.CloseRequestedAtAnnotation, v1alpha1.CloseRequestedByAnnotation, v1alpha1.CloseReasonAnnotation},
}

// HandleRequests looks for request annotations that were not handled before,
// remembers them in the status of the Gate, and returns them. A value is looked
// at once; a missing annotation changes nothing.
func HandleRequests(g *v1alpha1.Gate, now time.Time) []Request {
	for i := range g.Status.Requests {
		if m := &g.Status.Requests[i]; m.PlannedAt != nil && !m.PlannedAt.After(now) {
			begin(g, m)
		}
	}
	var handled []Request
	for _, a := range inOrder(g) {
		value, ok := g.Annotations[a.requestedAt]
		memory := memoryOf(g, a.action)
		if !ok || (memory != nil && memory.LastHandled == value) {
			continue
		}
		if memory == nil {
			g.Status.Requests = append(g.Status.Requests, v1alpha1.RequestMemory{Action: a.action})
			memory = &g.Status.Requests[len(g.Status.Requests)-1]
		}
		memory.LastHandled = value
		r := Request{
			Action: a.action, Annotation: a.requestedAt, Value: value,
			By: oneLine(g.Annotations[a.requestedBy], maxBy), Reason: oneLine(g.Annotations[a.reason], maxReason),
		}
		if r.At, r.Window, r.Err = parseRequest(value, memory.RequestedAt, now); r.Err == nil {
			if isAgain(memory, r) {
				continue // Flux has put it back, after another value that was refused
			}
			if !r.At.After(now) {
				r.At = seamless(requestsOf(g), a.action, r.At)
			}
			accept(memory, r, now)
		}
		handled = append(handled, r)
	}
	var last *Request
	for i := range handled {
		if r := &handled[i]; r.Err == nil && (last == nil || !r.At.Before(last.At)) {
			last = r
		}
	}
	if last != nil {
		g.Status.LastRequest = &v1alpha1.LastRequest{
			Action: last.Action, RequestedAt: metav1.NewTime(last.At), Window: last.Window,
			By: last.By, Reason: last.Reason, Source: sourceOf(last),
		}
	}
	return handled
}

// isAgain returns whether a request is the very one that is in force, or planned, as it
// was handled before.
func isAgain(memory *v1alpha1.RequestMemory, r Request) bool {
	same := func(at *metav1.MicroTime, window *metav1.Duration) bool {
		return at != nil && at.Time.Equal(r.At) && reflect.DeepEqual(window, r.Window)
	}
	return same(memory.RequestedAt, memory.Window) || same(memory.PlannedAt, memory.PlannedWindow)
}

// inOrder returns the annotations in the order of their times: an open request goes on
// seamlessly from one that is in force, but not from one that a close request which is
// seen together with it has ended.
func inOrder(g *v1alpha1.Gate) []requestAnnotation {
	order := slices.Clone(requestAnnotations)
	slices.SortStableFunc(order, func(a, b requestAnnotation) int {
		x, _ := instantOf(g.Annotations[a.requestedAt])
		y, _ := instantOf(g.Annotations[b.requestedAt])
		return x.Compare(y)
	})
	return order
}

// accept notes a request. One that is planned does not end the one in force.
func accept(memory *v1alpha1.RequestMemory, r Request, now time.Time) {
	at := &metav1.MicroTime{Time: r.At}
	if r.At.After(now) {
		memory.PlannedAt, memory.PlannedWindow, memory.PlannedBy, memory.PlannedReason = at, r.Window, r.By, r.Reason
		return
	}
	memory.RequestedAt, memory.Window, memory.By, memory.Reason = at, r.Window, r.By, r.Reason
}

// begin has a planned request take the place of the one in force.
func begin(g *v1alpha1.Gate, m *v1alpha1.RequestMemory) {
	at := m.PlannedAt.Time
	m.PlannedAt = nil
	m.RequestedAt = &metav1.MicroTime{Time: seamless(requestsOf(g), m.Action, at)}
	m.Window, m.By, m.Reason = m.PlannedWindow, m.PlannedBy, m.PlannedReason
	m.PlannedWindow, m.PlannedBy, m.PlannedReason = nil, "", ""
}

func sourceOf(r *Request) string {
	if strings.HasPrefix(r.By, v1alpha1.ReceiverRequester) {
		return v1alpha1.SourceWebhook
	}
	return v1alpha1.SourceAnnotation
}

// FormatRequest returns the value of an annotation that requests an action at a time,
// for a window of its own unless that is nil.
func FormatRequest(at time.Time, window *metav1.Duration) string {
	value := at.UTC().Format(time.RFC3339Nano)
	if window != nil {
		value += windowSeparator + window.Duration.String()
	}
	return value
}

// windowSeparator is that of start and duration in ISO 8601.
const windowSeparator = "/"

// oneLine returns a text without line breaks and other control characters, and
// not longer than a number of bytes, so that it cannot pass for another line.
func oneLine(text string, length int) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text))
	if len(text) <= length {
		return text
	}
	const more = "..."
	return strings.ToValidUTF8(text[:length-len(more)], "") + more
}

// seamless returns the time from which a request takes the place of the one that is in
// force: of two open requests not rounded up, which would close the Gate until then.
func seamless(requests []inForce, action v1alpha1.RequestAction, at time.Time) time.Time {
	i := latest(requests, at)
	if action != v1alpha1.RequestOpen || i < 0 || requests[i].action != v1alpha1.RequestOpen || (!requests[i].end.IsZero() && !at.Before(requests[i].end)) {
		return at
	}
	if whole := at.Truncate(time.Second); whole.After(requests[i].start) {
		return whole
	}
	return requests[i].start
}

// parseRequest refuses, besides nonsense, a time before that of a request which
// was handled already: it is the old value that Flux puts back if one is in Git.
func parseRequest(value string, before *metav1.MicroTime, now time.Time) (time.Time, *metav1.Duration, error) {
	instant, duration, limited := strings.Cut(value, windowSeparator)
	at, err := time.Parse(time.RFC3339Nano, instant)
	if err != nil {
		return time.Time{}, nil, fmt.Errorf("must be a time in RFC 3339 such as %s", rfc3339(now))
	}
	var window *metav1.Duration
	if limited {
		d, err := time.ParseDuration(duration)
		if err != nil || d < minWindow || d > maxWindow {
			return time.Time{}, nil, fmt.Errorf("must have a duration from 1s to 8784h (366 days) after the slash, as in %s/30m", rfc3339(now))
		}
		window = &metav1.Duration{Duration: d}
	}
	at = at.UTC().Truncate(time.Microsecond)
	if distance := at.Sub(now).Abs(); distance > maxRequestDistance {
		return time.Time{}, nil, fmt.Errorf("must be at most 366 days away from now, %s", rfc3339(now))
	}
	if before != nil && at.Before(before.Time) && !before.After(now) {
		return time.Time{}, nil, fmt.Errorf("must not be earlier than the request of %s that was handled before", before.UTC().Format(time.RFC3339Nano))
	}
	return at, window, nil
}

func memoryOf(g *v1alpha1.Gate, action v1alpha1.RequestAction) *v1alpha1.RequestMemory {
	for i := range g.Status.Requests {
		if g.Status.Requests[i].Action == action {
			return &g.Status.Requests[i]
		}
	}
	return nil
}

// inForce is the time in which an accepted request is in force: for the window,
// but not longer than to the next request. A zero end is never.
type inForce struct {
	action     v1alpha1.RequestAction
	start, end time.Time
	window     *metav1.Duration
	by, reason string
	// accepted says that it was in force once, by whatever clock.
	accepted bool
}

// request returns the request without its annotation, which may be gone.
func (r inForce) request() *Request {
	return &Request{Action: r.action, At: r.start, Window: r.window, By: r.by, Reason: r.reason}
}

// requestsOf returns when the accepted requests of a Gate are in force, in
// order. Of two for the same time, close wins.
func requestsOf(g *v1alpha1.Gate) []inForce {
	var all []inForce
	for _, m := range g.Status.Requests {
		if m.RequestedAt != nil {
			all = append(all, inForce{action: m.Action, start: m.RequestedAt.Time, window: m.Window, by: m.By, reason: m.Reason, accepted: true})
		}
		if m.PlannedAt != nil {
			all = append(all, inForce{action: m.Action, start: m.PlannedAt.Time, window: m.PlannedWindow, by: m.PlannedBy, reason: m.PlannedReason})
		}
	}
	slices.SortFunc(all, func(a, b inForce) int {
		if order := a.start.Compare(b.start); order != 0 {
			return order
		}
		return -strings.Compare(string(a.action), string(b.action)) // open, then close
	})
	for i := range all {
		for _, window := range []*metav1.Duration{g.Spec.Window, all[i].window} {
			if window != nil {
				all[i].end = earlier(all[i].end, all[i].start.Add(window.Duration))
			}
		}
		if i+1 == len(all) {
			continue
		}
		next := all[i+1].start
		if all[i].action == v1alpha1.RequestOpen && all[i+1].action == v1alpha1.RequestOpen {
			next = roundUp(next) // where the next one begins to open
		}
		all[i].end = earlier(all[i].end, next)
	}
	return all
}

// latest returns the index of the newest request whose time has come, -1 if
// there is none.
func latest(requests []inForce, now time.Time) int {
	i := len(requests) - 1
	for i >= 0 && requests[i].start.After(now) {
		i--
	}
	return i
}

// deciding returns the request that decides if the reason of a decision is a
// request, nil otherwise. A close request lasts for the rest of its second, in
// which a newer open request may have begun.
func deciding(requests []inForce, reason schedule.Reason, now time.Time) *Request {
	action := v1alpha1.RequestOpen
	switch reason {
	case schedule.OpenRequested:
	case schedule.CloseRequested:
		action = v1alpha1.RequestClose
	default:
		return nil
	}
	for i := latest(requests, now); i >= 0; i-- {
		if r := requests[i]; r.action == action {
			return r.request()
		}
	}
	return nil
}

// periods returns the requests as periods of a schedule at an instant. Fractions of a
// second are rounded so that nothing opens early or closes late. A close request that was
// in force already stays so if the clock is behind since: the one before it, whose place
// it took, is forgotten.
func periods(requests []inForce, now time.Time) (opened, closed []schedule.Period) {
	for _, r := range requests {
		switch {
		case r.action == v1alpha1.RequestOpen:
			opened = append(opened, span("", roundUp(r.start), r.end))
		case r.accepted && now.Before(r.start):
			closed = append(closed, span("", now.Truncate(time.Second), roundUp(r.end)))
		default:
			closed = append(closed, span("", r.start, roundUp(r.end)))
		}
	}
	return opened, closed
}

// span returns the period between two times, the empty one if there is no whole
// second between them.
func span(name string, from, until time.Time) schedule.Period {
	period, err := schedule.Dated(name, from, until)
	if err != nil {
		return schedule.Period{}
	}
	return period
}

// earlier returns the earlier of two times, where zero in a stands for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func roundUp(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Second - 1).Truncate(time.Second)
}
