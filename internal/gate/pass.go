package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// PassRequest is a request for a pass.
type PassRequest struct {
	// Value is the value of the annotation, At is the time in it, and Lasts is how long the pass may last.
	Value string
	At    time.Time
	Lasts time.Duration
	// By is the requester, and Reason is the reason that the requester gave.
	By, Reason string
	// Gates is the list of Gates that were checked at admission, see PassGates.
	Gates string
	// Err is the reason why the value is refused, nil if it is valid.
	Err error
}

// PassGates returns the list of Gates in a request to pass an object that these Gates hold. For more than v1alpha1.MaxPassGates, it returns
// v1alpha1.AnyName.
func PassGates(heldBy []string) string {
	if len(heldBy) > v1alpha1.MaxPassGates {
		return v1alpha1.AnyName
	}
	return strings.Join(heldBy, ",")
}

// PassCovers returns whether a list from PassGates includes the Gate name.
func PassCovers(list, name string) bool {
	return list == v1alpha1.AnyName || slices.Contains(strings.Split(list, ","), name)
}

// ReadPass reads the request for a pass from the annotations of an object. It returns false if there is none. It refuses a time that is
// further ahead than the tolerated clock skew, because the request would still count after the Gates have closed again.
func ReadPass(annotations map[string]string, now time.Time) (PassRequest, bool) {
	value, ok := annotations[v1alpha1.PassRequestedAtAnnotation]
	r := PassRequest{
		Value: value, By: format.OneLine(annotations[v1alpha1.PassRequestedByAnnotation], ledger.MaxRequestedBy), Reason: format.OneLine(annotations[v1alpha1.PassReasonAnnotation], ledger.MaxMessage),
		Gates: annotations[v1alpha1.PassGatesAnnotation],
	}
	var err error
	switch r.At, r.Lasts, err = ParsePass(value); {
	case err != nil:
		r.Err = fmt.Errorf("the annotation %s %w", v1alpha1.PassRequestedAtAnnotation, err)
	case IsAhead(r.At, now):
		r.Err = fmt.Errorf(msgPassAhead, format.Time(r.At), format.Time(now))
	}
	return r, ok
}

// IsAhead returns whether the time of a request is further ahead than the tolerated clock skew.
func IsAhead(at, now time.Time) bool { return at.After(now.Add(ledger.MaxSkew)) }

const (
	// DefaultPass is the duration of a pass if the request has none.
	DefaultPass = 10 * time.Minute
	// MaxPass is the longest duration of a request for a pass.
	MaxPass = time.Hour
)

// ParsePass parses the value of a request for a pass. lasts is how long the pass may last, DefaultPass if the value has no duration.
func ParsePass(value string) (at time.Time, lasts time.Duration, err error) {
	v, err := annotations.Pass.Parse(value)
	if lasts = DefaultPass; v.Duration != nil {
		lasts = v.Duration.Duration
	}
	if err == nil && (lasts < v1alpha1.MinWindow || lasts > MaxPass) {
		err = errors.New(msgPassDuration)
	}
	return v.At, lasts, err
}

// FormatPass returns the value of a request for a pass that may last as long as needs, but at most MaxPass. The value has no duration if
// DefaultPass suffices.
func FormatPass(at time.Time, needs time.Duration) string {
	v := annotations.Value{At: at.Truncate(time.Microsecond)}
	if needs > DefaultPass {
		v.Duration = v1alpha1.NewDuration(min(needs, MaxPass))
	}
	return annotations.Pass.Format(v)
}

// MayPrecede returns whether a request for a pass may have been made before the last transition of a Gate although its time is later,
// because the requester's clock may be ahead.
func MayPrecede(at time.Time, last *v1alpha1.Transition, now time.Time) bool {
	return at.After(now) && now.Before(last.At.Add(ledger.MaxSkew))
}

// PassBarred returns why a closed Gate permits no pass at an instant, empty if it does. A Gate permits a pass only if an open request could
// open it. If a close request hides close periods with override: Deny, their calendars count as broken.
func PassBarred(g *v1alpha1.Gate, now time.Time) string {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	last := g.Status.LastTransition
	switch {
	case opened == nil || last == nil:
		return msgBarredUndecided
	case opened.Reason == v1alpha1.InvalidSpecReason:
		return msgBarredInvalid
	case g.RequiredApprovals() > 0:
		return msgBarredApproval
	case opened.Reason == v1alpha1.TimeUnknownReason:
		return msgBarredTime
	case opened.Reason == v1alpha1.DependencyNotReadyReason:
		return msgBarredDependency
	case opened.Reason == v1alpha1.ClosePeriodReason && isHard(g, last.Period):
		return fmt.Sprintf(msgBarredDeny, last.Period)
	case opened.Reason != v1alpha1.CloseRequestedReason:
		return ""
	}
	now = now.Truncate(time.Second) // requests begin at a whole second
	asked := g.DeepCopy()
	asked.Status.Requests = slices.DeleteFunc(asked.Status.Requests, func(r v1alpha1.AcceptedRequest) bool { return r.Action == v1alpha1.RequestClose }) // an open request ends them
	metav1.SetMetaDataAnnotation(&asked.ObjectMeta, v1alpha1.OpenRequestedAtAnnotation, ledger.FormatRequest(now, &v1alpha1.Duration{Duration: time.Minute}))
	ApplyRequests(asked, ledger.Unstamped, now)
	d := Decide(asked, now)
	switch {
	case d.State == v1alpha1.StateOpened:
		return ""
	case d.Reason == v1alpha1.ClosePeriodReason && len(d.Broken) > 0:
		return fmt.Sprintf(msgBarredDenyHidden, d.By)
	case d.Reason == v1alpha1.ClosePeriodReason:
		return fmt.Sprintf(msgBarredDeny, d.By)
	}
	return msgBarred + d.Message
}
