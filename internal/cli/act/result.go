package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// conclude waits until the controller has handled the requests, prints the results, and returns the exit code as an error.
func conclude(ctx context.Context, t *term.Terminal, c *kube.Cluster, f *requestFlags, results []result) error {
	code, asked := 0, 0
	for i := range results {
		r := &results[i]
		var vain ineffectiveError
		switch {
		case r.err != nil:
		case r.request == nil:
			continue
		case f.dryRun != "server":
			r.err = awaitRequest(ctx, t, c, r)
		default:
			t.Line("%s: the API server would accept this (dry run)", kube.FullName(r.gate))
		}
		if r.err == nil || errors.As(r.err, &vain) {
			asked++
		}
		if r.err != nil {
			fmt.Fprintf(t.ErrOut, "error: %s: %s\n", kube.FullName(r.gate), t.WithProgram(term.OneLine(r.err.Error())))
			code = term.ExitIncomplete
		}
	}
	switch {
	case code != 0 && asked == 0:
		return term.ExitCode(term.ExitError)
	case f.wait && asked > 0:
		if err := waitForTargets(ctx, t, c, f.timeout, results); err != nil || code == 0 {
			return err
		}
	}
	if code != 0 {
		return term.ExitCode(code)
	}
	return nil
}

// awaitRequest waits until the controller has handled a request, and prints the state of the Gate.
func awaitRequest(ctx context.Context, t *term.Terminal, c *kube.Cluster, r *result) error {
	err := poll(ctx, t, func() (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(r.gate), r.gate); err != nil {
			return false, kube.NewCall("get", "gates", r.gate.Namespace, r.gate.Name, "gate-viewer").Explain(err)
		}
		handled := isHandled(r.gate, r.request)
		if !handled && r.gate.Annotations[requestAnnotation(r.request.action)] != r.request.value() {
			return false, errReplaced
		}
		return handled && !isSettling(r, t.Clock.Now()), nil
	})
	if err != nil {
		return err
	}
	if why := refusalReason(r.gate, r.request); why != "" {
		return fmt.Errorf("the controller refused this: %s", strings.TrimPrefix(why, "is refused, "))
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	t.Line("%s: %s", kube.FullName(r.gate), describeGate(t, r.gate, now))
	waits := r.missingApprovals(now)
	if r.request.planned {
		t.Line("%s: planned: %s", kube.FullName(r.gate), strings.TrimSuffix(r.request.description()+", "+waits, ", "))
		return nil
	}
	if waits != "" {
		return ineffectiveError("the request is accepted, and " + waits)
	}
	if r.request.targets != nil && !r.request.withdraws {
		return r.limitedVain()
	}
	if !r.request.withdraws && describe.State(r.gate) != string(r.request.wanted()) {
		return r.ineffective()
	}
	return nil
}

// missingApprovals returns how many other users must approve a request, and how, empty if no approval is missing.
func (r *result) missingApprovals(now time.Time) string {
	for _, a := range describe.LackingApproval(r.gate, now) {
		if a.Action == r.request.action && a.RequestedAt.Time.Equal(r.request.at) {
			return ledger.ApprovalMessage(r.gate.Namespace, r.gate.Name, ledger.Lacks(r.gate, &a))
		}
	}
	return ""
}

// ineffective returns an error with the reason why a Gate does not have the requested state, and the next step.
func (r *result) ineffective() error {
	text := fmt.Sprintf("the request is accepted, but it does not %s the gate: %s decides", r.request.action, describe.Reason(r.gate))
	opened := meta.FindStatusCondition(r.gate.Status.Conditions, v1alpha1.OpenedCondition)
	where := fmt.Sprintf("%s -n %s", r.gate.Name, r.gate.Namespace)
	switch {
	case opened == nil:
	case opened.Reason == v1alpha1.ClosePeriodReason:
		text += fmt.Sprintf(", which has override: Deny; to open it, change that period: kubectl edit gate %s; your request stays in force, to withdraw it: kubectl gate reset %s", where, where)
	case opened.Reason == v1alpha1.DependencyNotReadyReason:
		text += "; it opens when all its dependencies are ready"
	default:
		text += fmt.Sprintf("; for details: kubectl gate status %s", where)
	}
	return ineffectiveError(text)
}

// wanted returns the requested state.
func (r *request) wanted() v1alpha1.State {
	if r.action == v1alpha1.RequestClose {
		return v1alpha1.StateClosed
	}
	return v1alpha1.StateOpened
}

// isHandled returns whether the controller has handled a request.
func isHandled(g *v1alpha1.Gate, r *request) bool {
	return slices.ContainsFunc(g.Status.Memory.HandledRequests, func(m v1alpha1.HandledRequest) bool {
		return m.Action == r.action && (m.LastHandled == r.value() || slices.Contains(m.Earlier, r.value()))
	}) || slices.ContainsFunc(g.Status.History, func(e v1alpha1.HistoryEntry) bool {
		return e.Action == r.action && e.RequestedAt != nil && e.RequestedAt.Time.Equal(r.at)
	})
}

// isSettling returns whether a request takes effect only at the next whole second. A Gate does not open earlier, and a withdrawn request
// stays in force until then.
func isSettling(r *result, now time.Time) bool {
	g := r.gate
	if r.request.withdraws {
		return r.request.targets == nil && ledger.DecidedBy(g, now) != nil && now.Sub(r.request.at) < 2*time.Second
	}
	if r.request.targets != nil {
		o := overlayOf(g, r.request)
		return o != nil && o.State != r.request.wanted() && o.Until.Sub(now) <= time.Second
	}
	next := g.Status.NextTransition
	return r.request.action == v1alpha1.RequestOpen && !r.request.planned && describe.State(g) == string(v1alpha1.StateClosed) &&
		next != nil && next.State == v1alpha1.StateOpened && next.At.Sub(now) <= time.Second
}

// describeGate returns the state of a Gate, the reason, and the end of the state in one line. The state may last longer than the request.
func describeGate(t *term.Terminal, g *v1alpha1.Gate, now time.Time) string {
	text := fmt.Sprintf("%s, %s", t.PaintState(describe.State(g)), describe.Reason(g))
	next := g.Status.NextTransition
	end, requested := requestEnd(g, now)
	switch {
	case requested && end.IsZero() && next == nil:
		text += ", until a user " + map[string]string{string(v1alpha1.StateOpened): "closes", string(v1alpha1.StateClosed): "opens"}[describe.State(g)] + " it"
	case requested && !end.IsZero() && (next == nil || next.At.Sub(end) > time.Second):
		text += fmt.Sprintf(" until %s; it then stays %s", term.FormatTime(end.In(now.Location())), describe.State(g))
	}
	if next != nil {
		text += ", until " + term.FormatTime(next.At.In(now.Location())) + " (" + term.FormatDistance(next.At.Sub(now)) + ")"
	}
	return text
}

// requestEnd returns the end of the requests that determine the state of a Gate, zero if one of them has no end. It returns false if no
// request determines the state.
func requestEnd(g *v1alpha1.Gate, now time.Time) (end time.Time, requested bool) {
	if ledger.DecidedBy(g, now) == nil {
		return end, false
	}
	inForce, _ := ledger.RequestsAt(g, now)
	for _, r := range inForce {
		if r.Targets != nil {
			continue
		}
		if r.Until == nil {
			return time.Time{}, true
		}
		if r.Until.After(end) {
			end = r.Until.Time
		}
	}
	return end, true
}

// refusalReason returns why the controller has refused a request, empty if it has not refused it.
func refusalReason(g *v1alpha1.Gate, r *request) string {
	for _, e := range g.Status.History {
		unreadable := e.RequestedAt == nil && e.Refused != "" && !e.At.Time.Before(r.at.Truncate(time.Second))
		if e.Action == r.action && e.State == "" && (unreadable || e.RequestedAt != nil && e.RequestedAt.Time.Equal(r.at)) {
			return e.Refused
		}
	}
	return ""
}
