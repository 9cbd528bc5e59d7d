package policies

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The roles of config/policies.
const (
	viewer = "gate-viewer"
	editor = "gate-editor"
	opener = "gate-opener"
)

// person is a user of the cluster with credentials of their own.
type person struct {
	name, kubeconfig string
	client           client.Client
}

// people that were created, by name.
var people = map[string]*person{}

func newPerson(name string) (*person, error) {
	if p, ok := people[name]; ok {
		return p, nil
	}
	kubeconfig, err := cluster.KubeconfigFor(name)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // attacks are as fast as they can be
	scheme, err := harness.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	people[name] = &person{name: name, kubeconfig: kubeconfig, client: c}
	return people[name], nil
}

// kubectl runs it as this person and returns what it printed.
func (p *person) kubectl(ctx context.Context, namespace string, args ...string) (string, error) {
	return cluster.Kubectl(ctx, append([]string{"--kubeconfig=" + p.kubeconfig, "--namespace=" + namespace}, args...)...)
}

// world is a namespace of its own.
type world struct {
	*testing.T
	ctx       context.Context
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "policies-"}}
	w.must(cluster.Client.Create(w.ctx, namespace))
	w.namespace = namespace.Name
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) eventually(what string, check func() error) {
	w.Helper()
	w.must(harness.Eventually(w.ctx, timeout, what, check))
}

// as returns a person who has ClusterRoles in this namespace.
func (w *world) as(name string, roles ...string) *person {
	w.Helper()
	p, err := newPerson(name)
	w.must(err)
	for _, role := range roles {
		w.must(cluster.Client.Create(w.ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(name+"-"+role, ":", "-"), Namespace: w.namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		}))
		definition := &rbacv1.ClusterRole{}
		w.must(cluster.Client.Get(w.ctx, client.ObjectKey{Name: role}, definition))
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
	w.must(cluster.Client.Create(w.ctx, role))
	w.Cleanup(func() { _ = cluster.Client.Delete(context.Background(), role) })
	return role.Name
}

// mayBy waits until the API server knows of a permission.
func (w *world) mayBy(user, verb, resource, group string) {
	w.Helper()
	w.eventually(user+" may "+verb+" "+resource, func() error {
		resource, sub, _ := strings.Cut(resource, "/")
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: w.namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub, Name: "production",
			}}}
		if err := cluster.Client.Create(w.ctx, review); err != nil {
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
	g := &v1alpha1.Gate{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		Spec:       v1alpha1.GateSpec{Default: v1alpha1.StateClosed},
	}
	w.must(cluster.Client.Create(w.ctx, g))
	w.decided(g, metav1.ConditionFalse)
	return g
}

// get reads a Gate anew.
func (w *world) get(g *v1alpha1.Gate) *v1alpha1.Gate {
	w.Helper()
	current := &v1alpha1.Gate{}
	w.must(cluster.Client.Get(w.ctx, client.ObjectKeyFromObject(g), current))
	return current
}

// decided checks whether the controller, asked anew, has a Gate opened.
func (w *world) decided(g *v1alpha1.Gate, want metav1.ConditionStatus) {
	w.Helper()
	w.reconcile(g)
	if !meta.IsStatusConditionPresentAndEqual(g.Status.Conditions, v1alpha1.OpenedCondition, want) {
		w.Fatalf("want Opened %s, it is %+v after %+v", want, g.Status.Conditions, g.Status.LastRequest)
	}
}

// reconcile has the controller reconcile a Gate, and reads it anew.
func (w *world) reconcile(g *v1alpha1.Gate) {
	w.Helper()
	token := time.Now().Format(time.RFC3339Nano)
	*g = *w.get(g)
	patch := client.MergeFrom(g.DeepCopy())
	if g.Annotations == nil {
		g.Annotations = map[string]string{}
	}
	g.Annotations[fluxmeta.ReconcileRequestAnnotation] = token
	w.must(cluster.Client.Patch(w.ctx, g, patch))
	w.eventually("the controller has decided on "+g.Name, func() error {
		if *g = *w.get(g); g.Status.LastHandledReconcileAt != token {
			return fmt.Errorf("status.lastHandledReconcileAt is %q", g.Status.LastHandledReconcileAt)
		}
		return nil
	})
}

// file writes a manifest and returns its path.
func (w *world) file(content string) string {
	w.Helper()
	path := filepath.Join(w.TempDir(), "manifest.yaml")
	w.must(os.WriteFile(path, []byte(content), 0o600))
	return path
}

// manifest returns a closed Gate with annotations in a file.
func (w *world) manifest(name string, annotations map[string]string) string {
	w.Helper()
	text := "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nspec: {default: closed}\nmetadata:\n  namespace: " + w.namespace + "\n  " + name + "\n"
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
