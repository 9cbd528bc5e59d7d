package ledger

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/format"
)

// maxRequestDistance bounds how far the time of a request may be from now. A larger distance is probably a typo.
const maxRequestDistance = 366 * 24 * time.Hour

// MaxRequestedBy and MaxMessage bound, in bytes, the texts that are copied from annotations into the status, events and logs.
// MaxRequestedBy fits the name of any service account. An event that contains both stays below the 1024 bytes that events.k8s.io allows.
const (
	MaxRequestedBy = len("system:serviceaccount::") + 63 + 253
	MaxMessage     = 512
)

const (
	// maxEarlier bounds the number of stored older values of an annotation.
	maxEarlier = 8
	// maxValue bounds the value of a request, in bytes.
	maxValue = annotations.MaxRequest
)

// errRestored is returned for an old value of an open request, which Flux has restored from Git.
var errRestored = errors.New(msgRestored)

// Request is a request to open or close a Gate: a new one in an annotation or a line, or an accepted one.
type Request struct {
	Action v1alpha1.RequestAction
	// Annotation is the annotation that holds the request, and Value is its value.
	Annotation, Value string
	// At is the time when the request takes effect.
	At time.Time
	// Window is the duration of the request, nil if it has none. Unlimited is true for a close request without an end.
	Window    *v1alpha1.Duration
	Unlimited bool
	// Targets limit the request. It is nil for a request for the whole Gate.
	Targets []v1alpha1.RequestTarget
	// By is the requester, and Reason is the reason that the requester gave.
	By, Reason string
	// Err is the reason why the request was refused, nil if it was accepted. Malformed is true if the value can never be valid.
	Err       error
	Malformed bool
	// ApprovedBy is the approver of a new approval, empty for a new request. Waits is the number of missing approvals. Emergency is true if
	// the request needs no approvals.
	ApprovedBy string
	Waits      int
	Emergency  bool
	// Planned is true if the time of the request was in the future when it was accepted.
	Planned bool

	// Approvers names the users who approved the request, cut to 96 bytes.
	Approvers string

	source string
	// line is the number of the line that holds the request, zero for an annotation. emergency is true if the requester marked it as an
	// emergency.
	line      int64
	emergency bool
}

// EventReason returns the reason of the event and of the history entry about a request.
func (r Request) EventReason() string {
	switch {
	case r.Err != nil:
		return v1alpha1.RequestRefusedReason
	case r.ApprovedBy != "":
		return v1alpha1.RequestApprovedReason
	case Withdraws(r.Window) && r.Waits == 0:
		return v1alpha1.RequestWithdrawnReason
	case r.Planned:
		return v1alpha1.RequestPlannedReason
	}
	return v1alpha1.RequestAcceptedReason
}

// String describes the request: action, time, duration, requester, approvals and reason.
func (r Request) String() string {
	text := fmt.Sprintf(msgRequested, r.Action, format.Time(r.At))
	switch {
	case Withdraws(r.Window):
		text = fmt.Sprintf(msgWithdrawn, opposite(r.Action), format.Time(r.At))
	case r.Window != nil:
		text += " for " + r.Window.String()
	case r.Unlimited:
		text += " without end"
	}
	if r.Targets != nil {
		text += " only for " + FormatTargets(r.Targets)
	}
	if r.By != "" {
		text += " by " + r.By
	}
	if r.Approvers != "" {
		text += ", approved by " + r.Approvers
	}
	if r.Emergency {
		text += " in an emergency"
	}
	if r.Waits > 0 && r.Err == nil {
		text += ", waits for " + format.Count(r.Waits, "approval")
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// Is returns whether r and other are the same request: they have the same action, requester, time and targets.
func (r Request) Is(other *Request) bool {
	return other != nil && r.Action == other.Action && r.By == other.By && r.At.Equal(other.At) && slices.Equal(r.Targets, other.Targets)
}

// requestAnnotation holds the names of the annotations for an action.
type requestAnnotation struct {
	action                                     v1alpha1.RequestAction
	requestedAt, requestedBy, reason, received string
}

// requestAnnotations lists the close request first, because it is handled first if both are new.
var requestAnnotations = []requestAnnotation{
	{v1alpha1.RequestClose, v1alpha1.CloseRequestedAtAnnotation, v1alpha1.CloseRequestedByAnnotation, v1alpha1.CloseReasonAnnotation, v1alpha1.CloseReceivedAnnotation},
	{v1alpha1.RequestOpen, v1alpha1.OpenRequestedAtAnnotation, v1alpha1.OpenRequestedByAnnotation, v1alpha1.OpenReasonAnnotation, v1alpha1.OpenReceivedAnnotation},
}

// annotationsOf returns the names of the annotations for an action.
func annotationsOf(action v1alpha1.RequestAction) requestAnnotation {
	if action == v1alpha1.RequestClose {
		return requestAnnotations[0]
	}
	return requestAnnotations[1]
}

// unhandled returns the new requests in annotations in the order in which they must be handled: the close request first, unless the open
// request is certainly older.
func (l *Ledger) unhandled(now time.Time) []*Request {
	var all []*Request
	for _, a := range requestAnnotations {
		if r := l.unhandledIn(a); r != nil {
			r.Err = l.parse(r, now)
			all = append(all, r)
		}
	}
	if len(all) == 2 && all[0].Err == nil && all[1].Err == nil && all[0].At.After(all[1].At.Add(slack(all[0].source, all[1].source))) {
		slices.Reverse(all)
	}
	return all
}

// slack returns the time by which two requests must differ to prove their order, depending on their sources. It is zero for two
// webhooks, because WriteRequest orders their times.
func slack(a, b string) time.Duration {
	if a == v1alpha1.SourceWebhook && b == v1alpha1.SourceWebhook {
		return 0
	}
	return MaxSkew
}

// unhandledIn returns the unhandled request in an annotation, nil if there is none.
func (l *Ledger) unhandledIn(a requestAnnotation) *Request {
	g := l.gate
	value, ok := g.Annotations[a.requestedAt]
	if !ok {
		return nil
	}
	r := &Request{
		Action: a.action, Annotation: a.requestedAt, Value: value, source: v1alpha1.SourceAnnotation,
		By: format.OneLine(g.Annotations[a.requestedBy], MaxRequestedBy), Reason: format.OneLine(g.Annotations[a.reason], MaxMessage),
	}
	if strings.HasPrefix(r.By, v1alpha1.ReceiverRequester) {
		if g.Annotations[a.received] == value {
			r.source = v1alpha1.SourceWebhook
		} else {
			r.By, r.Reason = "", "" // the name is left over from the last webhook
		}
	}
	r.emergency = a.action == v1alpha1.RequestOpen && r.source != v1alpha1.SourceWebhook && g.Annotations[v1alpha1.OpenEmergencyAnnotation] == value
	if r.isLastHandled(l.findRecord(a.action)) {
		return nil
	}
	return r
}

// isLastHandled returns whether a request is the one that was handled last.
func (r *Request) isLastHandled(handled *v1alpha1.HandledRequest) bool {
	return handled != nil && handled.LastHandled == r.Value && (r.Action == v1alpha1.RequestOpen || handled.LastRequestedBy == r.By)
}

// has returns whether the ledger already contains a request equal to r: a planned one, or the one in the record.
func (l *Ledger) has(handled *v1alpha1.HandledRequest, r *Request) bool {
	same := func(at metav1.MicroTime, window *v1alpha1.Duration, unlimited bool, targets []v1alpha1.RequestTarget) bool {
		return at.Time.Equal(r.At) && reflect.DeepEqual(window, r.Window) && unlimited == r.Unlimited && slices.Equal(targets, r.Targets)
	}
	// close requests of different users are different requests
	by := func(who string) bool { return r.Action == v1alpha1.RequestOpen || r.By == who }
	return handled.RequestedAt != nil && same(*handled.RequestedAt, handled.Window, handled.Unlimited, handled.Targets) && by(handled.RequestedBy) ||
		slices.ContainsFunc(l.planned, func(p v1alpha1.AcceptedRequest) bool {
			return p.Action == r.Action && same(p.RequestedAt, p.Window, p.Unlimited, p.Targets) && by(p.RequestedBy)
		})
}

// handles records the value of a request as handled. It returns true for an open request with an old value, which Flux has restored from
// Git.
func handles(handled *v1alpha1.HandledRequest, r *Request) (restored bool) {
	value := r.Value
	if handled.Action == v1alpha1.RequestOpen {
		restored = slices.Contains(handled.Earlier, value)
		handled.Earlier = slices.Clone(handled.Earlier)
		if last := handled.LastHandled; last != "" && len(last) <= maxValue { // longer values are refused anyway
			handled.Earlier = slices.Insert(handled.Earlier, 0, last)
		}
		handled.Earlier = slices.DeleteFunc(handled.Earlier, func(earlier string) bool { return earlier == value })
		handled.Earlier = handled.Earlier[:min(len(handled.Earlier), maxEarlier)]
	}
	handled.LastHandled, handled.LastRequestedBy = value, r.By
	return restored
}

// accept adds a request to the ledger, or returns why it is refused. A planned request does not end the one that is in force now.
func (l *Ledger) accept(handled *v1alpha1.HandledRequest, r *Request, accepted v1alpha1.AcceptedRequest, now time.Time) error {
	if err := l.checkApprovable(&accepted); err != nil {
		return err
	}
	if r.Targets != nil && !Withdraws(r.Window) && l.countLimited(now) >= v1alpha1.MaxLimitedRequests {
		return ErrTooManyLimited
	}
	switch {
	case Withdraws(r.Window):
		if err := l.withdraw(accepted, now); err != nil {
			return err
		}
		recordBegin(handled, &accepted)
		return nil
	case r.At.After(now) && r.source != v1alpha1.SourceWebhook:
		r.Planned = true
		return l.plan(accepted)
	}
	end := r.End(l.limit)
	oldest := now
	if r.Action == v1alpha1.RequestClose {
		oldest = now.Add(-MaxSkew) // it may still be in force by the clock of another replica
	}
	// A close request that has ended may have ended an open request before the controller read either.
	if !end.IsZero() && !oldest.Before(end) && !l.endsOpen(&accepted, now) {
		return fmt.Errorf(msgOver, format.Time(end))
	}
	if err := l.beginOrWait(accepted, now); err != nil {
		return err
	}
	recordBegin(handled, &accepted)
	return nil
}

// recordBegin stores a request in the record of its action, as the last one that has begun.
func recordBegin(handled *v1alpha1.HandledRequest, r *v1alpha1.AcceptedRequest) {
	at := r.RequestedAt
	handled.RequestedAt, handled.Window, handled.Unlimited, handled.Targets, handled.RequestedBy = &at, r.Window, r.Unlimited, r.Targets, r.RequestedBy
}

// FormatRequest returns the value of an annotation that requests an action at a time, with a duration unless window is nil, and limited to
// the targets if there are any.
func FormatRequest(at time.Time, window *v1alpha1.Duration, targets ...v1alpha1.RequestTarget) string {
	return annotations.Open.Format(annotations.Value{At: at, Duration: window, Only: targets})
}

// FormatUnlimited returns the value of an annotation that requests a close that begins at a time and has no end. It is limited to the
// targets if there are any.
func FormatUnlimited(at time.Time, targets ...v1alpha1.RequestTarget) string {
	return annotations.Close.Format(annotations.Value{At: at, Unlimited: true, Only: targets})
}

// formatValue returns an annotation value that is equivalent to an accepted request.
func formatValue(r *v1alpha1.AcceptedRequest) string {
	if r.Unlimited {
		return FormatUnlimited(r.RequestedAt.Time, r.Targets...)
	}
	return FormatRequest(r.RequestedAt.Time, r.Window, r.Targets...)
}

// parse sets the time, the duration and the targets of a request from its value. It refuses a time before the last request that has
// begun, because Flux may have restored an old value from Git. Close requests may be up to MaxSkew earlier.
func (l *Ledger) parse(r *Request, now time.Time) error {
	v, err := r.form().Parse(r.Value)
	if err != nil {
		r.Malformed = true
		return err
	}
	if d := v.Duration; d != nil && (d.Duration != 0 && d.Duration < v1alpha1.MinWindow || d.Duration > v1alpha1.MaxWindow) {
		r.Malformed = true
		return errors.New(msgInvalidDuration)
	}
	at := v.At.Truncate(time.Microsecond)
	if distance := at.Sub(now).Abs(); distance > maxRequestDistance {
		return fmt.Errorf(msgTooFar, format.Time(now))
	}
	behind := time.Duration(0)
	if r.Action == v1alpha1.RequestClose {
		behind = MaxSkew
	}
	var before *metav1.MicroTime
	if handled := l.findRecord(r.Action); handled != nil {
		before = handled.RequestedAt
	}
	if before != nil && at.Before(before.Add(-behind)) && !before.After(now.Add(MaxSkew)) {
		return fmt.Errorf(msgNotLater, before.UTC().Format(time.RFC3339Nano))
	}
	r.At, r.Window, r.Unlimited, r.Targets = at, v.Duration, v.Unlimited, l.normalize(v.Only)
	return nil
}

// form returns the format of the annotation for the action of the request.
func (r *Request) form() *annotations.Form {
	if r.Action == v1alpha1.RequestClose {
		return annotations.Close
	}
	return annotations.Open
}

// findRecord returns the record of an action's annotation, nil if none was handled.
func (l *Ledger) findRecord(action v1alpha1.RequestAction) *v1alpha1.HandledRequest {
	for i := range l.handled {
		if l.handled[i].Action == action {
			return &l.handled[i]
		}
	}
	return nil
}

// handledRecord returns the record of an action's annotation, and adds it if it is missing.
func (l *Ledger) handledRecord(action v1alpha1.RequestAction) *v1alpha1.HandledRequest {
	if record := l.findRecord(action); record != nil {
		return record
	}
	l.handled = append(l.handled, v1alpha1.HandledRequest{Action: action})
	return l.findRecord(action)
}
