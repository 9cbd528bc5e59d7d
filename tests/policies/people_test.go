package policies

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The roles of config/policies.
const (
	viewer = "gate-viewer"
	editor = "gate-editor"
	opener = "gate-opener"
)

type world struct{ *harness.World }

func newWorld(t *testing.T) *world { return &world{harness.NewWorld(t, cluster)} }

// on returns the same world for a subtest.
func (w *world) on(t *testing.T) *world { return &world{w.On(t)} }

// stopController stops the controller, which writes what the test writes otherwise. It runs
// again after the function that is returned, or at the end of the test.
func (w *world) stopController() (start func()) {
	w.Helper()
	w.Must(gating.Stop())
	start = sync.OnceFunc(func() {
		var err error
		if gating, err = cluster.StartGatingController(context.WithoutCancel(w.Context())); err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(start)
	return start
}

// as returns a person who has ClusterRoles in this namespace.
func (w *world) as(name string, roles ...string) *person {
	w.Helper()
	p := &person{w.Person(name)}
	for _, role := range roles {
		w.Must(cluster.Client.Create(w.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(name+"-"+role, ":", "-"), Namespace: w.Namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		}))
		definition := &rbacv1.ClusterRole{}
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKey{Name: role}, definition))
		for _, rule := range definition.Rules {
			w.mayBy(name, rule.Verbs[0], rule.Resources[0], rule.APIGroups[0])
		}
	}
	return p
}

// role creates a ClusterRole of its own with verbs on resources of Gates, named
// ones or all, and returns its name.
func (w *world) role(verbs, resources []string, names ...string) string {
	w.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "policies-"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: resources, Verbs: verbs, ResourceNames: names,
	}}}
	w.Create(role)
	w.Cleanup(func() { _ = cluster.Client.Delete(context.Background(), role) })
	return role.Name
}

// mayBy waits until the API server knows of a permission.
func (w *world) mayBy(user, verb, resource, group string) {
	w.Helper()
	w.Eventually(user+" may "+verb+" "+resource, func() error {
		resource, sub, _ := strings.Cut(resource, "/")
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: w.Namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub, Name: "production",
			}}}
		if err := cluster.Client.Create(w.Context(), review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return fmt.Errorf("not yet: %s", review.Status.Reason)
		}
		return nil
	})
}

// gate creates a Gate that is closed by default and waits until the controller
// has decided on it.
func (w *world) gate(name string) *v1alpha1.Gate {
	w.Helper()
	g := w.ClosedGate(name)
	w.decided(g, metav1.ConditionFalse)
	return g
}

// get reads a Gate again.
func (w *world) get(g *v1alpha1.Gate) *v1alpha1.Gate {
	w.Helper()
	return w.ReadGate(g.Name)
}

// decided checks whether the controller, asked again, has a Gate opened.
func (w *world) decided(g *v1alpha1.Gate, want metav1.ConditionStatus) {
	w.Helper()
	w.Decided(g)
	if !meta.IsStatusConditionPresentAndEqual(g.Status.Conditions, v1alpha1.OpenedCondition, want) {
		w.Fatalf("want Opened %s, it is %+v after %+v", want, g.Status.Conditions, g.LatestRequest())
	}
}

// file writes a manifest and returns its path.
func (w *world) file(content string) string {
	w.Helper()
	path := filepath.Join(w.TempDir(), "manifest.yaml")
	w.Must(os.WriteFile(path, []byte(content), 0o600))
	return path
}

// manifest returns a closed Gate with annotations in a file.
func (w *world) manifest(name string, annotations map[string]string) string {
	w.Helper()
	text := "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nspec: {default: closed}\nmetadata:\n  namespace: " + w.Namespace + "\n  " + name + "\n"
	if len(annotations) > 0 {
		text += "  annotations:\n"
		for key, value := range maps.All(annotations) {
			text += fmt.Sprintf("    %s: %q\n", key, value)
		}
	}
	return w.file(text)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// now is the time of requests in these tests: truncated, so that it has come.
func now() string { return stamp(time.Now()) }
