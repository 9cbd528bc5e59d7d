package policies

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// verbsOn returns the verbs that a ClusterRole has on each resource of ours,
// sorted.
func (w *world) verbsOn(name string) (map[string][]string, error) {
	role := &rbacv1.ClusterRole{}
	if err := cluster.Client.Get(w.Context(), client.ObjectKey{Name: name}, role); err != nil {
		return nil, err
	}
	verbs := map[string][]string{}
	for _, rule := range role.Rules {
		if slices.Contains(rule.APIGroups, v1alpha1.GroupVersion.Group) {
			for _, resource := range rule.Resources {
				verbs[resource] = append(verbs[resource], rule.Verbs...)
				slices.Sort(verbs[resource])
			}
		}
	}
	return verbs, nil
}

func TestTheRolesAreThoseThatAreDocumented(t *testing.T) {
	w := newWorld(t)
	look, edit := []string{"get", "list", "watch"}, []string{"create", "delete", "deletecollection", "patch", "update"}
	for name, want := range map[string]map[string][]string{
		viewer:            {"gates": look, "gateexceptions": look, "gatedsources": look},
		sourceEditor:      {"gatedsources": edit},
		sourceApprover:    {"gatedsources": {"approve", "get", "list", "patch", "watch"}},
		editor:            {"gates": edit},
		opener:            {"gates": {"close", "get", "list", "open", "patch", "watch"}, "gateexceptions": look},
		exceptionEditor:   {"gateexceptions": edit},
		approver:          {"gates": {"approve", "get", "list", "patch", "watch"}},
		emergencyOpener:   {"gates": {"close", "emergency", "get", "list", "open", "patch", "watch"}},
		exceptionApprover: {"gateexceptions": {"approve", "get", "list", "patch", "watch"}},
		receiverViewer:    {"gatereceivers": look},
		receiverEditor:    {"gatereceivers": edit},
		calendarViewer:    {"calendarfeeds": look},
		calendarEditor:    {"calendarfeeds": edit},
	} {
		if got, err := w.verbsOn(name); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

// The real controller aggregates, as in any cluster.
func TestTheBuiltInRolesSeeAndEditGatesAndExceptionsButDoNotOpenOrApproveThem(t *testing.T) {
	w := newWorld(t)
	manager, err := cluster.StartControllerManager(w.Context(), "clusterrole-aggregation-controller")
	w.Must(err)
	t.Cleanup(func() {
		if err := manager.Stop(); err != nil {
			t.Error(err)
		}
	})
	look, edit := []string{"get", "list", "watch"}, []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	for name, verbs := range map[string][]string{"view": look, "edit": edit, "admin": edit} {
		want := map[string][]string{"gates": verbs, "gateexceptions": verbs, "gatedsources": verbs}
		if name != "view" { // the path of a generic receiver is all that opens, that of a calendar all that reads
			want["gatereceivers"], want["calendarfeeds"] = verbs, verbs
		}
		w.Eventually(name+" is aggregated", func() error {
			got, err := w.verbsOn(name)
			if err == nil && !reflect.DeepEqual(got, want) {
				err = errors.New("not yet")
			}
			if err != nil {
				return fmt.Errorf("%s: got %q, %w, want %q", name, got, err, want)
			}
			return nil
		})
	}
	g := w.gate("production")
	for _, role := range []string{"edit", "admin"} {
		p := w.as("member-"+role, role)
		w.mayBy(p.Name, "update", "gates", v1alpha1.GroupVersion.Group)
		w.allowed(p, "label", "gate", "production", role+"=b")
		w.refused(p, g, openings[0], "user "+p.Name+" may not open gate")
		w.born(p, role, `{"gateRef":{"name":"`+role+`"}}`, nil)
		w.refusedException(p, role, "user "+p.Name+" may not approve gate exception", "annotate", "gtex", role, approveAt+"="+w.approvalOf(role))
		w.noReceiver(p, "user "+p.Name+" may not create a receiver that opens gate", "create", "-f", w.receive(role, ""))
		w.noHold(p, w.mayNotHold(p.Name, "Kustomizations", w.Namespace, role, apps), "create", "-f", w.hold(role, own))
		w.noHold(p, w.mayNotHold(p.Name, "Kustomizations", "kube-system", "production", apps), "patch", "gate", "production", "--type=merge",
			`-p={"spec":{"targets":[{"kind":"Kustomization","name":"*","namespace":"kube-system"}]}}`)
	}
	member := w.as("member-view", "view")
	w.mayBy(member.Name, "get", "gates", v1alpha1.GroupVersion.Group)
	w.refused(member, g, kubectl("label", "label gate GATE a=b"), `cannot patch resource "gates"`)
	if out, err := member.kubectl(w.Context(), w.Namespace, "get", "gatereceivers"); err == nil || !strings.Contains(out, `cannot list resource "gatereceivers"`) {
		t.Errorf("who may view sees where webhooks go: %s, %v", out, err)
	}
	w.refusedException(member, "edit", `cannot patch resource "gateexceptions"`, "label", "gtex", "edit", "a=b")
	w.decided(g, metav1.ConditionFalse)
}
