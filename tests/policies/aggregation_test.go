package policies

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// verbsOn returns the verbs that a ClusterRole has on Gates, sorted.
func (w *world) verbsOn(name string) ([]string, error) {
	role := &rbacv1.ClusterRole{}
	if err := cluster.Client.Get(w.ctx, client.ObjectKey{Name: name}, role); err != nil {
		return nil, err
	}
	var verbs []string
	for _, rule := range role.Rules {
		if slices.Contains(rule.APIGroups, v1alpha1.GroupVersion.Group) {
			if !slices.Equal(rule.Resources, []string{"gates"}) {
				return nil, fmt.Errorf("%s has %q", name, rule.Resources)
			}
			verbs = append(verbs, rule.Verbs...)
		}
	}
	slices.Sort(verbs)
	return verbs, nil
}

func TestTheRolesAreThoseThatAreDocumented(t *testing.T) {
	w := newWorld(t)
	for name, want := range map[string][]string{
		viewer: {"get", "list", "watch"},
		editor: {"create", "delete", "deletecollection", "patch", "update"},
		opener: {"close", "get", "list", "open", "patch", "watch"},
	} {
		if got, err := w.verbsOn(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

// The real controller aggregates, as in any cluster.
func TestTheBuiltInRolesSeeAndEditGatesButDoNotOpenThem(t *testing.T) {
	w := newWorld(t)
	manager, err := cluster.StartControllerManager(w.ctx, "clusterrole-aggregation-controller")
	w.must(err)
	t.Cleanup(func() {
		if err := manager.Stop(); err != nil {
			t.Error(err)
		}
	})
	look, edit := []string{"get", "list", "watch"}, []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	for name, want := range map[string][]string{"view": look, "edit": edit, "admin": edit} {
		w.eventually(name+" is aggregated", func() error {
			got, err := w.verbsOn(name)
			if err == nil && !slices.Equal(got, want) {
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
		w.mayBy(p.name, "update", "gates", v1alpha1.GroupVersion.Group)
		w.allowed(p, "label", "gate", "production", role+"=b")
		w.refused(p, g, openings[0], "user "+p.name+" may not open gate")
	}
	member := w.as("member-view", "view")
	w.mayBy(member.name, "get", "gates", v1alpha1.GroupVersion.Group)
	w.refused(member, g, kubectl("label", "label gate GATE a=b"), `cannot patch resource "gates"`)
	w.decided(g, metav1.ConditionFalse)
}
