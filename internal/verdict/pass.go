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

// PassState is how far a pass is.
type PassState string

// The states of a pass.
const (
	PassInProgress PassState = "Passing"
	PassEnded      PassState = "Ended"
	PassRefused    PassState = "Refused"
)

// Pass is one reconciliation of a target that the Gates which hold it let through. It is
// noted on the target, so that no crash makes it last longer or happen twice. The zero
// value is none.
type Pass struct {
	State PassState
	// Gates are those that it passes, as FormatHeldBy has them. Any other Gate that holds
	// the target ends it.
	Gates string
	// Value of the annotation that requested it, the requester, and the reason.
	Value, By, Reason string
	// Since is when it began. Flux is asked for a reconciliation with this time.
	Since time.Time
	// Until is when it ends at the latest, Ended when it has ended.
	Until, Ended time.Time
	// Was is what Flux had reported before it, and Is differs from that in what Flux has
	// reported since. The second change of any part ends the pass.
	Was, Is target.Progress
	// Before is the revision of the target before it, After the one after it.
	Before, After string
	// Outcome is how it ended. Message says that in a sentence, or why it was refused.
	Outcome, Message string
}

// How a pass ends.
const (
	PassSucceeded   = "Succeeded"
	PassFailed      = "Failed"
	PassTimedOut    = "TimedOut"
	PassClosed      = "Closed"
	PassOpened      = "Opened"
	PassSuspended   = "Suspended"
	PassInterrupted = "Interrupted"
)

// CanPass returns whether a target can have a pass. The policies guard the note on no others.
func CanPass(obj *target.Object) bool {
	_, isAdded := target.Added(obj.GroupVersionKind().GroupKind())
	return !isAdded && target.Suspends(target.Of(&obj.Unstructured))
}

// PassOf returns what is noted on a trimmed target of the last pass. A record that only another manager owns
// still says which request was handled, and nothing else: nothing passes by it.
func PassOf(obj *target.Object) Pass {
	if !CanPass(obj) {
		return Pass{}
	}
	record := obj.GetAnnotations()[v1alpha1.PassAnnotation]
	p, ok := ParseRecord(record)
	if !ok && record != "" { // it may say that the present request was handled
		return Pass{State: PassEnded, Value: obj.GetAnnotations()[v1alpha1.PassRequestedAtAnnotation]}
	}
	if Us.IsPassOwnedByOthers(&obj.Unstructured) {
		return p.brief()
	}
	return p
}

// brief returns a record that says only which request was handled.
func (p Pass) brief() Pass {
	switch p.State {
	case PassInProgress, PassEnded:
		return Pass{State: PassEnded, Value: p.Value}
	case PassRefused:
		return Pass{State: PassRefused, Value: p.Value, Ended: p.Ended}
	}
	return Pass{}
}

// annotations returns the annotations that note a pass. While it goes on, one of them asks Flux
// for a reconciliation.
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

// token is what Flux is asked with.
func (p Pass) token() string { return p.Since.UTC().Format(time.RFC3339Nano) }

// RequestedAt is the time that the request says.
func (p Pass) RequestedAt() *metav1.MicroTime {
	at, _, err := gate.ParsePass(p.Value)
	if err != nil {
		return nil
	}
	return &metav1.MicroTime{Time: at.Truncate(time.Microsecond)}
}

// Last returns when something last became of a pass.
func (p Pass) Last() time.Time { return cmp.Or(p.Ended, p.Since) }

// IsNew returns whether a note says something that another one did not say.
func (p Pass) IsNew(before Pass) bool {
	return p.State != "" && (p.State != before.State || p.Value != before.Value)
}

// reported returns how a pass has ended according to the target and the clock, nothing
// while it lasts. Flux writes the conditions before the request that it has handled. A
// request for another reconciliation counts as ours if Flux has handled it: but anyone who
// may patch the target can replace it again and again, so the second report ends the pass.
func (p Pass) reported(obj *target.Object, now time.Time) (outcome, message string) {
	if p.Since.After(now.Add(maxReportAge)) || p.Until.Sub(p.Since) > gate.MaxPass {
		return PassInterrupted, "what is noted of it is not what the controller notes"
	}
	handled, second := target.Handled(obj), p.second(target.ProgressOf(obj))
	request := obj.GetAnnotations()[fluxmeta.ReconcileRequestAnnotation]
	requested := handled == request && handled != p.Was[0]
	if ready := target.ReadyOf(obj); ready != nil && (handled == p.token() || requested || second != "") {
		switch ready.Status {
		case metav1.ConditionTrue:
			return PassSucceeded, "Ready: " + ready.Reason
		case metav1.ConditionFalse:
			return PassFailed, "not Ready: " + ready.Reason
		case metav1.ConditionUnknown:
		}
	}
	switch {
	case second != "":
		return PassInterrupted, "Flux has reported a second " + second
	case handled != p.token() && (request == "" || request == p.Was[0]):
		return PassInterrupted, "the request for its reconciliation was removed" // so no report would end it
	case !now.Before(p.Until):
		return PassTimedOut, "Flux had not reported the end by " + p.Until.UTC().Format(time.RFC3339)
	}
	return "", ""
}

// second returns the part of the progress that has changed for the second time since the
// pass began, empty if none has.
func (p Pass) second(now target.Progress) string {
	for i, name := range target.ProgressNames {
		if now[i] != p.Is[i] && p.Is[i] != p.Was[i] {
			return name
		}
	}
	return ""
}

// applyPass lets a pass begin, go on or end in a step that was decided without it.
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
			step.Write, step.Pass = true, o.end(PassSuspended, "a user has suspended it")
		case step.Write:
			step.Pass = o.end(PassInterrupted, "another client has overwritten the record of the controller")
		}
	}
	step.Ends = step.Pass
	if step.Write && len(step.Names) == 0 && !o.RequestPresent {
		step.Pass = Pass{}
	}
	return step
}

// continuePass decides about a target that passes: it is held again, or released, or goes on.
func continuePass(o Observed, v Verdict, step Step) Step {
	outcome, message := o.Outcome, o.Message
	if outcome == "" {
		outcome, message = v.interrupts(o)
	}
	switch {
	case !step.Hold && outcome != "":
		step.Pass = o.end(outcome, message)
	case !step.Hold:
		step.Pass = o.end(PassOpened, "no gate holds it any more")
	case outcome != "":
		step.Write, step.Pass = true, o.end(outcome, message)
	default:
		step.Outcome, step.Hold, step.Write = Passing, false, o.Advanced || !slices.Equal(o.HeldBy, step.Names)
	}
	return step
}

// end returns the note of a pass that has ended.
func (o Observed) end(outcome, message string) Pass {
	p := o.Pass
	p.State, p.Ended, p.After, p.Outcome, p.Message = PassEnded, o.Now.UTC().Truncate(time.Microsecond), o.Revision, outcome, message
	return p
}

// interrupts returns which Gate ends a pass before Flux does, nothing if none does. It
// trusts the record of the pass: anyone who may patch the target writes heldBy.
func (v Verdict) interrupts(o Observed) (outcome, message string) {
	passed := target.ParseHeldBy(o.Pass.Gates)
	for _, g := range v.Holders {
		switch {
		case g.Effect == Closed && g.Barred != "":
			return PassClosed, fmt.Sprintf("gate '%s' lets nothing pass: %s", g.Name, g.Barred)
		case !slices.Contains(passed, g.Name) || g.Effect == Closed && !g.closedSince(o.Pass.Since):
			return PassClosed, fmt.Sprintf("gate '%s' has closed meanwhile", g.Name)
		case g.Effect == Missing || g.Effect == Denied:
			return PassClosed, fmt.Sprintf("gate '%s' holds it for want of a decision", g.Name)
		}
	}
	return "", ""
}

// pass notes what a trimmed target shows of passes, and returns whether Gates have a say
// in that.
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

// startsPass returns whether a pass begins with the step.
func (r *Ruling) startsPass() bool {
	return r.Step.Outcome == Passing && r.Observed.State != target.Passing
}

// passEnds returns when a pass that continues after the step ends at the latest, zero if none does.
func (r *Ruling) passEnds() time.Time {
	if r.Step.Outcome != Passing && (r.Observed.State != target.Passing || r.Step.Hold) {
		return time.Time{}
	}
	return cmp.Or(r.Step.Pass, r.Observed.Pass).Until
}

// PassMoves returns whether a target shows something new of a pass, and whether one goes
// on, so that the target may have to be held.
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
