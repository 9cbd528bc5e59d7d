package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

// PassState is the state of a pass.
type PassState string

// The states of a pass.
const (
	PassInProgress PassState = "Passing"
	PassEnded      PassState = "Ended"
	PassRefused    PassState = "Refused"
)

// Pass permits one reconciliation of a target that Gates hold. It is recorded on the target, so that a crash neither extends nor repeats
// it. The zero value means that there is no pass.
type Pass struct {
	State PassState
	// Gates lists the Gates that permit the pass, in the format of FormatHeldBy. The pass ends if another Gate holds the target.
	Gates string
	// Value is the value of the annotation that requested the pass, By is the requester, and Reason is the reason that the requester gave.
	Value, By, Reason string
	// Since is the time when the pass began. It is also the value of the reconcile request to Flux.
	Since time.Time
	// Until is the deadline of the pass. Ended is the time when it ended, or when it was refused.
	Until, Ended time.Time
	// Was is the progress that Flux reported before the pass. Is is the progress that it has reported since. If a part changes for the second
	// time, the pass ends.
	Was, Is target.Progress
	// Before and After are the revisions of the target before and after the pass.
	Before, After string
	// Outcome is how the pass ended. Message is a sentence about the outcome, or about why the pass was refused.
	Outcome, Message string
}

// Outcomes of a pass.
const (
	PassSucceeded   = "Succeeded"
	PassFailed      = "Failed"
	PassTimedOut    = "TimedOut"
	PassClosed      = "Closed"
	PassOpened      = "Opened"
	PassSuspended   = "Suspended"
	PassInterrupted = "Interrupted"
)

// CanPass returns whether a target can have a pass. The policies protect the record only on such targets.
func CanPass(obj *target.Object) bool {
	_, isAdded := target.Added(obj.GroupVersionKind().GroupKind())
	return !isAdded && target.Suspends(target.Of(&obj.Unstructured))
}

// PassOf returns the last pass from the record on a trimmed target, zero if there is none or the target cannot have one. If another manager
// owns the record, or if the record is malformed, the result contains only the handled request, and permits no pass.
func PassOf(obj *target.Object) Pass {
	if !CanPass(obj) {
		return Pass{}
	}
	record := obj.GetAnnotations()[v1alpha1.PassAnnotation]
	p, ok := ParseRecord(record)
	if !ok && record != "" { // the current request may have been handled
		return Pass{State: PassEnded, Value: obj.GetAnnotations()[v1alpha1.PassRequestedAtAnnotation]}
	}
	if Us.IsPassOwnedByOthers(&obj.Unstructured) {
		return p.brief()
	}
	return p
}

// brief returns a copy that records only which request was handled. Its state is PassEnded if the pass was granted, and PassRefused if it
// was refused.
func (p Pass) brief() Pass {
	switch p.State {
	case PassInProgress, PassEnded:
		return Pass{State: PassEnded, Value: p.Value}
	case PassRefused:
		return Pass{State: PassRefused, Value: p.Value, Ended: p.Ended}
	}
	return Pass{}
}

// annotations returns the annotations that record the pass. While it is in progress, they include a reconcile request to Flux.
func (p Pass) annotations() map[string]string {
	if p.State == "" {
		return nil
	}
	note := map[string]string{v1alpha1.PassAnnotation: p.Record()}
	if p.State == PassInProgress {
		note[fluxmeta.ReconcileRequestAnnotation] = p.token()
	}
	return note
}

// token returns the value of the reconcile request.
func (p Pass) token() string { return p.Since.UTC().Format(time.RFC3339Nano) }

// RequestedAt returns the time in the request, nil if it has none.
func (p Pass) RequestedAt() *metav1.MicroTime {
	at, _, err := gate.ParsePass(p.Value)
	if err != nil {
		return nil
	}
	return &metav1.MicroTime{Time: at.Truncate(time.Microsecond)}
}

// Last returns when the pass ended, or when it began if it is in progress.
func (p Pass) Last() time.Time { return cmp.Or(p.Ended, p.Since) }

// IsNew returns whether the state or the request of the pass differs from before. It is false for the zero value.
func (p Pass) IsNew(before Pass) bool {
	return p.State != "" && (p.State != before.State || p.Value != before.Value)
}

// reported returns how a pass has ended, empty if it has not. It relies on Flux writing the conditions before the handled request. A later
// reconcile request also counts when Flux has handled it. Any client that may patch the target could keep replacing that request, so the
// second report ends the pass.
func (p Pass) reported(obj *target.Object, now time.Time) (outcome, message string) {
	if p.Since.After(now.Add(maxReportAge)) || p.Until.Sub(p.Since) > gate.MaxPass {
		return PassInterrupted, msgPassTampered
	}
	handled, second := target.Handled(obj), p.second(target.ProgressOf(obj))
	request := obj.GetAnnotations()[fluxmeta.ReconcileRequestAnnotation]
	requested := handled == request && handled != p.Was[0]
	if ready := target.ReadyOf(obj); ready != nil && (handled == p.token() || requested || second != "") {
		switch ready.Status {
		case metav1.ConditionTrue:
			return PassSucceeded, msgPassReady + ready.Reason
		case metav1.ConditionFalse:
			return PassFailed, msgPassNotReady + ready.Reason
		case metav1.ConditionUnknown:
		}
	}
	switch {
	case second != "":
		return PassInterrupted, msgPassSecondReport + second
	case handled != p.token() && (request == "" || request == p.Was[0]):
		return PassInterrupted, msgPassRequestRemoved // because Flux would never report on this pass
	case !now.Before(p.Until):
		return PassTimedOut, msgPassTimedOut + p.Until.UTC().Format(time.RFC3339)
	}
	return "", ""
}

// second returns the name of a part of the progress that has changed twice since the pass began, empty if there is none.
func (p Pass) second(now target.Progress) string {
	for i, name := range target.ProgressNames {
		if now[i] != p.Is[i] && p.Is[i] != p.Was[i] {
			return name
		}
	}
	return ""
}

// applyPass starts, continues or ends a pass. step has been decided without regard to passes.
func applyPass(o Observed, v Verdict, step Step) Step {
	step.Pass = o.Pass
	switch {
	case o.State == target.Passing:
		step = continuePass(o, v, step)
	case o.Request != nil:
		step = decidePass(o, v, step)
	}
	if step.Pass.State == PassInProgress && step.Outcome != Passing {
		switch {
		case step.Outcome == SuspendedByOthers:
			step.Write, step.Pass = true, o.end(PassSuspended, msgPassSuspended)
		case step.Write:
			step.Pass = o.end(PassInterrupted, msgPassOverwritten)
		}
	}
	step.Ends = step.Pass
	if step.Write && len(step.Names) == 0 && !o.RequestPresent {
		step.Pass = Pass{}
	}
	return step
}

// continuePass decides whether a passing target is held again, is released, or keeps its pass.
func continuePass(o Observed, v Verdict, step Step) Step {
	outcome, message := o.Outcome, o.Message
	if outcome == "" {
		outcome, message = v.interrupts(o)
	}
	switch {
	case !step.Hold && outcome != "":
		step.Pass = o.end(outcome, message)
	case !step.Hold:
		step.Pass = o.end(PassOpened, msgPassOpened)
	case outcome != "":
		step.Write, step.Pass = true, o.end(outcome, message)
	default:
		step.Outcome, step.Hold, step.Write = Passing, false, o.Advanced || !slices.Equal(o.HeldBy, step.Names)
	}
	return step
}

// end returns the record of the pass after it has ended.
func (o Observed) end(outcome, message string) Pass {
	p := o.Pass
	p.State, p.Ended, p.After, p.Outcome, p.Message = PassEnded, o.Now.UTC().Truncate(time.Microsecond), o.Revision, outcome, message
	return p
}

// interrupts returns the outcome if a Gate ends a pass before Flux reports, empty if none does. It compares the holders with the record of
// the pass, because any client that may patch the target can change heldBy.
func (v Verdict) interrupts(o Observed) (outcome, message string) {
	passed := target.ParseHeldBy(o.Pass.Gates)
	for _, g := range v.Holders {
		switch {
		case g.Effect == Closed && g.Barred != "":
			return PassClosed, fmt.Sprintf(msgPassBarred, g.Name, g.Barred)
		case !slices.Contains(passed, g.Name) || g.Effect == Closed && !g.closedSince(o.Pass.Since):
			return PassClosed, fmt.Sprintf(msgPassClosed, g.Name)
		case g.Effect == Missing || g.Effect == Denied:
			return PassClosed, fmt.Sprintf(msgPassUndecided, g.Name)
		}
	}
	return "", ""
}

// pass sets the fields about the current pass of a trimmed target, or about the request for one. It returns true if there is such a pass or
// request. In that case, Barred must be set in the Gates.
func (o *Observed) pass(obj *target.Object, definition target.Definition, now time.Time) bool {
	o.Pass, o.Revision, o.Now = PassOf(obj), target.Revision(obj), now
	o.RequestPresent = o.Pass.State != "" && obj.GetAnnotations()[v1alpha1.PassRequestedAtAnnotation] == o.Pass.Value
	if o.State == target.Free && o.Pass.State == PassInProgress && len(o.HeldBy) > 0 {
		o.State = target.Passing
		o.Outcome, o.Message = o.Pass.reported(obj, now)
		is := target.ProgressOf(obj)
		o.Advanced, o.Pass.Is = is != o.Pass.Is, is
		return true
	}
	o.Request = newPassRequest(obj, o.Pass, definition, now)
	return o.Request != nil
}

// startsPass returns whether the step begins a pass.
func (r *Ruling) startsPass() bool {
	return r.Step.Outcome == Passing && r.Observed.State != target.Passing
}

// passEnds returns the deadline of a pass that is in progress before or after the step, zero if there is none or the step holds the target.
func (r *Ruling) passEnds() time.Time {
	if r.Step.Outcome != Passing && (r.Observed.State != target.Passing || r.Step.Hold) {
		return time.Time{}
	}
	return cmp.Or(r.Step.Pass, r.Observed.Pass).Until
}

// PassMoves returns whether an input of the pass of a target has changed, and whether a pass is in progress. In either case, the target
// must be reconciled, because it may have to be held.
func PassMoves(before, after *target.Object) (moves, goesOn bool) {
	was, is := before.GetAnnotations(), after.GetAnnotations()
	for _, name := range []string{v1alpha1.PassRequestedAtAnnotation, v1alpha1.PassGatesAnnotation, v1alpha1.PassAnnotation} {
		moves = moves || was[name] != is[name]
	}
	if is[v1alpha1.PassAnnotation] == "" || PassOf(after).State != PassInProgress {
		return moves, false
	}
	ready := func(obj *target.Object) string {
		if c := target.ReadyOf(obj); c != nil {
			return string(c.Status)
		}
		return ""
	}
	return moves || target.ProgressOf(before) != target.ProgressOf(after) || ready(before) != ready(after), true
}
