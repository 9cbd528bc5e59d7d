package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/internal/target"
)

// Added finds kinds of --suspend-kinds that the policies in the cluster do not cover. resources maps each kind, as Kind.group, to its
// resource, such as cronjobs.batch.
func Added(a Admission, resources map[string]string) (findings []Finding) {
	kinds := target.AddedKinds()
	locks, judges := a.has(policy{mutating, "gate-hold", ""}), a.has(policy{validating, "gate-target-verb", ""})
	var all []string
	for _, k := range kinds {
		all = append(all, k.String())
	}
	action := "kubectl gate kinds " + strings.Join(all, " ") + " | kubectl apply --server-side -f -"
	for _, k := range kinds {
		resource := schema.ParseGroupResource(resources[k.GroupKind.String()])
		if resource.Resource == "" {
			continue // the kind is not installed
		}
		object := fmt.Sprintf("kind %s of %s", k.Kind, k.Group)
		if locks && !slices.ContainsFunc(a, func(p unstructured.Unstructured) bool { return a.locks(&p, resource) }) {
			findings = append(findings, Finding{Warning, object, "no policy of the lock covers it: any user who may patch a held object can resume it, until the controller holds it again", action})
		}
		if judges && !slices.ContainsFunc(a, func(p unstructured.Unstructured) bool { return a.judges(&p, k) }) {
			findings = append(findings, Finding{Warning, object, "the policy on targets does not cover it: any user who may write a Gate can suspend objects of it that they may not patch", action})
		}
	}
	return findings
}

// locks returns whether a policy that is in force keeps objects of a resource held.
func (a Admission) locks(p *unstructured.Unstructured, resource schema.GroupResource) bool {
	rules, _, _ := unstructured.NestedSlice(p.Object, "spec", "matchConstraints", "resourceRules")
	return strings.HasPrefix(p.GetName(), "gate-hold") && a.isBound(policy{mutating, p.GetName(), ""}) && slices.ContainsFunc(rules, func(item any) bool {
		rule, _ := item.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
		resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
		return slices.Contains(groups, resource.Group) && slices.Contains(resources, resource.Resource)
	})
}

// judges returns whether a policy that is in force checks the permissions of users who hold objects of a kind.
func (a Admission) judges(p *unstructured.Unstructured, k target.Kind) bool {
	variables, _, _ := unstructured.NestedSlice(p.Object, "spec", "variables")
	return strings.HasPrefix(p.GetName(), "gate-target-verb") && a.isBound(policy{validating, p.GetName(), ""}) && slices.ContainsFunc(variables, func(item any) bool {
		v, _ := item.(map[string]any)
		text, _ := v["expression"].(string)
		return v["name"] == "kinds" && strings.Contains(text, "['"+k.Kind+"', ") && strings.Contains(text, "'"+k.Group+"']")
	})
}
