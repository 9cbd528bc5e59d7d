package controllers_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/controllers/controllertest"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const policies = "imagepolicies.image.toolkit.fluxcd.io"

// imagePolicy creates a target of a kind that is installed and removed during this test.
func (w *world) imagePolicy(name, version string) *unstructured.Unstructured {
	w.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"imageRepositoryRef": map[string]any{"name": "podinfo"},
		"policy":             map[string]any{"semver": map[string]any{"range": "*"}},
	}}}
	obj.SetAPIVersion("image.toolkit.fluxcd.io/" + version)
	obj.SetKind("ImagePolicy")
	obj.SetNamespace(w.Namespace)
	obj.SetName(name)
	w.Must(cluster.Client.Create(w.Context(), obj))
	return obj
}

func (w *world) soonSuspended(obj *unstructured.Unstructured, want bool) {
	w.Helper()
	soon(w.TB, obj.GetName()+" is suspended as expected", func() bool {
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj))
		got, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
		return got == want
	})
}

func installPolicies(t *testing.T) {
	t.Helper()
	_, err := envtest.InstallCRDs(cluster.Config, envtest.CRDInstallOptions{Paths: []string{harness.CRDPath("image-reflector-controller")}})
	if err != nil {
		t.Fatal(err)
	}
	controllertest.FollowPolicies(context.WithoutCancel(t.Context()), t)
}

func removePolicies(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // it is also called during cleanup
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName(policies)
	if err := cluster.Client.Delete(ctx, crd); err != nil {
		t.Fatal(err)
	}
	soon(t, "the definition is gone", func() bool {
		return apierrors.IsNotFound(cluster.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd))
	})
	soon(t, "the kind is no longer served", func() bool {
		list := newTargetList(schema.GroupVersionKind{Group: "image.toolkit.fluxcd.io", Version: "v1", Kind: "ImagePolicy"})
		return cluster.Client.List(ctx, list) != nil
	})
	controllertest.FollowPolicies(ctx, t)
}

// serveNextVersion makes the API server serve v2 of the kind instead of v1.
func serveNextVersion(t *testing.T, w *world) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = policies
	w.Must(w.Rewrite(crd, func() error {
		i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v1" })
		next := *crd.Spec.Versions[i].DeepCopy()
		next.Name, next.Storage = "v2", false
		crd.Spec.Versions[i].Served = false
		crd.Spec.Versions = append(crd.Spec.Versions, next)
		return cluster.Client.Update(w.Context(), crd)
	}))
	soon(t, "the new version is served", func() bool {
		list := newTargetList(schema.GroupVersionKind{Group: "image.toolkit.fluxcd.io", Version: "v2", Kind: "ImagePolicy"})
		return cluster.Client.List(w.Context(), list) == nil
	})
	controllertest.FollowPolicies(w.Context(), t)
}

func TestKindIsInstalledRemovedAndReinstalled(t *testing.T) {
	removePolicies(t)
	t.Cleanup(func() { installPolicies(t) })
	startManager(t, cluster)
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"), v1alpha1.TargetReference{Kind: "ImagePolicy", Name: "*"})
	missing := func(g *v1alpha1.Gate) bool { return slices.Equal(failuresOf(g), []string{"ImagePolicy/* CRDNotFound"}) }
	w.soonHeld(app, g)
	w.soonStatus(g, "the missing kind is reported", missing)

	for _, round := range []string{"first", "second"} {
		installPolicies(t)
		w.soonStatus(g, "the kind is no longer missing", func(g *v1alpha1.Gate) bool { return len(g.Status.TargetFailures()) == 0 })
		policy := w.imagePolicy(round, "v1")
		w.soonSuspended(policy, true)
		w.Open(g, time.Now())
		w.soonSuspended(policy, false)
		w.Close(g, time.Now())
		w.soonSuspended(policy, true)
		if round == "second" {
			serveNextVersion(t, w)
			w.soonSuspended(w.imagePolicy("third", "v2"), true)
			w.soonStatus(g, "both are held", func(g *v1alpha1.Gate) bool { return g.Status.Targets.Held == 3 })
		}
		removePolicies(t)
		w.soonStatus(g, "the kind is missing again", missing)
		w.soonHeld(app, g)
	}
}

// Until the definitions of all kinds have been read, the number of targets is unknown, and no kind is reported as missing.
func TestObjectsWaitWhileDefinitionIsRead(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", all())
	w.Reconcile(g)
	w.Read(g)
	before := g.DeepCopy()

	slow, read := &harness.ControlPlane{Config: rest.CopyConfig(cluster.Config)}, make(chan struct{})
	slow.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+view.DefinitionFor(schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}) {
				<-read
			}
			return next.RoundTrip(req)
		})
	})
	finish := sync.OnceFunc(func() { close(read) })
	t.Cleanup(finish)
	startManager(t, slow, func(r *controllers.Gating) { r.Namespaces = map[string]ctrlcache.Config{w.Namespace: {}} })
	// Once other Gates have been decided on, this one has been reconciled, too.
	for _, name := range []string{"second", "third", "fourth", "fifth", "sixth"} {
		other := w.Gate(name, v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
		w.soonStatus(other, "another gate is decided on", func(g *v1alpha1.Gate) bool { return conditions.IsTrue(g, v1alpha1.OpenedCondition) })
	}
	w.Read(g)
	equal(t, g.Status, before.Status)
	finish()
	w.Open(g, time.Now())
	w.soonFree(app)
	w.soonStatus(g, "the target is counted", func(g *v1alpha1.Gate) bool { return g.Status.Targets.Total == 1 && g.Status.Targets.Held == 0 })
}

// roundTrip implements http.RoundTripper with a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
