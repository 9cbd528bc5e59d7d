package act

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// anException returns an exception by alice with generation 2. It is valid for an hour from now.
func anException(now time.Time, change ...func(*v1alpha1.GateException)) *v1alpha1.GateException {
	e := &v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "hotfix", Generation: 2, Annotations: map[string]string{v1alpha1.AuthorsAnnotation: "alice"}},
		Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: "production"}, Default: v1alpha1.StateOpened,
			ValidFrom: metav1.NewTime(now), ValidUntil: metav1.NewTime(now.Add(time.Hour)),
		},
	}
	for _, c := range change {
		c(e)
	}
	return e
}

func approvedBy(names ...string) func(*v1alpha1.GateException) {
	return func(e *v1alpha1.GateException) {
		for _, name := range names {
			e.Status.Approvals = append(e.Status.Approvals, v1alpha1.Approval{ApprovedBy: name, Generation: e.Generation})
		}
	}
}

func TestApproveRefusesBeforeTheRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		change     func(*v1alpha1.GateException)
		me         string
		generation int64
		at         time.Duration
		want       string
	}{
		"another user can":               {approvedBy("carol"), "bob", 0, 0, ""},
		"and can name the generation":    {approvedBy(), "bob", 2, 0, ""},
		"of an outdated generation":      {approvedBy(), "bob", 1, 0, "generation 1 is outdated, the current one is 2: read the exception again"},
		"who wrote it":                   {approvedBy(), "alice", 0, 0, "you, alice, wrote it: another user must approve it"},
		"who has done so":                {approvedBy("bob"), "bob", 0, 0, "you, bob, have approved generation 2 already"},
		"who has approved an older one":  {func(e *v1alpha1.GateException) { approvedBy("bob")(e); e.Generation = 3 }, "bob", 0, 0, ""},
		"no user, if it is over":         {approvedBy(), "bob", 0, time.Hour, "it ended at 2026-"},
		"no user, if no author is known": {func(e *v1alpha1.GateException) { e.Annotations = nil }, "bob", 0, 0, "its authors are unknown"},
		"a name that is unknown can":     {approvedBy(), "", 0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := mayApprove(anException(now, tc.change), tc.me, tc.generation, now.Add(tc.at))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestDeniedApprovalsAddressTheUser(t *testing.T) {
	resource := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "gateexceptions"}
	policy := "ValidatingAdmissionPolicy 'gate-exception-verb' with binding 'gate-exception-verb' denied request: user bob "
	for name, tc := range map[string]struct{ text, want string }{
		"edited meanwhile": {
			policy + "may not approve generation=1 of gate exception flux-system/hotfix: the current one is generation=2; read it again, and approve the current version: kubectl",
			"it was edited after you read it: you may not approve generation=1 of gate exception flux-system/hotfix: the current one is generation=2; run the command again to read it",
		},
		"no verb": {
			policy + "may not approve gate exception flux-system/hotfix: it needs the verb approve on gateexceptions.gating.toolkit.fluxcd.io",
			`you may not approve gateexceptions in namespace "flux-system": that needs the verb "approve", which the ClusterRole gate-exception-approver has`,
		},
		"not by a policy": {
			"User cannot patch",
			`you may not patch gateexceptions in namespace "flux-system": that needs the verb "patch", which the ClusterRole gate-exception-approver has`,
		},
		"another policy": {
			"ValidatingAdmissionPolicy 'ours' with binding 'ours' denied request: not on Fridays",
			"refused: not on Fridays",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refusedApproval(anException(now), apierrors.NewForbidden(resource, "hotfix", errors.New(tc.text))); got.Error() != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestApprovalsAreCounted(t *testing.T) {
	waiting := func(text string) func(*v1alpha1.GateException) {
		return func(e *v1alpha1.GateException) {
			e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ActiveCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.WaitingApprovalReason, Message: text}}
		}
	}
	asks := func(n int32) *v1alpha1.Gate {
		return &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Approvals: &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: n}}}}
	}
	inForce := func(e *v1alpha1.GateException) {
		e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ActiveCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.InForceReason}}
	}
	message := waiting("Exception waits for approval: gate 'flux-system/production' requires 3 approvals, 1 given by bob")
	for name, tc := range map[string]struct {
		gate   *v1alpha1.Gate
		names  []string
		change func(*v1alpha1.GateException)
		want   string
	}{
		"of two, one":                         {asks(2), []string{"bob"}, message, "1 of 2 approvals, waits for 1 more"},
		"of two, both":                        {asks(2), []string{"bob", "carol"}, message, "2 of 2 approvals, in force until "},
		"the gate cannot be read":             {nil, []string{"bob"}, message, "1 approval, in force until 2026-11-21 13:00 (in 1h), if its gate requires no more"},
		"the gate cannot be read, in force":   {nil, []string{"bob", "carol"}, inForce, "2 approvals, in force until 2026-11-21 13:00 (in 1h)"},
		"a gate that asks for none":           {&v1alpha1.Gate{}, []string{"bob"}, waiting(""), "which it does not need, in force until "},
		"a gate that asks for none of itself": {asks(0), []string{"bob"}, waiting(""), "which it does not need, in force until "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describeApprovals(anException(now, approvedBy(tc.names...), tc.change), tc.gate, now); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestApproveCommandIsShellSafe(t *testing.T) {
	g := &v1alpha1.GatedSource{Spec: v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}}}
	g.Namespace, g.Name, g.Status.Pending = "shop", "apps", &v1alpha1.SeenRevision{Revision: "x;$(id)@sha1:b"}
	err := mayApproveRevision(g, "kubectl gate", "")
	if want := "specify the revision that you approve: kubectl gate approve source/apps -n shop --revision 'x;$(id)@sha1:b'"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestPendingExceptionBegins(t *testing.T) {
	later := anException(now.Add(time.Hour))
	later.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ActiveCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.PendingReason}}
	if got := describeValidity(later, now); got != "begins 2026-11-21 13:00 (in 1h) and is over 2026-11-21 14:00 (in 2h)" {
		t.Error(got)
	}
}
