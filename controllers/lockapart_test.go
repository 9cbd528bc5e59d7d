package controllers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// divided is a world with a Gate that has a target in its own namespace and one in another. The
// GateLock of one of the two is in trouble.
type divided struct {
	*world
	gate *v1alpha1.Gate
	// bad is the target in the namespace that is in trouble, good the other one.
	bad, good *target.Object
}

// bothWays runs a test with trouble in the namespace of the Gate, and with trouble in the other.
func bothWays(t *testing.T, spec v1alpha1.GateSpec, test func(a *divided)) {
	t.Helper()
	for name, own := range map[string]bool{"trouble in its own namespace": true, "trouble in another namespace": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := reaching(t)
			a := &divided{world: w, bad: w.kustomization("one", nil), good: w.kustomizationIn(w.NewNamespace(), "two", nil)}
			spec := *spec.DeepCopy()
			for _, app := range []*target.Object{a.bad, a.good} {
				ref := named(app.GetName())
				ref.Namespace = app.GetNamespace()
				spec.Targets = append(spec.Targets, ref)
			}
			if !own {
				a.bad, a.good = a.good, a.bad
			}
			a.restart()
			a.gate = w.Gate("production", spec)
			test(a)
		})
	}
}

// isLockWrite returns whether a request writes the GateLock of a namespace.
func isLockWrite(r *http.Request, namespace string) bool {
	return r.Method != http.MethodGet && strings.Contains(r.URL.Path+"/", "/namespaces/"+namespace+"/gatelocks/")
}

// jammed has all writes of the GateLock that is in trouble stuck from now on.
func (a *divided) jammed() jam {
	a.Helper()
	at := newJam()
	a.through(at.on(cluster.Config, func(r *http.Request) bool { return isLockWrite(r, a.bad.GetNamespace()) }))
	return at
}

// through has the reconciler write by another configuration. What it knows stays.
func (w *world) through(config *rest.Config) {
	w.Helper()
	scheme, err := harness.Scheme()
	w.Must(err)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	w.Must(err)
	w.Client = w.writes.client(shared.client(c))
	w.Locks.Client = w.Client
}

// goes reconciles a Gate, and returns a channel that is closed when that ends.
func (w *world) goes(g *v1alpha1.Gate) <-chan struct{} {
	return beside(w.TB, func() {
		if _, err := w.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)}); err != nil {
			w.Error(err)
		}
	})
}

// changes are what a Gate can be told, and what its targets are then.
var changes = map[string]struct {
	// closed is what the Gate is before.
	closed bool
	change func(w *world, g *v1alpha1.Gate)
	held   bool
	// gone says that the Gate is no more.
	gone bool
}{
	"it closes": {change: func(w *world, g *v1alpha1.Gate) { w.close(g, start) }, held: true},
	"it opens":  {closed: true, change: func(w *world, g *v1alpha1.Gate) { w.open(g, start) }},
	"it opens at a pace": {closed: true, change: func(w *world, g *v1alpha1.Gate) {
		w.Edit(g, func() { g.Spec.Release = &v1alpha1.ReleasePolicy{PerMinute: 600} })
		w.open(g, start)
	}},
	"it names nothing any more": {closed: true, change: func(w *world, g *v1alpha1.Gate) {
		w.Edit(g, func() { g.Spec.Targets = nil })
	}},
	"it is deleted": {closed: true, change: func(w *world, g *v1alpha1.Gate) { w.Must(cluster.Client.Delete(w.Context(), g)) }, gone: true},
	"it is deleted by force": {closed: true, change: func(w *world, g *v1alpha1.Gate) {
		w.Edit(g, func() { g.Finalizers = nil })
		w.Must(cluster.Client.Delete(w.Context(), g))
	}, gone: true},
}

func stateOf(closed bool) v1alpha1.State {
	if closed {
		return v1alpha1.StateClosed
	}
	return v1alpha1.StateOpened
}

func TestALockThatIsRefusedInOneNamespaceStopsNothingInAnother(t *testing.T) {
	for name, tc := range changes {
		t.Run(name, func(t *testing.T) {
			bothWays(t, v1alpha1.GateSpec{Default: stateOf(tc.closed)}, func(a *divided) {
				proxy, err := cluster.StartFaultProxy(a.Context(), a.Namespace, 1, "controller-of-"+a.Namespace, "system:masters")
				a.Must(err)
				defer func() { _ = proxy.Stop() }()
				config, err := clientcmd.BuildConfigFromFlags("", proxy.Kubeconfig)
				a.Must(err)
				a.reconcile(a.gate)
				a.through(config)
				tc.change(a.world, a.gate)
				proxy.RefuseWrites("namespaces/" + a.bad.GetNamespace() + "/gatelocks")
				if _, err := a.try(a.gate); err == nil || !strings.Contains(err.Error(), "GateLock "+a.bad.GetNamespace()+"/closed: ") {
					a.Errorf("the error is %v", err)
				}
				if a.suspended(a.good) != tc.held || !a.suspended(a.bad) {
					a.Errorf("held are %t, where the lock is refused %t", a.suspended(a.good), a.suspended(a.bad))
				}
				if !tc.gone {
					a.expectLockFailure(tc.held)
				}
				proxy.RefuseWrites("")
				a.in(time.Minute)
				a.reconcile(a.gate)
				a.expectSuspended(tc.held)
			})
		})
	}
}

// expectLockFailure checks what the Gate tells of the GateLock that is in trouble.
func (a *divided) expectLockFailure(held bool) {
	a.Helper()
	if f := a.gate.Status.Failures; len(f) != 1 || f[0].Kind != v1alpha1.GateLockKind || f[0].Namespace != a.bad.GetNamespace() ||
		f[0].Name != v1alpha1.GateLockName || f[0].Reason != v1alpha1.WriteFailedReason {
		a.Errorf("failures %+v", f)
	}
	want := v1alpha1.TargetCounts{Total: 2, Held: 1, Failed: 1}
	if held {
		want.Held = 2
	}
	if len(a.gate.Spec.Targets) == 0 {
		want = v1alpha1.TargetCounts{Failed: 1}
	}
	equal(a.TB, *a.gate.Status.Targets, want)
}

func TestWhileALockIsStuckInOneNamespaceTheTargetsInAnotherGoOn(t *testing.T) {
	for name, tc := range changes {
		t.Run(name, func(t *testing.T) {
			bothWays(t, v1alpha1.GateSpec{Default: stateOf(tc.closed)}, func(a *divided) {
				a.reconcile(a.gate)
				tc.change(a.world, a.gate)
				at := a.jammed()
				defer at.end()
				done := a.goes(a.gate)
				<-at.arrived
				if name != "it opens at a pace" { // then it depends on all whose turn it is
					soon(a.TB, "the target is settled where the lock is not stuck", func() bool { return a.suspended(a.good) == tc.held })
				}
				// The lock comes first.
				if a.suspended(a.bad) != tc.closed {
					a.Errorf("where the lock is stuck, the target is held: %t", !tc.closed)
				}
				at.end()
				<-done
				a.in(time.Minute)
				a.reconcile(a.gate)
				a.expectSuspended(tc.held)
			})
		})
	}
}

func (a *divided) expectSuspended(held bool) {
	a.Helper()
	for _, app := range []*target.Object{a.bad, a.good} {
		if a.suspended(app) != held {
			a.Errorf("%s is held: %t", app.GetName(), !held)
		}
	}
}

// It opens, and is to close again before its lock is open everywhere.
func TestAStuckLockDoesNotKeepAGateFromChangingItsMind(t *testing.T) {
	bothWays(t, v1alpha1.GateSpec{Default: v1alpha1.StateClosed}, func(a *divided) {
		a.reconcile(a.gate)
		a.open(a.gate, start)
		at := a.jammed()
		defer at.end()
		done := a.goes(a.gate)
		soon(a.TB, "it opens where the lock is not stuck", func() bool { return !a.suspended(a.good) })
		// In this order: while the clock stands still, nobody looks a second time.
		a.close(a.gate, start.Add(time.Minute))
		a.in(time.Minute)
		awaitEnd(a.TB, "the Gate", done)
		done = a.goes(a.gate)
		soon(a.TB, "it closes where the lock is not stuck", func() bool { return a.suspended(a.good) })
		at.end()
		<-done
		a.reconcile(a.gate)
		for _, app := range []*target.Object{a.bad, a.good} {
			a.expectHeld(app, a.gate)
			a.expectLock(app.GetNamespace(), v1alpha1.GateLockSpec{
				Gates:   map[string]bool{key(a.gate): true},
				Targets: map[string][]string{"Kustomization/" + app.GetName(): {key(a.gate)}},
			})
		}
	})
}

// What is to be changed in a GateLock is none of the business of those who change nothing in it.
func TestWhoChangesNothingInALockDoesNotWaitForThoseWhoDo(t *testing.T) {
	nothing := func(*world, *v1alpha1.Gate) {}
	for name, tc := range map[string]struct {
		// before is what happens before the write is stuck, then what does while it is.
		before, then func(w *world, g *v1alpha1.Gate)
	}{
		"as it was written last": {nothing, nothing},
		// Who makes the change has read it before, so that nobody knows what it is now.
		"somebody else writes it": {nothing, func(w *world, _ *v1alpha1.Gate) {
			l := w.lock(w.Namespace)
			l.Spec.Gates["some/other"] = true
			w.Must(cluster.Client.Update(w.Context(), l))
		}},
		"it could not be written": {func(w *world, g *v1alpha1.Gate) {
			w.writes.before = failing("GateLock")
			defer w.writes.heal()
			w.Edit(g, func() { g.Spec.Targets = append(g.Spec.Targets, named("else")) })
			if _, err := w.try(g); err == nil {
				w.Error("no error")
			}
		}, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			other := w.NewNamespace()
			app := w.kustomizationIn(other, "apps", nil)
			w.restart()
			g, neighbour := w.ClosedGate("production", named("apps")), w.gateIn(other, "production", v1alpha1.GateSpec{
				Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{named("apps")},
			})
			w.reconcile(g)
			w.reconcile(neighbour)
			tc.before(w, g)

			a := &divided{world: w, bad: inGit(w.Namespace, "apps", nil)}
			at := a.jammed()
			defer at.end()
			w.open(g, start)
			done := w.goes(g)
			<-at.arrived
			tc.then(w, g)
			goesOn(t, "a Gate of another namespace", func() {
				w.open(neighbour, start)
				w.reconcile(neighbour)
				w.expectReleased(app, neighbour)
				w.close(neighbour, start.Add(time.Second))
				w.in(time.Second)
				w.reconcile(neighbour)
				w.expectHeld(app, neighbour)
				w.Must(cluster.Client.Delete(w.Context(), neighbour))
				w.reconcile(neighbour)
			})
			if n := len(w.Locks.books[w.Namespace].waiting); n > 0 {
				t.Errorf("%d changes are queued that change nothing", n)
			}
			at.end()
			<-done
		})
	}
}

// workers is how many Gates are reconciled at the same time by startManager.
const workers = 4

// A worker that waits is one that other Gates lack.
func TestManyGatesWithAStuckLockKeepNobodyWaiting(t *testing.T) {
	w := newWorld(t)
	other := w.NewNamespace()
	at := newJam()
	defer at.end()
	config := at.on(cluster.Config, func(r *http.Request) bool { return isLockWrite(r, w.Namespace) })
	startManager(t, &harness.ControlPlane{Config: config}, func(r *GateReconciler) {
		r.Namespaces = map[string]ctrlcache.Config{w.Namespace: {}, other: {}}
	})
	here, there := w.kustomization("apps", nil), w.kustomizationIn(other, "apps", nil)
	var gates []*v1alpha1.Gate
	for i := range 3 * workers {
		gates = append(gates, w.ClosedGate(fmt.Sprint("gate-", i), named("apps")))
	}
	<-at.arrived
	neighbour := w.gateIn(other, "neighbour", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{named("apps")}})
	w.soonHeld(there, neighbour)
	w.open(neighbour, time.Now())
	w.soonFree(there)

	// Where the lock is stuck, the target is held all the same, and it is told why it is not locked.
	w.soonHeld(here, gates...)
	w.soonStatus(gates[0], "it tells that the lock is not written", func(g *v1alpha1.Gate) bool {
		return slices.Equal(failuresOf(g), []string{"GateLock/closed WriteFailed"}) && strings.Contains(g.Status.Failures[0].Message, errLate.Error())
	})
	at.end()
	for _, g := range gates {
		w.soonStatus(g, g.Name+" has locked what it holds", func(g *v1alpha1.Gate) bool { return len(g.Status.Failures) == 0 })
	}
	equal(t, len(w.lock(w.Namespace).Spec.Gates), len(gates))
}

func TestALockThatIsLate(t *testing.T) {
	w := locking(t)
	app := w.kustomization("apps", nil)
	g, other := w.ClosedGate("production", named("apps")), w.ClosedGate("other", named("else"))
	w.reconcile(g)
	w.reconcile(other)

	at := newJam()
	defer at.end()
	w.writes.before = func(write string) error {
		if strings.Contains(write, "GateLock") {
			at.wait(w.Context())
			return errBroken
		}
		return nil
	}
	w.Locks.Patience = time.Millisecond
	late := func(g *v1alpha1.Gate, want string) {
		t.Helper()
		if _, err := w.try(g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	w.open(g, start)
	late(g, errLate.Error())
	w.expectHeld(app, g) // it is locked still

	// It is known by now that to wait is no use.
	w.Locks.Patience = time.Hour
	goesOn(t, "another Gate of the namespace", func() {
		w.open(other, start)
		late(other, errLate.Error())
		w.close(g, start.Add(time.Second))
		w.in(time.Second)
		late(g, errLate.Error())
		w.open(g, start.Add(2*time.Second))
		w.in(2 * time.Second)
		late(g, errLate.Error())
	})
	w.expectHeld(app, g)

	// The write that was late fails.
	at.end()
	soon(t, "it tells why the lock is late", func() bool {
		_, err := w.try(g)
		return err != nil && strings.Contains(err.Error(), errBroken.Error())
	})
	w.expectHeld(app, g)
	w.writes.heal()
	soon(t, "the lock is open", func() bool {
		_, err := w.try(g)
		return err == nil
	})
	w.expectReleased(app, g)
	w.reconcile(other)
	w.expectLock(w.Namespace, v1alpha1.GateLockSpec{Gates: map[string]bool{key(g): false, key(other): false}})
}

// Nobody knows whether it was made until the lock is read again.
func TestAChangeOfALockWhoseAnswerWasLostIsTakenBack(t *testing.T) {
	w := newWorld(t)
	w.restart()
	locked, open := map[string]lock.Share{w.Namespace: lock.NewShare(true)}, map[string]lock.Share{w.Namespace: lock.NewShare(false)}
	w.Must(w.put(w.Locks, "ops/mine", locked))
	stale := w.Locks
	known := metav1.PartialObjectMetadata{ObjectMeta: w.lock(w.Namespace).ObjectMeta}
	w.writes.after = once("update GateLock", func() error { return errBroken })
	if err := w.put(stale, "ops/mine", open); err == nil {
		t.Fatal("no error")
	}
	stale.Client = &listed{stale.Client, []metav1.PartialObjectMetadata{known}} // it has not seen it
	w.Must(w.put(stale, "ops/mine", locked))
	equal(t, w.lock(w.Namespace).Spec.Gates, map[string]bool{"ops/mine": true})
}
