package controllers_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/controllers/controllertest"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// renewed returns a world in which the first of two certificates is live and the second one is staged.
func renewed(t *testing.T) (w *world, g *v1alpha1.Gate, first, second map[string][]byte) {
	t.Helper()
	w = newWorld(t)
	web := w.activating("web")
	first, second = w.keyPair(0, 30*day, "key.der"), w.keyPair(0, 60*day)
	g = w.activationGate(0)
	for _, data := range []map[string][]byte{w.keyPair(0, 20*day), first} {
		w.stage(web, data)
		w.Reconcile(g)
	}
	w.stage(web, second)
	return w, g, first, second
}

// An activation never overwrites a value of the live Secret that it has not read, and never undoes a later activation. It is not repeated
// if a response is lost.
func TestConcurrentWritesToSecretsOfActivation(t *testing.T) {
	type data = map[string][]byte
	const toPrevious, toLive = "patch Secret/web-tls-previous", "patch Secret/web-tls"
	overwritten := func(w *world, _, _, theirs data) error {
		live := w.secret("web-tls")
		live.Data = theirs
		return cluster.Client.Update(w.Context(), live)
	}
	activatedMeanwhile := func(w *world, second, third, _ data) error { w.meanwhile(second, third); return nil }
	renewal := func(first, second, _, _ data) (live, previous data) { return second, first }
	overwrites := func(_, second, _, theirs data) (live, previous data) { return second, theirs }
	laterRenewal := func(_, second, third, _ data) (live, previous data) { return third, second }
	for name, tc := range map[string]struct {
		// write is the write before which another client writes, or whose response is lost.
		write string
		lost  bool
		do    func(w *world, second, third, theirs data) error
		want  func(first, second, third, theirs data) (live, previous data)
	}{
		"the response to the copy is lost":        {toPrevious, true, func(*world, data, data, data) error { return errBroken }, renewal},
		"the response to the activation is lost":  {toLive, true, func(*world, data, data, data) error { return errBroken }, renewal},
		"another value before the copy":           {toPrevious, false, overwritten, overwrites},
		"another value before the activation":     {toLive, false, overwritten, overwrites},
		"later activations before the activation": {toLive, false, activatedMeanwhile, laterRenewal},
		"later activations before the copy":       {toPrevious, false, activatedMeanwhile, laterRenewal},
		"later activations between two reads":     {"", false, activatedMeanwhile, laterRenewal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, g, first, second := renewed(t)
			third, theirs := w.keyPair(0, 90*day), w.keyPair(0, 40*day)
			done := false
			hook := func(write string) error {
				if write != tc.write || done {
					return nil
				}
				done = true
				return tc.do(w, second, third, theirs)
			}
			switch {
			case tc.write == "":
				w.APIReader = &afterRead{Reader: w.APIReader, do: func() { _ = hook("") }}
			case tc.lost:
				w.Writes.After = hook
			default:
				w.Writes.Before = hook
			}
			if _, err := w.Try(g); err != nil && !tc.lost {
				t.Error(err)
			}
			w.Reconcile(g)
			live, previous := tc.want(first, second, third, theirs)
			w.has("web-tls", live)
			w.has("web-tls-previous", previous)
			if !done {
				t.Error("no write was disturbed")
			}
		})
	}
	t.Run("a live Secret appears", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		data, theirs := w.keyPair(0, 60*day), w.keyPair(0, 30*day)
		w.stage(w.activating("web"), data)
		g := w.activationGate(0)
		w.Writes.Before = once("create Secret/web-tls", func() error { w.byHand("web-tls", theirs); return nil })
		w.Reconcile(g)
		w.has("web-tls", data)
		w.has("web-tls-previous", theirs)
	})
}

// meanwhile issues certificates and activates each of them, as another process would.
func (w *world) meanwhile(issued ...map[string][]byte) {
	w.Helper()
	web := w.readCertificate("web")
	other := *w.Gating
	other.Client, other.APIReader, other.EventRecorder = controllertest.ListsIndexed{WithWatch: cluster.Client}, cluster.Client, &recorder{}
	for _, data := range issued {
		w.stage(web, data)
		_, err := other.NewReconcilers(controllers.NewState(), controllertest.NewQueues(w.TB)).Targets.Reconcile(w.Context(), target.KeyOf(web))
		w.Must(err)
	}
}

// afterRead calls do once, after a Secret was read.
type afterRead struct {
	client.Reader
	do func()
}

func (r *afterRead) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, opts...)
	if do := r.do; do != nil {
		if _, ok := obj.(*corev1.Secret); ok {
			r.do = nil
			do()
		}
	}
	return err
}

// asServiceAccount gives the world's controller only the permissions of the roles in files. The returned function adds those of more files,
// in a namespace or, if namespace is empty, in all namespaces.
func (w *world) asServiceAccount(files ...string) (bind func(namespace string, files ...string)) {
	w.Helper()
	user := "system:serviceaccount:" + w.Namespace + ":gating-controller"
	bind = func(namespace string, files ...string) {
		for _, file := range files {
			content, err := os.ReadFile(filepath.Join(harness.Root(), file))
			w.Must(err)
			role := &rbacv1.ClusterRole{}
			w.Must(yaml.UnmarshalStrict(content, role))
			role.Name = w.Namespace + "-" + filepath.Base(filepath.Dir(file))
			w.Must(client.IgnoreAlreadyExists(cluster.Client.Create(w.Context(), role)))
			subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
			meta := metav1.ObjectMeta{Name: role.Name, Namespace: namespace}
			var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
			if namespace != "" {
				binding = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
			}
			w.Must(cluster.Client.Create(w.Context(), binding))
		}
	}
	bind("", files...)
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	scheme, err := harness.Scheme()
	w.Must(err)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	w.Must(err)
	w.Client, w.APIReader = w.Writes.Client(controllertest.WaitForCache(c)), c
	return bind
}

func TestActivationWithoutPermissionNamesAddOn(t *testing.T) {
	for name, everywhere := range map[string]bool{"everywhere": true, "in a namespace": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			bind := w.asServiceAccount("config/rbac/role.yaml")
			web, first, second := w.activating("web"), w.keyPair(0, 30*day), w.keyPair(0, 60*day)
			w.stage(web, first)
			g := w.activationGate(0)
			w.Reconcile(g)
			w.has("web-tls", nil)
			w.expectActivated(g, "False ActivationFailed: Not activated into Secret 'web-tls': the controller lacks the permission, install config/activation: ")
			if events := w.Events.Take("Warning Certificate/web"); len(events) != 1 {
				t.Errorf("events %q", events)
			}

			namespace := w.Namespace
			if everywhere {
				namespace = ""
			}
			bind(namespace, "config/activation/role.yaml")
			soonPermitted(t, w, g)
			w.has("web-tls", first)
			w.stage(web, second)
			w.Reconcile(g)
			w.has("web-tls", second)
			w.has("web-tls-previous", first)
			w.expectActivated(g, "True Activated: ")
			if err := w.List(w.Context(), &corev1.SecretList{}, client.InNamespace(w.Namespace)); err == nil {
				t.Error("the controller may list Secrets")
			}
		})
	}
}

// soonPermitted reconciles until a new binding takes effect in the API server.
func soonPermitted(t *testing.T, w *world, g *v1alpha1.Gate) {
	t.Helper()
	soon(t, "the certificate is activated", func() bool {
		w.Reconcile(g)
		return len(g.Status.TargetFailures()) == 0
	})
}

// noReads is a client whose cache has no Secrets.
type noReads struct{ client.Client }

func (c noReads) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.Secret); ok {
		return errors.New("a Secret is read by way of the cache")
	}
	return c.Client.Get(ctx, key, obj, opts...)
}
