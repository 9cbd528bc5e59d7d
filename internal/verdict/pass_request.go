package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

// PassRequest is an unhandled request for a pass.
type PassRequest struct {
	// Pass is the record if the request is granted.
	Pass Pass
	// At is the time in the request.
	At time.Time
	// Gates is the list of Gates that were checked at admission.
	Gates string
	// Refused is the reason why the target cannot have a pass, regardless of its Gates.
	Refused string
	// Unrecordable is true if the refusal must not be recorded, for example because the request is not later than the recorded one.
	Unrecordable bool
	// Expired is true if the request is too old to report its refusal.
	Expired bool
}

// maxReportAge is the maximum age of a request whose refusal is reported.
const maxReportAge = 10 * time.Minute

// newPassRequest returns the unhandled request for a pass on a trimmed target, nil if there is none. noted is the recorded pass.
func newPassRequest(obj *target.Object, noted Pass, definition target.Definition, now time.Time) *PassRequest {
	request, ok := gate.ReadPass(obj.GetAnnotations(), now)
	if !ok || request.Value == noted.Value {
		return nil
	}
	since := now.UTC().Truncate(time.Microsecond)
	ask := &PassRequest{At: request.At, Gates: request.Gates, Expired: request.Err == nil && request.At.Before(now.Add(-maxReportAge)), Pass: Pass{
		State: PassInProgress, Value: request.Value, By: request.By, Reason: request.Reason,
		Since: since, Until: since.Add(request.Lasts), Before: target.Revision(obj), Was: target.ProgressOf(obj), Is: target.ProgressOf(obj),
	}}
	notedAt, _, err := gate.ParsePass(noted.Value)
	wasAhead := noted.State == PassRefused && gate.IsAhead(notedAt, noted.Ended)
	others := target.OtherOwners(&obj.Unstructured, Us)
	switch {
	case request.Err != nil:
		// Record a time in the future, so that the request is not granted when that time comes.
		ask.Refused, ask.Unrecordable = request.Err.Error(), !gate.IsAhead(request.At, now)
	case request.At.Before(now.Add(-gate.MaxPass)):
		ask.Refused, ask.Unrecordable = fmt.Sprintf(msgPassTooOld, gate.MaxPass), true
	case err == nil && !request.At.After(notedAt) && !wasAhead:
		ask.Refused, ask.Unrecordable = msgPassNotLater, true
	case !CanPass(obj):
		ask.Refused, ask.Unrecordable = fmt.Sprintf(msgPassKind, obj.GetKind()), true
	case !definition.Handles:
		ask.Refused = fmt.Sprintf(msgPassStatus, obj.GetKind())
	case len(others) > 0:
		ask.Refused = fmt.Sprintf(msgPassOtherOwner, others[0].Manager)
	}
	return ask
}

// decidePass grants a pass, refuses it, or defers the decision.
func decidePass(o Observed, v Verdict, step Step) Step {
	refusal, old, waits := o.Request.Refused, o.Request.Expired, false
	held := o.State == target.Held && step.Outcome == Held
	switch {
	case refusal != "":
	case o.State == target.SuspendedByOthers:
		refusal = msgPassNoEffect
	case !held && !o.State.IsHeld():
		refusal = msgPassNotHeld
	default:
		refusal, waits = v.bars(o)
		waits = waits || v.Waits // a Gate that has not decided yet may close
		old = old && refusal == closedLater
	}
	switch {
	case waits, step.Write, refusal != "" && old: // decided after another event, or too old to report
	case refusal == "":
		step.Outcome, step.Hold, step.Write, step.Pass = Passing, false, true, o.Request.Pass
		step.Pass.Gates = target.FormatHeldBy(step.Names)
	case !held || o.Request.Unrecordable || len(step.Names) == 0:
		step.Refused = refusal
	default:
		step.Write, step.Pass = true, o.Request.Pass
		step.Pass.State, step.Pass.Since, step.Pass.Until = PassRefused, time.Time{}, time.Time{}
		step.Pass.Before, step.Pass.Was, step.Pass.Is = "", target.Progress{}, target.Progress{}
		step.Pass.Ended, step.Pass.Message = o.Now.UTC().Truncate(time.Microsecond), refusal
	}
	return step
}

// closedLater is the refusal of a request that is older than the hold.
const closedLater = "a gate has closed since the request, so request it again"

// bars returns why a Gate that holds the target permits no pass, empty if all permit one. waits is true if a Gate must decide first.
func (v Verdict) bars(o Observed) (refusal string, waits bool) {
	if len(v.Holders) == 0 {
		return msgBarsUnknown, false
	}
	for _, g := range v.Holders {
		if refusal, waits = g.bars(v1alpha1.PassGatesAnnotation, o.Request.Gates, o.Request.At, o.Now); waits || refusal != "" {
			return refusal, waits
		}
	}
	return "", false
}

// BarsRollback returns why one of the Gates of a GatedSource refuses a rollback that was requested at a time, empty if none does. A
// rollback has the same requirements as a pass. list contains the Gates that were checked at admission. waits is true if a Gate must
// decide first.
func BarsRollback(gates []Gate, list string, at, now time.Time) (refusal string, waits bool) {
	for _, g := range barred(gates, now) {
		if g.LetsActivate() {
			continue
		}
		if refusal, waits = g.bars(v1alpha1.RollbackGatesAnnotation, list, at, now); waits || refusal != "" {
			return refusal, waits
		}
	}
	return "", false
}

// bars returns why a Gate that holds a target permits no pass or rollback that was requested at a time, empty if it does. list is the value
// of annotation in the request. waits is true if the Gate must decide first.
func (g Gate) bars(annotation, list string, at, now time.Time) (refusal string, waits bool) {
	is := func(text string) string { return fmt.Sprintf("gate '%s' %s", g.Name, text) }
	switch {
	case g.Effect == Undecided, g.Effect == Closed && !g.isPersisted():
		return "", true
	case g.Effect == Missing:
		return is(msgBarsMissing), false
	case g.Effect == Denied:
		return is(msgBarsDenied), false
	case g.Effect == OtherShard:
		return is(msgBarsOtherShard), false
	case g.Effect != Closed:
		return is(msgBarsSuspended), false
	case g.Barred != "":
		return is(msgBarsBarred + g.Barred), false
	case list == "":
		return "the annotation " + annotation + " is missing, which lists the gates that hold it", false
	case !gate.PassCovers(list, g.Name):
		return is("holds it as well, and is not in " + annotation + " of the request, so request it again"), false
	}
	switch last := g.Object.Status.LastTransition; {
	case last == nil, at.Before(last.At.Time):
		return closedLater, false
	case gate.MayPrecede(at, last, now):
		return is(msgBarsJustClosed), false
	}
	return "", false
}

// barred returns copies of the Gates, with Barred set for those that are closed.
func barred(gates []Gate, now time.Time) []Gate {
	gates = slices.Clone(gates)
	for i := range gates {
		if g := &gates[i]; g.Effect == Closed && g.Object != nil {
			g.Barred = gate.PassBarred(g.Object, now)
		}
	}
	return gates
}
