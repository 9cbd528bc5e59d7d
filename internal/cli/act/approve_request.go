package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// gateApproverRole is the role with the permissions to approve a request.
const gateApproverRole = "gate-approver"

// approveRequest prints the open request of a Gate that waits for approval, approves it, and prints the state of the Gate.
func approveRequest(ctx context.Context, t *term.Terminal, c *kube.Cluster, key client.ObjectKey, f *approveFlags, now time.Time) error {
	if !f.out.IsTable() {
		return errors.New("--output is for exception/NAME and source/NAME")
	}
	c.Role = gateApproverRole
	g, err := c.GateAt(ctx, key)
	if err != nil {
		return err
	}
	r, err := requestToApprove(g, f.request, now)
	if err != nil {
		return err
	}
	t.Line("%s: open request %s", kube.FullName(g), requestID(r))
	for _, line := range describeRequest(g, r, now) {
		t.Line("  %-10s %s", line[0], line[1])
	}
	me := kube.CurrentUser(ctx, c)
	switch {
	case r.RequestedBy == me:
		return fmt.Errorf("you, %s, requested it: another user must approve it", me)
	case me != "" && slices.ContainsFunc(r.Approvals, func(a v1alpha1.RequestApproval) bool { return a.ApprovedBy == me }):
		return fmt.Errorf("you, %s, have approved it already", me)
	}
	opts := patchOptions(approvalOwner, f.dryRun)
	if err := c.Patch(ctx, g.DeepCopy(), client.RawPatch(types.MergePatchType, requestApproval(g, r, now)), opts...); err != nil {
		return refusedRequestApproval(g, err)
	}
	if f.dryRun == "server" {
		t.Line("the API server would accept this (dry run); to approve it: %s approve gate/%s -n %s --request %s", t.Program, g.Name, g.Namespace, requestID(r))
		return nil
	}
	if err := awaitRequestApproval(ctx, t, c, g, r, me); err != nil {
		return t.Incomplete(err)
	}
	return nil
}

// requestID returns the ID of a request, which is unique within its Gate.
func requestID(r *v1alpha1.AcceptedRequest) string {
	return r.AcceptedAt.UTC().Format(metav1.RFC3339Micro)
}

// requestToApprove returns the request with the given ID, or the only request that waits for approval if no ID is given.
func requestToApprove(g *v1alpha1.Gate, id string, now time.Time) (*v1alpha1.AcceptedRequest, error) {
	all := describe.LackingApproval(g, now)
	var known []string
	for i := range all {
		if requestID(&all[i]) == id {
			return &all[i], nil
		}
		known = append(known, fmt.Sprintf("%s of %s", requestID(&all[i]), all[i].RequestedBy))
	}
	switch {
	case len(all) == 0 && g.RequiredApprovals() == 0:
		return nil, errors.New("open requests of the gate take effect without approval: spec.approvals.openRequests requires none")
	case len(all) == 0:
		return nil, fmt.Errorf("no open request waits for approval; for earlier requests: kubectl gate history %s -n %s", g.Name, g.Namespace)
	case id != "":
		return nil, fmt.Errorf("request %s no longer waits for approval; waiting: %s", id, strings.Join(known, " and "))
	case len(all) > 1:
		return nil, fmt.Errorf("%d requests wait: choose one with --request: %s", len(all), strings.Join(known, ", "))
	}
	return &all[0], nil
}

// describeRequest returns the lines that describe a request.
func describeRequest(g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest, now time.Time) [][2]string {
	lasts := "until a user closes the gate"
	if window := shorter(r.Window, g.Spec.Window); window != nil {
		lasts = term.FormatDuration(window.Duration) + " from the last approval"
		if r.State == v1alpha1.RequestPlanned {
			lasts = term.FormatDuration(window.Duration) + " from then, or from the last approval if that is later"
		}
	}
	lines := [][2]string{
		{"gate", fmt.Sprintf("is %s, %s", term.Adjective(describe.State(g)), describe.Reason(g))},
		{"by", r.RequestedBy}, {"for", term.FormatUntil(r.RequestedAt.Time, now)}, {"lasts", lasts}, {"reason", term.OrDash(r.Message)},
	}
	if r.State == v1alpha1.RequestWaiting && r.Until != nil {
		lines = append(lines, [2]string{"waits", "until " + term.FormatUntil(r.Until.Time, now)})
	}
	for _, a := range r.Approvals {
		lines = append(lines, [2]string{"approved", "by " + a.ApprovedBy})
	}
	return lines
}

// shorter returns the shorter of two windows. Nil means unlimited.
func shorter(a, b *v1alpha1.Duration) *v1alpha1.Duration {
	if a == nil || b != nil && b.Duration < a.Duration {
		return b
	}
	return a
}

// requestApproval returns the patch that approves the version of a request that was read.
func requestApproval(g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest, now time.Time) []byte {
	return annotationPatch(map[string]string{v1alpha1.ApproveRequestedAtAnnotation: ledger.FormatRequestApproval(g, r, now)}, "")
}

// refusedRequestApproval returns the error to print if the API server has rejected the approval of a request.
func refusedRequestApproval(g *v1alpha1.Gate, err error) error {
	a := kube.NewCall("patch", "gates", g.Namespace, g.Name, gateApproverRole)
	if !apierrors.IsForbidden(err) || !kube.IsPolicyDenial(err) {
		return a.Explain(err)
	}
	text := kube.DenialMessage(err)
	switch {
	case strings.Contains(text, "needs the verb approve"):
		return errors.New(a.Denied("approve"))
	case strings.Contains(text, "no request that waits"):
		return errors.New("it no longer waits for approval; run the command again to see which requests do")
	}
	return errors.New("refused: " + text)
}

// awaitRequestApproval waits until the controller has counted the user's approval, and prints the state of the Gate.
func awaitRequestApproval(ctx context.Context, t *term.Terminal, c *kube.Cluster, g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest, me string) error {
	var found *v1alpha1.AcceptedRequest
	if err := poll(ctx, t, func() (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(g), g); err != nil {
			return false, kube.NewCall("get", "gates", g.Namespace, g.Name, gateApproverRole).Explain(err)
		}
		i := slices.IndexFunc(g.Status.Requests, func(other v1alpha1.AcceptedRequest) bool { return requestID(&other) == requestID(r) })
		if i < 0 {
			return false, errors.New("approved, but the request is no longer in force: the gate was closed, or the request has ended")
		}
		found = &g.Status.Requests[i]
		if message := describe.Condition(g.Status.Conditions, v1alpha1.OpenedCondition).Message; strings.Contains(message, "do not count") {
			return false, errors.New("the controller does not count this, because the policy gate-approval is missing or cannot be read")
		}
		// The Gate opens at the next whole second.
		soon := found.State == v1alpha1.RequestWaiting || found.State == v1alpha1.RequestPlanned || describe.State(g) == string(v1alpha1.StateOpened) || t.Clock.Now().Sub(found.RequestedAt.Time) > 2*time.Second
		return soon && slices.ContainsFunc(found.Approvals, func(a v1alpha1.RequestApproval) bool { return a.ApprovedBy == me }), nil
	}); err != nil {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	switch lacks := ledger.Lacks(g, found); {
	case lacks > 0:
		t.Line("%s: approved by %s, waits for %s", kube.FullName(g), me, format.Count(lacks, "more approval"))
	case found.State == v1alpha1.RequestPlanned:
		t.Line("%s: approved by %s, opens at %s", kube.FullName(g), me, term.FormatTime(found.RequestedAt.In(now.Location())))
	default:
		t.Line("%s: approved by %s: %s", kube.FullName(g), me, describeGate(t, g, now))
	}
	return nil
}

// GatesToApprove returns the names of the Gates with an open request that waits for approval.
func GatesToApprove(ctx context.Context, c *kube.Cluster, now time.Time) (names []string, err error) {
	err = c.EachGate(ctx, kube.Scope{}, func(g *v1alpha1.Gate) {
		if len(describe.LackingApproval(g, now)) > 0 {
			names = append(names, g.Name)
		}
	})
	return names, err
}
