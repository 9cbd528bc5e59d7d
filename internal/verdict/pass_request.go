package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

// PassRequest is a request for a pass that was not handled yet.
type PassRequest struct {
	// Pass is what is noted if it is granted.
	Pass Pass
	// At is the time that the request says.
	At time.Time
	// Gates is the list of the Gates that were checked at admission.
	Gates string
	// Refused says why the target cannot have a pass even if its Gates allow it.
	Refused string
	// Unrecordable means that a refusal cannot be noted: the value is no later than the one
	// that is noted.
	Unrecordable bool
	// Expired means that nobody waits for an answer any more.
	Expired bool
}

// maxReportAge is how long a person waits to be told that nothing passes.
const maxReportAge = 10 * time.Minute

// newPassRequest returns the request for a pass on a trimmed target, nil if there is none that is
// new.
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
		// A time that is still to come is recorded, so that the request is not granted when it has come.
		ask.Refused, ask.Unrecordable = request.Err.Error(), !gate.IsAhead(request.At, now)
	case request.At.Before(now.Add(-gate.MaxPass)):
		ask.Refused, ask.Unrecordable = fmt.Sprintf("it was requested more than %s ago, request it again", gate.MaxPass), true
	case err == nil && !request.At.After(notedAt) && !wasAhead:
		ask.Refused, ask.Unrecordable = "a later request was handled before, ask again", true
	case !CanPass(obj):
		ask.Refused, ask.Unrecordable = fmt.Sprintf("no policy checks the requester of a pass of a %s", obj.GetKind()), true
	case !definition.Handles:
		ask.Refused = fmt.Sprintf("the status of a %s does not say which request for a reconciliation was handled last", obj.GetKind())
	case len(others) > 0:
		ask.Refused = fmt.Sprintf("%s has suspended it as well, so nothing would pass", others[0].Manager)
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
		refusal = "a user has suspended it, so nothing would pass"
	case !held && !o.State.IsHeld():
		refusal = "no gate holds it, so there is nothing to pass"
	default:
		refusal, waits = v.bars(o)
		waits = waits || v.Waits // a Gate that has not decided may be about to close
		old = old && refusal == closedLater
	}
	switch {
	case waits, step.Write, refusal != "" && old: // an event follows, and triggers the next decision
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

// closedLater refuses a request from before the target was held.
const closedLater = "a gate has closed since the request, so request it again"

// bars returns why one of the Gates that hold a target refuses it a pass, and whether one of
// them has yet to decide.
func (v Verdict) bars(o Observed) (refusal string, waits bool) {
	if len(v.Holders) == 0 {
		return "the gates that hold it are not known", false
	}
	for _, g := range v.Holders {
		is := func(text string) string { return fmt.Sprintf("gate '%s' %s", g.Name, text) }
		switch {
		case g.Effect == Undecided, g.Effect == Closed && !g.isPersisted():
			return "", true
		case g.Effect == Missing:
			return is("does not exist"), false
		case g.Effect == Denied:
			return is("must not be named there"), false
		case g.Effect == OtherShard:
			return is("belongs to another controller"), false
		case g.Effect != Closed:
			return is("is suspended or holds nothing more, so it is not known to be closed"), false
		case g.Barred != "":
			return is("lets nothing pass: " + g.Barred), false
		case o.Request.Gates == "":
			return "the annotation " + v1alpha1.PassGatesAnnotation + " is missing, which lists the gates that hold it", false
		case !gate.PassCovers(o.Request.Gates, g.Name):
			return is("holds it as well, and is not in " + v1alpha1.PassGatesAnnotation + " of the request, so request it again"), false
		}
		switch last := g.Object.Status.LastTransition; {
		case last == nil, o.Request.At.Before(last.At.Time):
			return closedLater, false
		case gate.MayPrecede(o.Request.At, last, o.Now):
			return is("has closed less than a minute ago, and the time of the request is ahead, so request it again"), false
		}
	}
	return "", false
}

// barred returns Gates with the reason why each refuses a pass, if it does.
func barred(gates []Gate, now time.Time) []Gate {
	gates = slices.Clone(gates)
	for i := range gates {
		if g := &gates[i]; g.Effect == Closed && g.Object != nil {
			g.Barred = gate.PassBarred(g.Object, now)
		}
	}
	return gates
}
