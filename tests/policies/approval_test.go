package policies

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

const (
	approver        = "gate-approver"
	emergencyOpener = "gate-emergency-opener"
	emergency       = v1alpha1.OpenEmergencyAnnotation
)

// fourEyes creates a closed Gate whose open requests need approvals.
func (w *world) fourEyes(required int32) *v1alpha1.Gate {
	w.Helper()
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Approvals: &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: required}}})
	w.decided(g, metav1.ConditionFalse)
	return g
}

// requestsOpen makes a person request to open, and returns the request, which waits for approval.
func (w *world) requestsOpen(p *person, g *v1alpha1.Gate) v1alpha1.AcceptedRequest {
	w.Helper()
	w.allowed(p, "annotate", "--overwrite", "gate", g.Name, openAt+"="+nowNano())
	w.decided(g, metav1.ConditionFalse)
	return w.waits(g, p.Name)
}

// waits returns the request of a user that is waiting for approval.
func (w *world) waits(g *v1alpha1.Gate, by string) v1alpha1.AcceptedRequest {
	w.Helper()
	for _, r := range g.Status.Requests {
		if r.State == v1alpha1.RequestWaiting && r.RequestedBy == by {
			return r
		}
	}
	w.Fatalf("no request of %s is waiting: %+v, history %+v", by, g.Status.Requests, g.Status.History)
	return v1alpha1.AcceptedRequest{}
}

// approving returns the arguments that approve a request.
func approving(g *v1alpha1.Gate, r v1alpha1.AcceptedRequest, more ...string) []string {
	return append([]string{"annotate", "--overwrite", "gate", g.Name, approveAt + "=" + ledger.FormatRequestApproval(g, &r, time.Now())}, more...)
}

func TestRequestOpensOnceApprovedByOthers(t *testing.T) {
	w := newWorld(t)
	g := w.fourEyes(2)
	olga, alice := w.as("olga", opener, approver), w.as("alice", approver)
	robot := w.as("system:serviceaccount:ops:robot", approver)
	r := w.requestsOpen(olga, g)
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	if want := "an open request of olga at " + r.RequestedAt.UTC().Format(time.RFC3339) + " waits for 2 more approvals: approve it with kubectl gate approve gate/production -n " + w.Namespace; !strings.Contains(opened.Message, want) {
		t.Errorf("the message is %q, want %q", opened.Message, want)
	}
	w.refused(olga, "user olga requested to open gate "+w.Namespace+"/production: another user must approve it", approving(g, r)...)
	for range 2 { // one approval by the same person, even if repeated
		w.allowed(alice, approving(g, r)...)
		w.decided(g, metav1.ConditionFalse)
	}
	w.allowed(alice, "annotate", "gate", "production", approveAt+"-") // as Flux removes it
	w.allowed(robot, approving(g, r)...)
	g = w.Opened("production", metav1.ConditionTrue)
	if last := g.Status.History[0]; last.State != v1alpha1.StateOpened || last.RequestedBy != "olga" || last.ApprovedBy != "alice, system:serviceaccount:ops:robot" {
		t.Errorf("the history has %+v", last)
	}
}

// Two accounts of one person count as two users, as in all of Kubernetes and as docs/guides/approval-by-hand.md explains.
func TestApprovalNeedsVerbAndWaitingSubject(t *testing.T) {
	w := newWorld(t)
	g := w.fourEyes(1)
	olga, ole := w.as("olga", opener, approver), w.as("ole", opener)
	alice, edith := w.as("alice", approver), w.as("edith", editor, viewer)
	first := w.requestsOpen(olga, g)
	second := w.requestsOpen(olga, g) // replaces it
	w.refused(ole, "user ole may not approve a request for gate "+w.Namespace+"/production: it needs the verb approve", approving(g, second)...)
	w.refused(alice, "user alice approves no request that waits for gate", approving(g, first)...)
	other := g.DeepCopy()
	other.UID = "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"
	w.refused(alice, "approves no request that waits", approving(other, second)...)
	value := ledger.FormatRequestApproval(g, &second, time.Now())
	_, what, _ := strings.Cut(value, ",")
	for _, forged := range []string{"", what, "x," + what, value + " ", "now\n" + value, strings.Replace(value, "Z,", "Z, ", 1)} {
		w.refused(alice, "user alice approves no request that waits", "annotate", "--overwrite", "gate", "production", approveAt+"="+forged)
	}
	// By a manifest, by a patch of the spec, and in the name of another user.
	for _, command := range []string{"apply", "apply --server-side --force-conflicts", "apply --server-side --force-conflicts --field-manager=kustomize-controller"} {
		args := append(strings.Fields(command), "-f", gateFile("production", map[string]string{approveAt: value}))
		w.refused(w.clusterAdmin(), "may not approve a request for gate "+w.Namespace+"/production or open it in an emergency by a manifest", args...)
	}
	w.refused(alice, "denied request: user alice may not ", "patch", "gate", "production", "--type=merge", "-p", `{"metadata":{"annotations":{"`+approveAt+`":"`+value+`"}},"spec":{"window":"1h"}}`)
	w.refused(w.clusterAdmin(), "denied request: user clara ", "patch", "gate", "production", "--type=merge", "-p", `{"metadata":{"annotations":{"`+approveAt+`":"`+value+`"}},"spec":{"window":"1h"}}`)
	for _, p := range []*person{olga, edith} {
		w.allowed(p, "annotate", "--overwrite", "gate", "production", approveBy+"="+what+" alice")
		w.stamped(g, approveBy, "")
	}
	w.decided(g, metav1.ConditionFalse)
	w.allowed(alice, approving(g, second, approveBy+"="+what+" bob")...)
	w.stamped(g, approveBy, what+" alice")
	w.Opened("production", metav1.ConditionTrue)
}

func TestClosePrecedesApproval(t *testing.T) {
	w := newWorld(t)
	g := w.fourEyes(1)
	olga, alice, carl := w.as("olga", opener), w.as("alice", approver), w.as("carl", opener)
	r := w.requestsOpen(olga, g)
	w.allowed(carl, "annotate", "gate", "production", closeAt+"="+nowNano()+"/1s")
	w.decided(g, metav1.ConditionFalse)
	w.refused(alice, "approves no request that waits", approving(g, r)...)
	// An approval that arrived while the controller was down does not count either.
	r = w.requestsOpen(olga, g)
	start := w.stopController()
	w.allowed(alice, approving(g, r)...)
	w.allowed(carl, "annotate", "--overwrite", "gate", "production", closeAt+"="+nowNano())
	start()
	w.decided(g, metav1.ConditionFalse)
	w.emitted(v1alpha1.RequestRefusedReason, "a user has closed the gate before it was approved")
}

// emitted waits for an event with a reason and a text.
func (w *world) emitted(reason, text string) {
	w.Helper()
	events := &corev1.EventList{}
	w.until("an event "+reason, func() (bool, any) {
		w.Must(cluster.Client.List(w.Context(), events, client.InNamespace(w.Namespace)))
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == reason && strings.Contains(e.Message, text) }), len(events.Items)
	})
}

func TestEmergenciesNeedVerbAndReason(t *testing.T) {
	w := newWorld(t)
	g := w.fourEyes(2)
	olga, greta := w.as("olga", opener, approver), w.as("greta", emergencyOpener)
	breaks := func(at string, more ...string) []string {
		return append([]string{"annotate", "--overwrite", "gate", "production", openAt + "=" + at, emergency + "=" + at}, more...)
	}
	const needs, own = ": it needs the verb emergency on gates", " only with a request of their own in the same write"
	w.refused(olga, "user olga may not open gate "+w.Namespace+"/production in an emergency"+needs, breaks(nowNano(), openWhy+"=outage")...)
	w.refused(greta, own, breaks(nowNano())...)
	w.refused(greta, own, breaks(nowNano(), openWhy+"=")...)
	w.refused(greta, own, "annotate", "--overwrite", "gate", "production", emergency+"="+nowNano())

	// A request of another user does not become an emergency.
	w.requestsOpen(olga, g)
	w.refused(greta, own, "annotate", "--overwrite", "gate", "production", emergency+"="+w.get(g).Annotations[openAt], openWhy+"=outage")
	w.refused(olga, needs, "annotate", "--overwrite", "gate", "production", emergency+"="+w.get(g).Annotations[openAt])

	at := nowNano()
	w.allowed(greta, breaks(at, openWhy+"=outage 17")...)
	g = w.Opened("production", metav1.ConditionTrue)
	if last := g.Status.History[0]; !last.Emergency || last.RequestedBy != "greta" || last.Message != "outage 17" {
		t.Errorf("the history has %+v", last)
	}
	w.emitted(v1alpha1.EmergencyOpenedReason, "by greta in an emergency: outage 17")
	// The old value is still there, and a request with the same value is an emergency.
	w.allowed(olga, "annotate", "--overwrite", "gate", "production", openAt+"="+nowNano())
	w.refused(olga, needs, "annotate", "--overwrite", "gate", "production", openAt+"="+at, openWhy+"=x")
	w.allowed(w.as("carl", opener), "annotate", "gate", "production", closeAt+"="+nowNano())
	w.decided(g, metav1.ConditionFalse)
	w.refused(w.clusterAdmin(), "by a manifest", "apply", "--server-side", "--force-conflicts", "-f", gateFile("production", map[string]string{openAt: "2026-01-01T00:00:00Z", emergency: "2026-01-01T00:00:00Z", openWhy: "x"}))
}

// Without the policies, requesters and approvers are unknown, and no request opens the Gate.
func TestUnstampedRequestIsRefused(t *testing.T) {
	w := newWorld(t)
	g := w.fourEyes(1)
	olga, greta := w.as("olga", opener), w.as("greta", emergencyOpener)
	alice := w.as("alice", approver)
	r := w.requestsOpen(olga, g)
	_, what, _ := strings.Cut(ledger.FormatRequestApproval(g, &r, time.Now()), ",")
	w.without("gate-approval", []string{mutating, validating}, func() {
		w.until("no policy stamps the approval", func() (bool, any) {
			_, err := alice.kubectl(w.Context(), w.Namespace, "annotate", "--overwrite", "gate", "production", approveBy+"="+what+" alice")
			return err == nil && w.get(g).Annotations[approveBy] != "", err
		})
		w.decided(g, metav1.ConditionFalse)
		if opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition); !strings.Contains(opened.Message, "the approvals in its annotations do not count, because the policy gate-approval is missing or cannot be read") {
			t.Errorf("the message is %q", opened.Message)
		}
		at := nowNano()
		w.allowed(greta, "annotate --overwrite gate production "+openAt+"="+at+" "+emergency+"="+at+" "+openWhy+"=outage")
		w.decided(g, metav1.ConditionFalse)
		if last := g.Status.History[0]; !strings.Contains(last.Refused, "the requester is not verified: that needs config/policies") {
			t.Errorf("the history has %+v", last)
		}
	})
	w.until("the policy is in force again", func() (bool, any) {
		out, err := admin.kubectl(w.Context(), w.Namespace, "annotate --overwrite gate production --dry-run=server -o=yaml "+approveBy+"=forged")
		return err == nil && !strings.Contains(out, "forged"), out
	})
}
