package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The roles of config/policies.
const (
	viewer = "gate-viewer"
	editor = "gate-editor"
	opener = "gate-opener"

	controllerName = "system:serviceaccount:gating-system:gating-controller"
)

type world struct{ *harness.World }

func newWorld(t *testing.T) *world { return &world{harness.NewWorld(t, cluster)} }

// stopController stops the controller, so that only the test writes. The returned function starts it again, or else the end of the test.
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
		if len(definition.Rules) > 0 { // the API server enforces all of them at the same time
			w.mayBy(name, definition.Rules[0].Verbs[0], definition.Rules[0].Resources[0], definition.Rules[0].APIGroups[0])
		}
	}
	return p
}

// role creates a ClusterRole for this test with verbs on resources of Gates, named ones or all, and returns its name.
func (w *world) role(verbs, resources []string, names ...string) string {
	w.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "policies-"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: resources, Verbs: verbs, ResourceNames: names,
	}}}
	w.Create(role)
	w.Cleanup(func() { _ = cluster.Client.Delete(context.Background(), role) })
	return role.Name
}

// mayBy waits until the API server grants a permission.
func (w *world) mayBy(user, verb, resource, group string) {
	w.Helper()
	w.Eventually(user+" may "+verb+" "+resource, func() error { return w.may(user, verb, resource, group) })
}

// may returns an error unless the API server grants a user a permission for the object production.
func (w *world) may(user, verb, resource, group string) error {
	resource, sub, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: w.Namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub, Name: "production",
		}}}
	err := cluster.Client.Create(w.Context(), review)
	if err == nil && !review.Status.Allowed {
		err = fmt.Errorf("not yet: %s", review.Status.Reason)
	}
	return err
}

// gate creates a Gate that is closed by default and waits until the controller has decided on it.
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

// decided triggers the controller, and checks the condition Opened of a Gate.
func (w *world) decided(g *v1alpha1.Gate, want metav1.ConditionStatus) {
	w.Helper()
	w.Decided(g)
	if !meta.IsStatusConditionPresentAndEqual(g.Status.Conditions, v1alpha1.OpenedCondition, want) {
		w.Fatalf("want Opened %s, got %+v after %+v", want, g.Status.Conditions, g.LatestRequest())
	}
}

// refused runs kubectl, which must fail for a cause and change no object of the resource in the namespace.
func (w *world) refused(p *person, cause string, args ...string) {
	w.Helper()
	before := w.written(args)
	out, err := p.kubectl(w.Context(), w.Namespace, args...)
	if err == nil {
		w.Errorf("%q by %s is allowed: %s", args, p.Name, out)
	} else if !strings.Contains(out+"\n", cause) {
		w.Errorf("%q by %s is refused\ngot  %s\nwant %q", args, p.Name, out, cause)
	}
	if after := w.written(args); !reflect.DeepEqual(before, after) {
		w.Errorf("%q by %s results in\n%q from\n%q", args, p.Name, after, before)
	}
}

// allowed runs kubectl, which must succeed, and returns its output.
func (w *world) allowed(p *person, args ...string) string {
	w.Helper()
	out, err := p.kubectl(w.Context(), w.Namespace, args...)
	w.Must(err)
	return out
}

// written returns the parts that users write of the objects of a command: UID, generation and the annotations of requests and approvals,
// by name.
func (w *world) written(args []string) map[string]string {
	w.Helper()
	if len(args) == 1 {
		args = strings.Fields(args[0])
	}
	c, ok := parseCommand(args)
	all, err := dynamic.NewForConfig(admin.Config)
	w.Must(err)
	if !ok {
		return nil
	}
	list, err := all.Resource(c.resource).Namespace(w.Namespace).List(w.Context(), metav1.ListOptions{})
	w.Must(err)
	found := map[string]string{}
	for _, obj := range list.Items {
		annotations := obj.GetAnnotations()
		maps.DeleteFunc(annotations, func(name, _ string) bool { return !strings.Contains(name, ".gate.fluxcd.io/") })
		found[obj.GetName()] = fmt.Sprint(obj.GetUID(), obj.GetGeneration(), annotations)
	}
	return found
}

// is compares a value with the expected one.
func (w *world) is(what string, got, want any) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// until waits until a condition holds. The condition also returns the value to report if it does not.
func (w *world) until(what string, holds func() (bool, any)) {
	w.Helper()
	w.Eventually(what, func() error {
		if ok, got := holds(); !ok {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
}

// without runs a function while some kinds of bindings of a policy do not exist, and then applies its manifest.
func (w *world) without(policy string, kinds []string, do func()) {
	w.Helper()
	run := func(args ...string) {
		w.Helper()
		_, err := cluster.Kubectl(w.Context(), args...)
		w.Must(err)
	}
	run("delete", strings.Join(kinds, ","), policy)
	file := strings.ReplaceAll(strings.TrimPrefix(policy, "gate-"), "-", "_") + ".yaml"
	defer run("apply", "-f", filepath.Join(harness.Root(), "config", "policies", file))
	do()
}

// The kinds of bindings that "without" deletes.
const (
	mutating   = "mutatingadmissionpolicybinding"
	validating = "validatingadmissionpolicybinding"
)

// manifest returns an object with annotations. Its spec has the defaults, overwritten by more. There, null removes a field. A name may
// begin with "generateName: ".
func manifest(kind, name, defaults, more string, annotations map[string]string) string {
	spec := map[string]any{}
	for _, part := range []string{defaults, more} {
		if part == "" {
			continue
		}
		if err := json.Unmarshal([]byte(part), &spec); err != nil {
			panic(err)
		}
	}
	maps.DeleteFunc(spec, func(_ string, value any) bool { return value == nil })
	metadata := map[string]any{"name": name}
	if prefix, ok := strings.CutPrefix(name, "generateName: "); ok {
		metadata = map[string]any{"generateName": prefix}
	}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	content, err := json.Marshal(map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": metadata, "spec": spec})
	if err != nil {
		panic(err)
	}
	return string(content)
}

// gateFile returns the manifest of a closed Gate.
func gateFile(name string, annotations map[string]string) string {
	return manifest(v1alpha1.GateKind, name, `{"default":"closed"}`, "", annotations)
}

// holdFile returns the manifest of a closed Gate with additional fields in its spec.
func holdFile(name, spec string) string {
	return manifest(v1alpha1.GateKind, name, `{"default":"closed"}`, spec, nil)
}

// exceptionFile returns the manifest of an exception of the Gate production, which opens it in the first week of 2099.
func exceptionFile(name, spec string, annotations map[string]string) string {
	return manifest(v1alpha1.GateExceptionKind, name,
		`{"gateRef":{"name":"production"},"default":"opened","validFrom":"2099-01-01T00:00:00Z","validUntil":"2099-01-08T00:00:00Z"}`, spec, annotations)
}

// receiverFile returns the manifest of a GateReceiver that opens the Gate production.
func receiverFile(name, spec string) string {
	return manifest(v1alpha1.GateReceiverKind, name,
		`{"type":"generic-hmac","secretRef":{"name":"token"},"gateRefs":[{"name":"production"}],"action":"open"}`, spec, nil)
}

// gatedFile returns the manifest of a GatedSource of the Git repository apps.
func gatedFile(name, spec string, annotations map[string]string) string {
	return manifest(v1alpha1.GatedSourceKind, name, `{"sourceRef":{"kind":"GitRepository","name":"apps"}}`, spec, annotations)
}

// repositoryFile returns the manifest of a Git repository at commit e.
func repositoryFile(name string, annotations map[string]string) string {
	spec := `{"url":"https://git.example.com/evil","interval":"1m","ref":{"commit":"` + strings.Repeat("e", 40) + `"}}`
	return strings.Replace(manifest("GitRepository", name, spec, "", annotations), v1alpha1.GroupVersion.String(), "source.toolkit.fluxcd.io/v1", 1)
}
