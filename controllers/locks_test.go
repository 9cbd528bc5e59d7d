package controllers_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/controllertest"
	"github.com/fluxcd/gating-controller/controllers/view"
)

// locking returns a world with GateLocks.
func locking(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.restart()
	return w
}

// restart drops all state in memory.
func (w *world) restart() {
	w.Helper()
	w.ResetState()
	w.Backoff = runtimectrl.GetDefaultRateLimiter()
	w.Locks = &controllertest.LiveLocks{World: w.World, Installed: true}
}

// lock returns the GateLock of a namespace. It is empty if it does not exist.
func (w *world) lock(namespace string) *lockv1alpha1.GateLock {
	w.Helper()
	obj := &lockv1alpha1.GateLock{}
	w.Must(client.IgnoreNotFound(cluster.Client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: lockv1alpha1.GateLockName}, obj)))
	return obj
}

func (w *world) expectLock(namespace string, want lockv1alpha1.GateLockSpec) {
	w.Helper()
	equal(w.TB, w.lock(namespace).Spec, want)
}

func TestClosedGateLocksItsTargets(t *testing.T) {
	w := locking(t)
	w.AllowCrossNamespaceRefs = true
	other, naming := w.NewNamespace(), w.NewNamespace()
	friend := inGit(naming, "friend", nil)
	w.Git(friend)
	w.name(friend, w.Namespace+"/production")
	in := func(namespace string) v1alpha1.TargetReference {
		ref := named("apps")
		ref.Namespace = namespace
		return ref
	}
	g := w.ClosedGate("production", named("apps"), all(), all("tier", "critical"), in("nowhere-to-be-found"),
		v1alpha1.TargetReference{Kind: "HelmRelease", Name: "*", Namespace: other, MatchLabels: map[string]string{"b": "1", "a": "2"}},
		v1alpha1.TargetReference{Kind: "Secret", Name: "*"},
		v1alpha1.TargetReference{Kind: "Kustomization", APIVersion: "example.com/v1", Name: "stranger"})
	w.Reconcile(g)
	gates := map[string]bool{key(g): true}
	mine := []string{key(g)}
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{Gates: gates,
		Targets: map[string][]string{"Kustomization/apps": mine, "Kustomization/*": mine},
		Labels:  map[string]lockv1alpha1.LabelLocks{"Kustomization/tier=critical": {{MatchLabels: map[string]string{"tier": "critical"}, Gates: mine}}},
	})
	w.expectLock(other, lockv1alpha1.GateLockSpec{Gates: gates,
		Labels: map[string]lockv1alpha1.LabelLocks{"HelmRelease/a=2": {{MatchLabels: map[string]string{"a": "2", "b": "1"}, Gates: mine}}},
	})
	w.expectLock(naming, lockv1alpha1.GateLockSpec{Gates: gates})
	w.restart()
	written := w.Writes.Count()
	if w.Reconcile(g); w.Writes.Count() != written {
		t.Error("nothing has changed, but a new process writes")
	}

	w.Open(g, start)
	w.Reconcile(g)
	unlocked := lockv1alpha1.GateLockSpec{Gates: map[string]bool{key(g): false}}
	for _, namespace := range w.AllNamespaces {
		w.expectLock(namespace, unlocked)
	}
	w.name(friend)
	w.Edit(g, func() { g.Spec.Targets = nil })
	w.Reconcile(g)
	w.expectLock(w.Namespace, unlocked)
	w.expectLock(other, lockv1alpha1.GateLockSpec{})
	w.expectLock(naming, lockv1alpha1.GateLockSpec{})

	// A namespace that the controller does not watch has no GateLock.
	w.Namespaces = map[string]ctrlcache.Config{w.Namespace: {}}
	w.restart()
	w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{in(other), named("apps")} })
	w.Close(g, w.In(hours(1)))
	w.Reconcile(g)
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{Gates: gates, Targets: map[string][]string{"Kustomization/apps": mine}})
	w.expectLock(other, lockv1alpha1.GateLockSpec{})

	// GateLocks are no longer installed, and are installed again after the Gate was deleted.
	w.Locks = &controllertest.LiveLocks{World: w.World}
	w.Writes.Take("")
	w.Open(g, w.In(hours(2)))
	w.Reconcile(g)
	expectNone(t, w.Writes.Take("GateLock"))
	w.Edit(g, func() { g.Finalizers = nil })
	w.Must(cluster.Client.Delete(w.Context(), g))
	w.restart()
	w.missing(w.Namespace, "production")
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{})
}

// Gates that change at the same time share a write of their GateLock.
func TestLockChangesBeforeTargets(t *testing.T) {
	w := locking(t)
	app := w.NewKustomization("apps", nil)
	g, others := w.ClosedGate("production", named("apps")), []*v1alpha1.Gate{w.ClosedGate("second", named("else")), w.ClosedGate("third", named("else"))}
	for _, other := range others {
		_, err := w.ReconcileGate(client.ObjectKeyFromObject(other))
		w.Must(err)
	}
	for _, step := range []func(){
		func() { w.Reconcile(g) },
		func() { w.Open(g, start); w.Reconcile(g) },
		func() { w.Close(g, w.In(hours(1))); w.Reconcile(g) },
		func() { w.Must(cluster.Client.Delete(w.Context(), g)); w.Reconcile(g) },
	} {
		w.Writes.Take("")
		step()
		var order []string
		for _, write := range w.Writes.Take("") {
			if strings.Contains(write, "GateLock") || strings.HasPrefix(write, "apply") {
				order = append(order, strings.Fields(write)[1])
			}
		}
		equal(t, order, []string{"GateLock/" + w.Namespace, "Kustomization/apps"})
	}
	w.ExpectReleased(app, g)
	both := keys(others)
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{Gates: map[string]bool{both[0]: true, both[1]: true}, Targets: map[string][]string{"Kustomization/else": both}})
}

// unreadableLocks is a LockReader that fails to read GateLocks.
type unreadableLocks struct{ view.LockReader }

// Lock implements LockReader.
func (unreadableLocks) Lock(context.Context, string) (*lockv1alpha1.GateLock, error) {
	return nil, errBroken
}

// A Gate that closes holds its targets without the lock. A Gate that opens releases nothing before its lock is released.
func TestUnwritableLock(t *testing.T) {
	w := locking(t)
	w.AllowCrossNamespaceRefs = true
	elsewhere := named("apps")
	elsewhere.Namespace = w.NewNamespace()
	app, there := w.NewKustomization("apps", nil), w.NewKustomizationIn(elsewhere.Namespace, "apps", nil)
	g := w.ClosedGate("production", named("apps"), elsewhere)
	fails := func(g *v1alpha1.Gate) {
		t.Helper()
		w.Writes.Before = failing("GateLock/" + w.Namespace)
		if result, err := w.Try(g); err == nil || result.RequeueAfter > time.Minute {
			t.Errorf("got %v, %v", result, err)
		}
	}
	locked := lockv1alpha1.GateLockSpec{Gates: map[string]bool{key(g): true}, Targets: map[string][]string{"Kustomization/apps": {key(g)}}}
	fails(g)
	w.ExpectHeld(app, g)
	equal(t, failuresOf(g), []string{"GateLock/closed WriteFailed"})
	w.Writes.Reset()
	w.Reconcile(g)
	w.expectLock(w.Namespace, locked)
	equal(t, len(g.Status.TargetFailures()), 0)

	w.Open(g, start)
	fails(g)
	w.ExpectHolder(app, g)
	w.ExpectReleased(there, g)
	w.Writes.Reset()
	readable := w.Locks
	w.Locks = unreadableLocks{readable}
	_, _ = w.Try(g)
	w.ExpectHolder(app, g)
	w.Locks = readable
	w.Reconcile(g)
	w.ExpectReleased(app, g)

	// The part of another Gate is in the same write, which fails.
	w.Close(g, w.In(hours(1)))
	w.Reconcile(g)
	w.expectLock(w.Namespace, locked)
	other := w.ClosedGate("other", named("else"))
	fails(other)
	w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{named("x")} })
	fails(g)
	w.ExpectHolder(app, g) // the lock still has it
	w.Writes.Reset()
	w.Reconcile(g)
	w.ExpectReleased(app, g)
	w.Must(cluster.Client.Delete(w.Context(), g))
	fails(g)
	w.Writes.Reset()
	w.Reconcile(g)
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{Gates: map[string]bool{key(other): true}, Targets: map[string][]string{"Kustomization/else": {key(other)}}})

	// Each write conflicts.
	w.Writes.Before = func(write string) error {
		if strings.Contains(write, "GateLock") {
			return conflict()
		}
		return nil
	}
	w.Edit(other, func() { other.Spec.Targets = []v1alpha1.TargetReference{named("apps")} })
	if _, err := w.Try(other); err == nil || !strings.Contains(err.Error(), "injected") {
		t.Errorf("got %v, want a conflict", err)
	}
	w.Writes.Reset()
	w.Reconcile(other)
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{Gates: map[string]bool{key(other): true}, Targets: map[string][]string{"Kustomization/apps": {key(other)}}})
}

func TestEditedLockIsRepaired(t *testing.T) {
	w := locking(t)
	w.NewKustomization("apps", nil)
	g, other := w.ClosedGate("production", named("apps")), w.ClosedGate("other", all())
	w.Reconcile(g)
	w.Reconcile(other)
	want := w.lock(w.Namespace).Spec
	for name, damage := range map[string]func(*lockv1alpha1.GateLock) error{
		"emptied": func(l *lockv1alpha1.GateLock) error {
			l.Spec = lockv1alpha1.GateLockSpec{}
			return cluster.Client.Update(w.Context(), l)
		},
		"deleted": func(l *lockv1alpha1.GateLock) error { return cluster.Client.Delete(w.Context(), l) },
		"opened": func(l *lockv1alpha1.GateLock) error {
			l.Spec.Gates[key(g)] = false
			return cluster.Client.Update(w.Context(), l)
		},
	} {
		w.Must(damage(w.lock(w.Namespace)))
		w.Reconcile(g)
		w.Reconcile(other)
		if got := w.lock(w.Namespace).Spec; len(got.Gates) != 2 {
			t.Errorf("%s: %+v", name, got)
		}
		w.expectLock(w.Namespace, want)
	}
	// Another client adds a Gate that does not exist between the read and the write.
	w.Writes.Before = once("update GateLock", func() error {
		l := w.lock(w.Namespace)
		l.Spec.Gates["ops/shard"] = true
		return cluster.Client.Update(w.Context(), l)
	})
	w.Open(g, start)
	w.Reconcile(g)
	equal(t, w.lock(w.Namespace).Spec.Gates, map[string]bool{key(g): false, key(other): true})
	// Another client deletes the GateLock between the read and the write.
	w.Writes.Before = once("update GateLock", func() error { return cluster.Client.Delete(w.Context(), w.lock(w.Namespace)) })
	w.Close(g, w.In(hours(1)))
	w.Reconcile(g)
	w.Reconcile(other)
	w.expectLock(w.Namespace, want)

	// The other Gate belongs to another shard.
	w.Client = withoutGate{w.Client, other.Name}
	w.restart()
	w.Open(g, w.In(hours(2)))
	w.Reconcile(g)
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{
		Gates: map[string]bool{key(g): false, key(other): true}, Targets: map[string][]string{"Kustomization/*": {key(other)}},
	})
}

// withoutGate is a cache without one Gate, as if that belonged to another shard.
type withoutGate struct {
	client.Client
	name string
}

// List implements client.Client.
func (c withoutGate) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	if gates, ok := list.(*v1alpha1.GateList); ok {
		gates.Items = slices.DeleteFunc(slices.Clone(gates.Items), func(g v1alpha1.Gate) bool { return g.Name == c.name })
	}
	return err
}

// Get implements client.Client.
func (c withoutGate) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*v1alpha1.Gate); ok && key.Name == c.name {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "gates"}, key.Name)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}
