package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Kinds of policies.
const (
	validating = "ValidatingAdmissionPolicy"
	mutating   = "MutatingAdmissionPolicy"
)

// policy is one of ours, and what is not so without it.
type policy struct{ kind, name, without string }

const stamp, sourceStamp, approval = "gate-exception-stamp", "gated-source-stamp", "gate-approval"

// ruling are the policies of config/policies.
var ruling = []policy{
	{validating, "gate-request-verb", "whoever may patch a Gate opens and closes it"},
	{mutating, "gate-request-stamp", "nobody notes who opens and closes Gates"},
	{mutating, approval, "nobody notes who approves open requests"},
	{validating, approval, "no open request of a Gate with spec.approvals.openRequests counts"},
	{validating, "gate-pass-verb", "whoever may patch a held object lets a reconciliation of it pass"},
	{mutating, "gate-pass-stamp", "nobody notes who lets a reconciliation pass"},
	{validating, "gate-edit", "whoever may patch a Gate changes its spec"},
	{validating, "gate-status", "others than the controller write the status"},
	{validating, "gate-exception-overlap", "GateExceptions of a Gate overlap"},
	{validating, "gate-exception-verb", "whoever may patch a GateException approves it"},
	{mutating, stamp, "nobody notes who writes and approves GateExceptions"},
	{validating, stamp, "approvals do not count"},
	{validating, "gate-exception-edit", "whoever may patch a GateException changes its spec"},
	{validating, "gated-source-verb", "whoever may patch a GatedSource chooses a revision"},
	{mutating, sourceStamp, "nobody notes who approves revisions"},
	{validating, sourceStamp, "approvals of revisions do not count"},
	{validating, "gated-source-edit", "whoever may patch a GatedSource changes its spec"},
	{validating, "gated-source-pin", "whoever may patch a source pins it to another revision than its GatedSource"},
	{validating, "gated-source-name", "whoever may create a source takes the place of one that a GatedSource pins"},
	{validating, "gated-source-delete", "whoever may delete a GatedSource creates it again with another revision"},
	{validating, "gate-receiver-verb", "whoever may write a GateReceiver opens Gates by it"},
	{validating, "gate-target-verb", "whoever may write a Gate holds what they may not patch, and makes a Gate depend on what they may not read"},
}

// instead and insteadPass are what config/policies-1.30 has in place of what stamps.
var (
	instead     = policy{validating, "gate-request-by", "anybody says for whom a request is"}
	insteadPass = policy{validating, "gate-pass-by", "anybody says for whom a pass is"}
)

// locking are the policies of config/lock.
var locking = []policy{
	{validating, "gate-lock", "a held object can be resumed"},
	{mutating, "gate-hold", "an object that is new is not held from its first moment"},
	{validating, "gate-delete", "an object can be deleted and created again while its Gate is closed"},
}

// Admission are the policies of the cluster and their bindings.
type Admission []unstructured.Unstructured

// has returns whether a policy is there.
func (a Admission) has(p policy) bool { return a.find(p) != nil }

func (a Admission) find(p policy) *unstructured.Unstructured {
	for i := range a {
		if a[i].GetKind() == p.kind && a[i].GetName() == p.name {
			return &a[i]
		}
	}
	return nil
}

// isBound returns whether a binding puts a policy in force.
func (a Admission) isBound(p policy) bool {
	for i := range a {
		of, _, _ := unstructured.NestedString(a[i].Object, "spec", "policyName")
		actions, _, _ := unstructured.NestedStringSlice(a[i].Object, "spec", "validationActions")
		if a[i].GetKind() == p.kind+"Binding" && of == p.name && (p.kind == mutating || slices.Contains(actions, "Deny")) {
			return true
		}
	}
	return false
}

// missing finds the policies of a set that are not in force.
func (a Admission) missing(set []policy, from string) (findings []Finding) {
	for _, p := range set {
		object, action := p.kind+" "+p.name, "kubectl apply --server-side -f "+from
		switch {
		case !a.has(p):
			findings = append(findings, Finding{Error, object, "it is missing: " + p.without, action})
		case !a.isBound(p):
			findings = append(findings, Finding{Error, object, "no binding with the action Deny puts it in force: " + p.without, action})
		}
	}
	return findings
}

// any returns whether one of the policies is there.
func (a Admission) any(set []policy) bool { return slices.ContainsFunc(set, a.has) }

// Policies finds what is missing of config/policies, or of config/policies-1.30 if that is installed.
func Policies(a Admission, controllers []Controller, gates []v1alpha1.Gate) (findings []Finding) {
	set, from := ruling, "policies.yaml"
	older := a.has(instead)
	switch {
	case older:
		from = "policies-1.30.yaml"
		set = append(slices.DeleteFunc(slices.Clone(ruling), func(p policy) bool {
			return p.kind == mutating || slices.Contains([]string{stamp, sourceStamp, approval}, p.name)
		}), instead, insteadPass)
		findings = append(findings, Finding{Note, "policies-1.30", "requests have no name, and approvals do not count", "with Kubernetes 1.36 or later, install policies.yaml in its place"})
	case !a.any(ruling):
		findings = append(findings, Finding{Warning, "policies", "they are not installed: whoever may patch a Gate opens it, changes its spec, and says that it was somebody else", "kubectl apply --server-side -f policies.yaml, see docs/secure/roles.md"})
		set = nil
	}
	findings = append(findings, a.missing(set, from)...)
	if set != nil {
		findings = append(findings, a.strangers(append(slices.Clone(set), locking...), controllers, from)...)
	}
	return append(findings, a.unstamped(gates)...)
}

// collector is an account of Kubernetes itself, which policies name for other reasons.
const collector = "'system:serviceaccount:kube-system:generic-garbage-collector'"

// strangers finds policies that name another service account than that of the controller. Those that name none are for all.
func (a Admission) strangers(set []policy, controllers []Controller, from string) (findings []Finding) {
	for _, p := range set {
		found := a.find(p)
		if found == nil {
			continue
		}
		raw, err := json.Marshal(found.Object["spec"])
		text := strings.ReplaceAll(string(raw), collector, "")
		if err != nil || !strings.Contains(text, "'system:serviceaccount:") {
			continue
		}
		for _, c := range controllers {
			if !strings.Contains(text, "'"+c.account+"'") {
				findings = append(findings, Finding{Error, nameOf(found), fmt.Sprintf("it does not name %s, the user of %s, and refuses what that controller writes", c.account, c), "install " + from + " with that name, see docs/secure/permissions.md#another-namespace-another-service-account"})
			}
		}
	}
	return findings
}

// unstamped finds Gates that require approvals where none counts.
func (a Admission) unstamped(gates []v1alpha1.Gate) (findings []Finding) {
	counts := func(name string) bool {
		p := policy{validating, name, ""}
		return a.has(p) && a.isBound(p)
	}
	exceptions, requests := counts(stamp), counts(approval)
	find := func(g *v1alpha1.Gate, asks string, args ...any) {
		findings = append(findings, Finding{Error, gateName(g), fmt.Sprintf(asks, args...), "kubectl apply --server-side -f policies.yaml"})
	}
	for i := range gates {
		g := &gates[i]
		if n := g.RequiredExceptionApprovals(); n > 0 && !exceptions {
			find(g, "it requires %d approvals of its GateExceptions, and none counts without the policy %s: only exceptions with nothing but closePeriods apply", n, stamp)
		}
		if n := g.RequiredApprovals(); n > 0 && !requests {
			find(g, "it requires %d approvals of open requests, and none counts without the policy %s: no request opens it", n, approval)
		}
	}
	return findings
}

func gateName(g *v1alpha1.Gate) string { return v1alpha1.GateKind + " " + g.Namespace + "/" + g.Name }
