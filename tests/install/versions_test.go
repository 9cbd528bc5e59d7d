package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// oldestFlux are the CustomResourceDefinitions of the oldest supported Flux.
var oldestFlux = []string{
	"oldest/kustomize-controller", "oldest/source-controller", "oldest/helm-controller",
	"oldest/image-reflector-controller", "oldest/image-automation-controller",
}

// governed are the kinds of Flux that Gates govern, with their API versions and a minimal spec.
var governed = []struct{ apiVersion, kind, spec string }{
	{"kustomize.toolkit.fluxcd.io/v1", "Kustomization", `{"interval":"1h","prune":true,"sourceRef":{"kind":"GitRepository","name":"none"}}`},
	{"helm.toolkit.fluxcd.io/v2", "HelmRelease", `{"interval":"1h","chart":{"spec":{"chart":"none","sourceRef":{"kind":"HelmRepository","name":"none"}}}}`},
	{"source.toolkit.fluxcd.io/v1", "GitRepository", `{"interval":"1h","url":"https://git.test/none"}`},
	{"source.toolkit.fluxcd.io/v1", "OCIRepository", `{"interval":"1h","url":"oci://registry.test/none"}`},
	{"source.toolkit.fluxcd.io/v1", "HelmRepository", `{"interval":"1h","url":"https://charts.test"}`},
	{"source.toolkit.fluxcd.io/v1", "HelmChart", `{"interval":"1h","chart":"none","sourceRef":{"kind":"HelmRepository","name":"none"}}`},
	{"source.toolkit.fluxcd.io/v1", "Bucket", `{"interval":"1h","bucketName":"none","endpoint":"bucket.test"}`},
	{"image.toolkit.fluxcd.io/v1beta2", "ImageRepository", `{"interval":"1h","image":"registry.test/none"}`},
	{"image.toolkit.fluxcd.io/v1beta2", "ImageUpdateAutomation", `{"interval":"1h","sourceRef":{"kind":"GitRepository","name":"none"},"git":{"commit":{"author":{"email":"flux@test"}}}}`},
}

// hasMutatingPolicies is the first version with MutatingAdmissionPolicy v1, which config/policies and config/lock need.
const hasMutatingPolicies = "1.36"

// emulated returns a cluster that emulates an older version of Kubernetes, with the controller.
func emulated(t *testing.T, version string) *harness.World {
	t.Helper()
	c, err := harness.StartEmulated(version, oldestFlux...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	w := harness.NewWorld(t, c)
	w.Must(c.Install(w.Context()))
	controller, err := c.StartGatingController(w.Context())
	w.Must(err)
	t.Cleanup(func() { _ = controller.Stop() })
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{controller} })
	if version == hasMutatingPolicies {
		return w
	}
	w.Eventually("the log has the warning about the version", func() error {
		log, err := os.ReadFile(controller.Log)
		if err == nil && !strings.Contains(string(log), "this version of Kubernetes is too old for config/policies and config/lock") {
			err = errors.New("the log has no warning")
		}
		return err
	})
	return w
}

// allSuspended waits until all objects are suspended, or none is.
func allSuspended(w *harness.World, all []*unstructured.Unstructured, want bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("all are suspended: %t", want), func() error {
		for _, obj := range all {
			if w.Read(obj); harness.Suspended(obj) != want {
				return fmt.Errorf("spec.suspend of the %s differs", obj.GetKind())
			}
		}
		return nil
	})
}

// The newest API server emulates the older versions.
func TestOlderKubernetesWithOldestFlux(t *testing.T) {
	for _, version := range []string{"1.34", "1.35", hasMutatingPolicies} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := emulated(t, version)
			_, minor, _ := strings.Cut(version, ".")
			found, err := w.Kubectl(w.Context(), "get", "--raw=/version")
			if err != nil || !strings.Contains(found, fmt.Sprintf("\"emulationMinor\": %q", minor)) {
				t.Fatalf("%v: %s", err, found)
			}
			var all []*unstructured.Unstructured
			var refs []v1alpha1.TargetReference
			for _, of := range governed {
				obj := harness.Object(of.apiVersion, of.kind, w.Key(strings.ToLower(of.kind)))
				w.Must(obj.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q},"spec":%s}`,
					of.apiVersion, of.kind, obj.GetName(), w.Namespace, of.spec)))
				w.Create(obj)
				all = append(all, obj)
				refs = append(refs, v1alpha1.TargetReference{Kind: of.kind, Name: obj.GetName()})
			}
			g := w.ClosedGate("production", refs...)
			allSuspended(w, all, true)
			w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
			allSuspended(w, all, false)

			if version == hasMutatingPolicies {
				for _, addOn := range []string{"policies", "lock"} {
					w.Must(w.InstallComponent(w.Context(), addOn))
					w.Must(w.RemoveComponent(w.Context(), addOn))
				}
				return
			}
			for _, addOn := range []string{"policies", "lock"} {
				// The remaining objects of the add-on are installed, and removed again.
				for _, do := range []func(context.Context, string) error{w.InstallComponent, w.RemoveComponent} {
					err := do(w.Context(), addOn)
					if err == nil || !strings.Contains(err.Error(), `no matches for kind "MutatingAdmissionPolicy" in version "admissionregistration.k8s.io/v1"`) {
						t.Errorf("config/%s: %v", addOn, err)
					}
				}
			}
			left, err := w.Kubectl(w.Context(), "get", "validatingadmissionpolicies", "-o=name")
			if w.Must(err); strings.Contains(left, "gate-") {
				t.Errorf("these objects are left: %s", left)
			}
			reducedPolicies(w)
		})
	}
}

// reducedPolicies expects that config/policies-1.30 enforces permissions.
func reducedPolicies(w *harness.World) {
	w.Helper()
	g, named := w.ClosedGate("guarded"), w.ClosedGate("named")
	w.Eventually("the removed policies are no longer in force", func() error {
		return w.Merge(named, `{"metadata":{"annotations":{%q:"alice"}}}`, v1alpha1.OpenRequestedByAnnotation) // with a new value
	})
	w.Must(w.InstallComponent(w.Context(), "policies-1.30"))
	for _, role := range []string{"editor", "opener"} {
		for _, of := range []string{"viewer", role} { // an editor needs to read the gate
			_, err := w.Kubectl(w.Context(), "-n", w.Namespace, "create", "rolebinding", role+"-"+of, "--clusterrole=gate-"+of, "--user="+role)
			w.Must(err)
		}
	}
	now := func() string { return time.Now().UTC().Format(time.RFC3339Nano) }
	refused := func(user, cause string, args ...string) {
		w.Helper()
		w.Eventually(user+" is refused", func() error { // a policy is in force after a delay
			_, err := w.Person(user).Kubectl(w.Context(), w.Namespace, append(args, "--dry-run=server")...)
			if err == nil || !strings.Contains(err.Error(), cause) {
				return errors.Join(err, fmt.Errorf("not for %s", cause))
			}
			return nil
		})
	}
	open := v1alpha1.OpenRequestedAtAnnotation + "="
	refused("editor", "user editor may not open gate "+w.Namespace+"/guarded: a request to open needs the verb open", "annotate", "gate", "guarded", open+now())
	refused("opener", "user opener may not say who opens or closes gate "+w.Namespace+"/guarded", "annotate", "gate", "guarded", open+now(), v1alpha1.OpenRequestedByAnnotation+"=alice")
	w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, now()) // as an administrator
	refused("opener", "user opener may not say who opens or closes gate "+w.Namespace+"/guarded", "annotate", "gate", "guarded", v1alpha1.CloseRequestedByAnnotation+"=alice")
	refused("editor", "may not change the records of webhooks and requests of gate "+w.Namespace+"/guarded", "annotate", "gate", "guarded", v1alpha1.OpenReceivedAnnotation+"="+now())
	refused("opener", "may not", "patch", "gate", "guarded", "--type=merge", `-p={"spec":{"default":"opened"}}`)
	refused("editor", "user editor may not hold Kustomizations in namespace shop by gate "+w.Namespace+"/guarded: that needs the verb patch on kustomizations.kustomize.toolkit.fluxcd.io",
		"patch", "gate", "guarded", "--type=merge", `-p={"spec":{"targets":[{"kind":"Kustomization","name":"*","namespace":"shop"}]}}`)
	refused("opener", "may not open or close gate "+w.Namespace+"/named on behalf of another requester", "annotate", "gate", "named", open+now())
	refused("opener", "may not say who opens or closes gate "+w.Namespace+"/named", "annotate", "gate", "named", v1alpha1.OpenRequestedByAnnotation+"-")
	_, err := w.Person("opener").Kubectl(w.Context(), w.Namespace, "annotate", "gate", "named", open+now(), v1alpha1.OpenRequestedByAnnotation+"-")
	w.Must(err)
	_, err = w.Person("opener").Kubectl(w.Context(), w.Namespace, "annotate", "gate", "guarded", open+now())
	w.Must(err)
	w.Opened("guarded", "True")
	if w.Read(g); g.LatestRequest() == nil || g.LatestRequest().RequestedBy != "" {
		w.Errorf("the request is %+v", g.LatestRequest())
	}
	w.Create(&v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"},
	}})
	_, err = w.Kubectl(w.Context(), "-n", w.Namespace, "create", "rolebinding", "opener-sources", "--clusterrole=gated-source-editor", "--user=opener")
	w.Must(err)
	refused("opener", "user opener may not say who rolls back gated source "+w.Namespace+"/apps", "annotate", "gatedsource", "apps", v1alpha1.RollbackRequestedByAnnotation+"=alice")
	refused("opener", "user opener may not roll back", "annotate", "gatedsource", "apps", v1alpha1.RollbackRequestedAtAnnotation+"="+now())
	reducedPass(w)
	keepsUnhandledClose(w, refused)
}

// reducedPass expects that a request for a pass must list the Gates that hold the object. The API server does not stamp the list.
func reducedPass(w *harness.World) {
	w.Helper()
	app := w.Kustomization("passing")
	w.Create(app)
	w.ClosedGate("holding", v1alpha1.TargetReference{Kind: "Kustomization", Name: "passing"})
	allSuspended(w, []*unstructured.Unstructured{app}, true)
	_, err := w.Kubectl(w.Context(), "-n", w.Namespace, "create", "role", "patches", "--verb=get,patch", "--resource=kustomizations.kustomize.toolkit.fluxcd.io")
	w.Must(err)
	_, err = w.Kubectl(w.Context(), "-n", w.Namespace, "create", "rolebinding", "patches", "--role=patches", "--user=opener")
	w.Must(err)
	try := func(list string) error {
		args := []string{"annotate", "kustomization", "passing", "--dry-run=server", v1alpha1.PassRequestedAtAnnotation + "=" + time.Now().UTC().Format(time.RFC3339Nano)}
		if list != "" {
			args = append(args, v1alpha1.PassGatesAnnotation+"="+list)
		}
		_, err := w.Person("opener").Kubectl(w.Context(), w.Namespace, args...)
		return err
	}
	for _, list := range []string{"", "*", w.Namespace + "/guarded", w.Namespace + "/holding," + w.Namespace + "/guarded"} {
		w.Eventually("the list "+list+" is refused", func() error {
			if err := try(list); err == nil || !strings.Contains(err.Error(), "set pass.gate.fluxcd.io/gates to "+w.Namespace+"/holding") {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	}
	w.Must(try(w.Namespace + "/holding"))
}

// keepsUnhandledClose expects that an unhandled close request stays, because nothing records it when it is replaced. The controller does
// not handle requests on a Gate that is being deleted.
func keepsUnhandledClose(w *harness.World, refused func(user, cause string, args ...string)) {
	w.Helper()
	g := w.ClosedGate("leaving")
	w.Decided(g)
	admin := func(args ...string) {
		w.Helper()
		_, err := w.Kubectl(context.WithoutCancel(w.Context()), append([]string{"-n", w.Namespace}, args...)...)
		w.Must(err)
	}
	admin("patch", "gate", "leaving", "--type=json", `-p=[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/keep"}]`)
	w.Cleanup(func() { admin("patch", "gate", "leaving", "--type=merge", `-p={"metadata":{"finalizers":null}}`) })
	admin("delete", "gate", "leaving", "--wait=false")
	admin("create", "role", "closer", "--verb=get,patch,close", "--resource=gates.gating.toolkit.fluxcd.io")
	admin("create", "rolebinding", "closer", "--role=closer", "--user=closer")
	at := func() string {
		return v1alpha1.CloseRequestedAtAnnotation + "=" + time.Now().UTC().Format(time.RFC3339Nano)
	}
	admin("annotate", "gate", "leaving", at()+"/2h")
	cause := "user closer must wait: the gating-controller has not handled the close request for gate " + w.Namespace + "/leaving yet"
	refused("closer", cause, "annotate", "--overwrite", "gate", "leaving", at()+"/1s")
	refused("closer", cause, "annotate", "gate", "leaving", v1alpha1.CloseRequestedAtAnnotation+"-")
	for user, args := range map[string][]string{
		"editor": {"annotate", "gate", "leaving", v1alpha1.CloseRequestedAtAnnotation + "-", "--dry-run=server"}, // as Flux does
		"opener": {"annotate", "--overwrite", "gate", "leaving", at() + "/1s", "--dry-run=server"},
	} {
		_, err := w.Person(user).Kubectl(w.Context(), w.Namespace, args...)
		w.Must(err)
	}
}

func TestReducedPoliciesOmitOnlyStamps(t *testing.T) {
	list := func(name string) objects {
		all, err := rendered(filepath.Join(harness.Root(), "config", name))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	all, reduced := list("policies"), list("policies-1.30")
	for key, obj := range all {
		_, found := reduced[key]
		if stamp := strings.HasPrefix(obj.GetKind(), "Mutating") || slices.Contains([]string{"gate-exception-stamp", "gated-source-stamp", "gate-approval"}, obj.GetName()); found == stamp {
			t.Errorf("%s is in the reduced policies: %t", key, found)
		}
	}
	for key, obj := range reduced {
		if all[key] == nil && !slices.Contains([]string{"gate-request-by", "gate-pass-by", "gate-rollback-by"}, obj.GetName()) {
			t.Errorf("%s is not in the full policies", key)
		}
	}
}
