package shards

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// lockInstalled is true while config/lock is installed.
var lockInstalled bool

// installLock installs config/lock for the duration of a test.
func installLock(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	w.Must(cluster.InstallComponent(w.Context(), "lock"))
	t.Cleanup(func() {
		lockInstalled = false
		if err := cluster.RemoveComponent(context.WithoutCancel(w.Context()), "lock"); err != nil {
			t.Error(err)
		}
	})
	for _, s := range []*shard{rest, one} {
		w.gate(s, "lock-"+s.label+"x", v1alpha1.StateClosed, "*")
	}
	w.Eventually("both shards have written the lock", func() error {
		if locked := w.lock(w.Namespace); len(locked) != 2 {
			return fmt.Errorf("the lock has %v", locked)
		}
		return nil
	})
	lockInstalled = true
}

// lock returns the Gates in the GateLock of a namespace.
func (w *world) lock(namespace string) map[string]bool {
	w.Helper()
	obj := &lockv1alpha1.GateLock{}
	err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: lockv1alpha1.GateLockName}, obj)
	w.Must(client.IgnoreNotFound(err))
	return obj.Spec.Gates
}

func TestShards(t *testing.T) { all(t) }

func TestShardsWithTheLock(t *testing.T) {
	installLock(t)
	all(t)
}

func all(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"the failover of one shard does not affect the other":                       failsOver,
		"a gate that is deleted while its shard is down releases its targets later": deletedWhileDown,
		"the work of one shard causes no requests by the other":                     costsNothing,
	} {
		t.Run(name, test)
	}
	for name, test := range map[string]func(*testing.T){
		"a target of gates of both shards is held until both are open":         heldByBoth,
		"a gate that moves keeps its holds and its request":                    moves,
		"a moved gate is removed from all locks when it is deleted":            movesAndIsDeleted,
		"a target that names a gate of one shard is ignored by the other":      namesAGate,
		"a gated source that names a gate of another shard follows it":         followsAcross,
		"a target that names no gate is held by both shards without conflicts": namesNoGate,
		"a gate with mode Audit counts the targets that the other shard holds": auditsBeside,
		"a request for some targets opens only the gate of its shard":          opensForSome,
		"many gates of one namespace close at once":                            closeAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func heldByBoth(t *testing.T) {
	w := newWorld(t)
	apps := []*unstructured.Unstructured{w.app("a"), w.app("b"), w.app("c")}
	a, b := w.gate(rest, "a", v1alpha1.StateClosed, "*"), w.gate(one, "b", v1alpha1.StateClosed, "*")
	w.has(rest, a)
	w.has(one, b)
	for _, app := range apps {
		w.is(app, a, b)
	}
	w.ready(a, b)
	w.settled()

	written := w.Record(kustomizations)
	w.resume(apps[0])
	w.is(apps[0], a, b)
	w.open(a)
	w.ready(a)
	for _, app := range apps {
		w.is(app, b)
	}
	w.settled()
	for _, u := range written.All() {
		if v := versionOf(u); !v.suspended && (lockInstalled || u.GetName() != apps[0].GetName()) {
			w.Errorf("%s was released: %+v", u.GetName(), v)
		}
	}
	w.open(b)
	w.ready(b)
	for _, app := range apps {
		w.is(app)
	}
	w.settled()
}

func moves(t *testing.T) {
	w := newWorld(t)
	app := w.app("apps")
	g := w.gate(rest, "production", v1alpha1.StateOpened, "*")
	w.ready(g)
	w.EditGate(g, func(g *v1alpha1.Gate) {
		g.Annotations = map[string]string{v1alpha1.CloseRequestedAtAnnotation: time.Now().Format(time.RFC3339Nano)}
	})
	w.is(app, g)
	w.ready(g)
	// Flux removes the annotation if it is not in Git.
	w.EditGate(g, func(g *v1alpha1.Gate) { g.Annotations = nil })
	w.settled()
	requested, written := g.Status.RequestedAt, w.Record(kustomizations)
	if requested == nil {
		t.Fatal("the request is not in the status")
	}
	for _, to := range []*shard{one, rest, one} {
		w.move(g, to)
		w.has(to, g)
		w.settled()
		w.ready(g)
		if g.Status.RequestedAt == nil || !g.Status.RequestedAt.Equal(requested) {
			t.Errorf("the request of %v is %v", requested, g.Status.RequestedAt)
		}
	}
	if all := written.All(); len(all) != 0 {
		t.Errorf("the target was written %d times", len(all))
	}
	w.EditGate(g, func(g *v1alpha1.Gate) {
		g.Annotations = map[string]string{v1alpha1.OpenRequestedAtAnnotation: time.Now().Format(time.RFC3339Nano)}
	})
	w.is(app)
}

// The GateLock of the other namespace is created after the new shard of the Gate has listed GateLocks, and the Gate no longer governs any
// object there.
func movesAndIsDeleted(t *testing.T) {
	w := newWorld(t)
	before := w.gate(rest, "before", v1alpha1.StateClosed)
	w.ready(before)
	there := w.NewNamespace()
	g := w.gate(one, "production", v1alpha1.StateClosed)
	w.EditGate(g, func(g *v1alpha1.Gate) {
		g.Spec.Targets = []v1alpha1.TargetReference{{Kind: kustomizations.Kind, Name: "*", Namespace: there}}
	})
	w.ready(g)
	w.has(one, g)
	w.EditGate(g, func(g *v1alpha1.Gate) { g.Labels, g.Spec.Targets = rest.labels(), nil })
	w.has(rest, g)
	w.Must(w.Client.Delete(w.Context(), g))
	w.gone(g)
	for _, namespace := range []string{w.Namespace, there} {
		if !lockInstalled {
			break
		}
		if _, ok := w.lock(namespace)[g.Namespace+"/"+g.Name]; ok {
			t.Errorf("the lock of %s still has the gate", namespace)
		}
	}
	w.Namespace = there
	w.is(w.app("apps"))
}

func (w *world) gone(g *v1alpha1.Gate) {
	w.Helper()
	w.Eventually("gate "+g.Name+" is deleted", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g.DeepCopy()); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("the gate still exists"))
		}
		return nil
	})
}

func namesAGate(t *testing.T) {
	w := newWorld(t)
	g := w.gate(one, "named", v1alpha1.StateClosed)
	w.ready(g)
	app := w.app("apps", v1alpha1.GatesAnnotation, "named")
	w.is(app, g)
	w.settled()
	w.is(app, g)
	if approved := conditionOf(app); approved != v1alpha1.GateClosedReason {
		t.Errorf("the reason is %s", approved)
	}
	w.open(g)
	w.is(app)
	w.settled()
}

// conditionOf returns the reason and message of the condition Approved of a target.
func conditionOf(app *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(app.Object, "status", "conditions")
	for _, c := range list {
		if c, ok := c.(map[string]any); ok && c["type"] == v1alpha1.ApprovedCondition {
			return fmt.Sprint(c["reason"])
		}
	}
	return ""
}

func namesNoGate(t *testing.T) {
	w := newWorld(t)
	app := w.app("apps", v1alpha1.GatesAnnotation, "later")
	later := &v1alpha1.Gate{}
	later.Namespace, later.Name = w.Namespace, "later"
	w.is(app, later)
	w.Eventually("the target reports it", func() error {
		w.is(app, later)
		if approved := conditionOf(app); approved != v1alpha1.GateNotFoundReason {
			return fmt.Errorf("the reason is %q", approved)
		}
		return nil
	})
	w.settled()
	later = w.gate(one, "later", v1alpha1.StateClosed)
	w.ready(later)
	w.is(app, later)
	w.settled()
	w.open(later)
	w.is(app)
	w.settled()
}

func failsOver(t *testing.T) {
	w := newWorld(t)
	w.refill(one)
	app, other, late := w.app("apps"), w.app("other"), w.app("late")
	a, b := w.gate(rest, "a", v1alpha1.StateClosed, "apps"), w.gate(one, "b", v1alpha1.StateClosed, "other")
	opened := w.gate(one, "opened", v1alpha1.StateOpened, "late")
	w.is(app, a)
	w.is(other, b)
	w.ready(a, b, opened)
	_, handovers, err := rest.heldBy(w.Context())
	w.Must(err)
	held, _, err := one.heldBy(w.Context())
	w.Must(err)

	written := w.Record(kustomizations)
	dead := w.leads(one)
	w.Must(dead.Kill())
	w.close(opened)
	w.open(a)
	w.is(app)
	if now, _, err := one.heldBy(w.Context()); err != nil || now != held {
		t.Errorf("there is already a leader: %s, %v", now, err)
	}
	w.is(late, opened)
	if w.leads(one) == dead {
		t.Error("the killed replica is the leader")
	}
	w.ready(opened)
	w.settled()
	if _, now, err := rest.heldBy(w.Context()); err != nil || now != handovers {
		t.Errorf("the leader of the other shard changed: %d times, before %d, %v", now, handovers, err)
	}
	for _, u := range written.All() {
		if u.GetName() == "other" {
			t.Errorf("the new leader wrote although nothing had changed: %v", u.Object)
		}
	}
}

func deletedWhileDown(t *testing.T) {
	w := newWorld(t)
	w.refill(one)
	app := w.app("apps")
	g := w.gate(one, "production", v1alpha1.StateClosed, "*")
	w.is(app, g)
	w.ready(g)
	w.Must(one.stop())
	w.Must(w.Client.Delete(w.Context(), g))
	// The other shard receives each event of the target.
	written := w.Record(kustomizations)
	w.Must(w.Client.Patch(w.Context(), app, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"yes"}}}`))))
	w.Throughout(patience, "the target is held", func() error {
		for _, u := range written.All() {
			if v := versionOf(u); !v.suspended || v.heldBy != g.Namespace+"/"+g.Name {
				return fmt.Errorf("got %+v", v)
			}
		}
		return nil
	})
	if all := written.All(); len(all) != 1 {
		t.Errorf("the target was written %d times", len(all)-1)
	}
	w.Must(one.fill(w.Context()))
	w.is(app)
	w.gone(g)
	w.settled()
}

// closeAtOnce closes Gates of both shards at the same instant. With the lock, each close writes the same object.
func closeAtOnce(t *testing.T) {
	const gates = 30
	w := newWorld(t)
	at := time.Now().Add(30 * time.Second)
	from, until := metav1.NewTime(at), metav1.NewTime(at.Add(time.Hour))
	freeze := v1alpha1.ClosePeriod{Period: v1alpha1.Period{Name: "freeze", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}}
	var all []*v1alpha1.Gate
	var apps []*unstructured.Unstructured
	for i := range gates {
		for _, s := range []*shard{rest, one} {
			name := fmt.Sprintf("%s%d", map[*shard]string{rest: "a", one: "b"}[s], i)
			apps = append(apps, w.app(name))
			all = append(all, w.gate(s, name, v1alpha1.StateOpened, name))
			w.EditGate(all[len(all)-1], func(g *v1alpha1.Gate) {
				g.Spec.Interval.Duration, g.Spec.ClosePeriods = time.Hour, []v1alpha1.ClosePeriod{freeze}
			})
		}
	}
	w.ready(all...)
	if left := time.Until(at); left < time.Second {
		t.Fatalf("too late by %s", -left)
	}
	written := w.recordAll()
	for i, app := range apps {
		w.is(app, all[i])
	}
	took := time.Since(at)
	for _, g := range all {
		w.Eventually("gate "+g.Name+" is ready", func() error {
			w.Read(g)
			if !conditions.IsReady(g) || g.Status.Targets.Held != 1 {
				return fmt.Errorf("%+v", g.Status)
			}
			return nil
		})
	}
	failed := 0
	for _, u := range written["gates"].All() {
		if failures, _, _ := unstructured.NestedSlice(u.Object, "status", "failures"); len(failures) > 0 {
			failed++
			t.Errorf("gate %s: %v", u.GetName(), failures)
		}
	}
	if targets := len(written["targets"].All()); targets > 2*len(all) {
		t.Errorf("%d writes of %d targets", targets, len(all))
	}
	if lockInstalled {
		locks := len(written["locks"].All())
		if closed := w.lock(w.Namespace); len(closed) != len(all) || !closed[w.Namespace+"/a0"] || locks > len(all) {
			t.Errorf("%d writes of a lock with %d gates", locks, len(closed))
		}
		t.Logf("%d writes of the lock", locks)
	}
	t.Logf("the last target was held within %s, %d gates had a failure", took.Round(time.Millisecond), failed)
}

// costsNothing closes and opens Gates of one shard. The other shard receives the events of their targets, too.
func costsNothing(t *testing.T) {
	const gates, each = 10, 10
	w := newWorld(t)
	var apps []*unstructured.Unstructured
	var all []*v1alpha1.Gate
	for i := range gates {
		var names []string
		for j := range each {
			names = append(names, fmt.Sprintf("app-%d-%d", i, j))
			apps = append(apps, w.app(names[j]))
		}
		all = append(all, w.gate(one, fmt.Sprintf("gate-%d", i), v1alpha1.StateClosed, names...))
	}
	heldAll := func() {
		w.ready(all...)
		for i, app := range apps {
			w.is(app, all[i/each])
		}
	}
	heldAll()
	w.settled()
	writes, reads := w.requests(one, "PATCH"), w.requests(rest, "GET")
	for _, g := range all {
		w.open(g)
	}
	for _, app := range apps {
		w.is(app)
	}
	for _, g := range all {
		w.close(g)
	}
	heldAll()
	w.settled()
	writes, reads = w.requests(one, "PATCH")-writes, w.requests(rest, "GET")-reads
	t.Logf("%d writes by one shard, %d reads by the other", writes, reads)
	if writes < 2*len(apps) {
		t.Errorf("only %d writes", writes)
	}
	if reads > 40 {
		t.Errorf("%d reads by the other shard for %d writes", reads, writes)
	}
}
