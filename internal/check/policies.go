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

// policy is a policy in config. without describes the effect if it is missing.
type policy struct{ kind, name, without string }

const stamp, sourceStamp, approval = "gate-exception-stamp", "gated-source-stamp", "gate-approval"

// ruling lists the policies of config/policies.
var ruling = []policy{
	{validating, "gate-request-verb", "any user who may patch a Gate can open and close it"},
	{mutating, "gate-request-stamp", "the users who open and close Gates are not recorded"},
	{mutating, approval, "the users who approve open requests are not recorded"},
	{validating, approval, "open requests of Gates with spec.approvals.openRequests have no effect"},
	{validating, "gate-pass-verb", "any user who may patch a held object can request a pass"},
	{mutating, "gate-pass-stamp", "the users who request passes are not recorded"},
	{validating, "gate-rollback-verb", "any user who may patch a GatedSource can roll it back"},
	{mutating, "gate-rollback-stamp", "the users who request rollbacks are not recorded"},
	{validating, "gate-edit", "any user who may patch a Gate can change its spec"},
	{validating, "gate-status", "clients other than the controller can write the status"},
	{validating, "gate-exception-overlap", "GateExceptions of a Gate overlap"},
	{validating, "gate-exception-verb", "any user who may patch a GateException can approve it"},
	{mutating, stamp, "the users who write and approve GateExceptions are not recorded"},
	{validating, stamp, "approvals do not count"},
	{validating, "gate-exception-edit", "any user who may patch a GateException can change its spec"},
	{validating, "gated-source-verb", "any user who may patch a GatedSource can choose a revision"},
	{mutating, sourceStamp, "the users who approve revisions are not recorded"},
	{validating, sourceStamp, "approvals of revisions do not count"},
	{validating, "gated-source-edit", "any user who may patch a GatedSource can change its spec"},
	{validating, "gated-source-pin", "any user who may patch a source can pin it to a revision other than that of its GatedSource"},
	{validating, "gated-source-name", "any user who may create a source can take the name of one that a GatedSource pins"},
	{validating, "gated-source-delete", "any user who may delete a GatedSource can create it again with another revision"},
	{validating, "gate-receiver-verb", "any user who may write a GateReceiver can open Gates through it"},
	{validating, "gate-target-verb", "any user who may write a Gate can hold objects that they may not patch, and make a Gate depend on objects that they may not read"},
}

// instead, insteadPass and insteadRollback replace the stamping policies in config/policies-1.30.
var (
	instead         = policy{validating, "gate-request-by", "users can make requests in the name of others"}
	insteadPass     = policy{validating, "gate-pass-by", "users can request passes in the name of others"}
	insteadRollback = policy{validating, "gate-rollback-by", "users can request rollbacks in the name of others"}
)

// locking lists the policies of config/lock.
var locking = []policy{
	{validating, "gate-lock", "a held object can be resumed"},
	{mutating, "gate-hold", "a new object is not held from its creation"},
	{validating, "gate-delete", "an object can be deleted and created again while its Gate is closed"},
	{validating, "gate-overlay-verb", "any user who may patch an object can add it to the targets of a GateException by a label"},
}

// Admission contains the policies of the cluster and their bindings.
type Admission []unstructured.Unstructured

// has returns whether a policy exists.
func (a Admission) has(p policy) bool { return a.find(p) != nil }

func (a Admission) find(p policy) *unstructured.Unstructured {
	for i := range a {
		if a[i].GetKind() == p.kind && a[i].GetName() == p.name {
			return &a[i]
		}
	}
	return nil
}

// isBound returns whether a policy is in force because a binding refers to it.
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

// any returns whether one of the policies exists.
func (a Admission) any(set []policy) bool { return slices.ContainsFunc(set, a.has) }

// Policies finds missing policies of config/policies, or of config/policies-1.30 if those are installed.
func Policies(a Admission, controllers []Controller, gates []v1alpha1.Gate) (findings []Finding) {
	set, from := ruling, "policies.yaml"
	older := a.has(instead)
	switch {
	case older:
		from = "policies-1.30.yaml"
		set = append(slices.DeleteFunc(slices.Clone(ruling), func(p policy) bool {
			return p.kind == mutating || slices.Contains([]string{stamp, sourceStamp, approval}, p.name)
		}), instead, insteadPass, insteadRollback)
		findings = append(findings, Finding{Note, "policies-1.30", "requests have no requester, and approvals do not count", "with Kubernetes 1.36 or later, install policies.yaml instead"})
	case !a.any(ruling):
		findings = append(findings, Finding{Warning, "policies", "they are not installed: any user who may patch a Gate can open it and change its spec, even in the name of another user", "kubectl apply --server-side -f policies.yaml, see docs/secure/roles.md"})
		set = nil
	}
	findings = append(findings, a.missing(set, from)...)
	if set != nil {
		findings = append(findings, a.otherAccounts(append(slices.Clone(set), locking...), controllers, from)...)
	}
	return append(findings, a.unstamped(gates)...)
}

// collector is a Kubernetes service account that policies exempt.
const collector = "'system:serviceaccount:kube-system:generic-garbage-collector'"

// otherAccounts finds policies that exempt a service account other than the controller's. It ignores policies that exempt none.
func (a Admission) otherAccounts(set []policy, controllers []Controller, from string) (findings []Finding) {
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
				findings = append(findings, Finding{Error, nameOf(found), fmt.Sprintf("it does not exempt %s, the user of %s, and refuses the writes of that controller", c.account, c), "install " + from + " with that name, see docs/secure/permissions.md#another-namespace-another-service-account"})
			}
		}
	}
	return findings
}

// unstamped finds Gates that require approvals although no approval can count.
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
			find(g, "it requires %d approvals of its GateExceptions, and none counts without the policy %s: only exceptions that have only closePeriods apply", n, stamp)
		}
		if n := g.RequiredApprovals(); n > 0 && !requests {
			find(g, "it requires %d approvals of open requests, and none counts without the policy %s: no request opens it", n, approval)
		}
	}
	return findings
}

func gateName(g *v1alpha1.Gate) string { return v1alpha1.GateKind + " " + g.Namespace + "/" + g.Name }
