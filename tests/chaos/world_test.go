package chaos

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/chaos/checker"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// stretch is the number of steps between two quiet periods.
	stretch = 40
	// patience is how many seconds the controller may take to reach the promised state, unless PATIENCE is set.
	patience = 120
	// stillness is how long nothing may change after that. It exceeds the longest delay between two retries.
	stillness = 5 * time.Second
)

// walk is one walk in two new namespaces.
type walk struct {
	*harness.World
	seed uint64
	// at is the current one of steps.
	at    int
	steps []step

	namespaces []string
	replicas   []*replica
	log        *checker.Log
	history    *checker.History
	// absent is true if the definition of HelmReleases is missing.
	absent bool
	// stormUntil is the step at which a burst of faults ends.
	stormUntil int
	// margin is the start of the last known margin.
	margin   time.Time
	count    int
	patience time.Duration
}

// walkOf performs a walk, and prints how to repeat it if a promise was broken.
func walkOf(t *testing.T, seed uint64, n int) {
	named := func(prefix string) func(*corev1.Namespace) {
		return func(n *corev1.Namespace) { n.GenerateName = prefix }
	}
	w := &walk{World: harness.NewWorld(t, cluster, named("chaos-a-")), seed: seed, steps: plan(seed, n), log: checker.NewLog()}
	w.namespaces = []string{w.Namespace, w.NewNamespace(named("chaos-b-"))}
	w.history = checker.NewHistory(w.log)
	w.patience = time.Duration(number(t, "PATIENCE", patience)) * time.Second
	t.Logf("SEED=%d STEPS=%d", seed, n)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to walk again: make chaos SEED=%d STEPS=%d", seed, n)
			w.tail()
		}
	})
	w.define() // the previous walk may have failed without it
	w.record()
	w.startReplicas()
	w.populate()
	for w.at = range w.steps {
		s := w.steps[w.at]
		w.Logf("%s step %d: %s", time.Now().UTC().Format("15:04:05.000"), w.at, s.do)
		w.updateReplicas()
		if w.at == w.stormUntil {
			w.setWeather(weather)
		}
		actions[s.do](w, s.random())
		if last := w.at+1 == len(w.steps); last || long() && (w.at+1)%stretch == 0 {
			w.quiet(stillFor(last))
		}
	}
	if long() { // at most a minute
		w.pass(time.Until(w.margin.Add(10 * time.Second)))
	}
	w.leave()
}

// leave deletes all Gates and waits until nothing is held.
func (w *walk) leave() {
	w.Helper()
	for i := range gateCount {
		w.deleteGate(i)
	}
	w.quiet(stillFor(false))
	for _, r := range w.replicas {
		w.Logf("faults: %v", r.proxy.Counts())
	}
}

// pass waits for a duration.
func (w *walk) pass(length time.Duration) {
	select {
	case <-w.Context().Done():
	case <-time.After(length):
	}
}

// kinds are the kinds of targets by plural.
var kinds = map[string]string{
	"Kustomization": "kustomize.toolkit.fluxcd.io/v1", "GitRepository": "source.toolkit.fluxcd.io/v1",
	"HelmRelease": "helm.toolkit.fluxcd.io/v2", "Certificate": "cert-manager.io/v1",
}

// list returns the objects of a kind in the namespaces of the walk, none if the kind is not installed.
func (w *walk) list(apiVersion, kind string) (*unstructured.UnstructuredList, error) {
	all := &unstructured.UnstructuredList{}
	for _, namespace := range w.namespaces {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(kind + "List")
		err := w.Client.List(w.Context(), list, client.InNamespace(namespace))
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all.Items = append(all.Items, list.Items...)
	}
	return all, nil
}

// see reads the state of the cluster.
func (w *walk) see() (checker.World, error) {
	world := checker.World{Kinds: map[string]bool{}}
	for kind, apiVersion := range kinds {
		world.Kinds[kind] = kind != "HelmRelease" || !w.absent
		list, err := w.list(apiVersion, kind)
		if err != nil {
			return world, err
		}
		world.Targets = append(world.Targets, list.Items...)
	}
	locks, err := w.list(lockv1alpha1.GroupVersion.String(), lockv1alpha1.GateLockKind)
	if err != nil {
		return world, err
	}
	world.Locks = locks.Items
	for _, namespace := range w.namespaces {
		gates, exceptions, events := &v1alpha1.GateList{}, &v1alpha1.GateExceptionList{}, &corev1.EventList{}
		for _, list := range []client.ObjectList{gates, exceptions, events} {
			if err := w.Client.List(w.Context(), list, client.InNamespace(namespace)); err != nil {
				return world, err
			}
		}
		world.Gates = append(world.Gates, gates.Items...)
		world.Exceptions = append(world.Exceptions, exceptions.Items...)
		world.Events = append(world.Events, events.Items...)
	}
	return world, nil
}

// versions returns the versions of all objects that the controller writes.
func versions(world checker.World) map[string]string {
	all := map[string]string{}
	add := func(kind string, obj client.Object) {
		all[kind+" "+obj.GetNamespace()+"/"+obj.GetName()+" "+string(obj.GetUID())] = obj.GetResourceVersion()
	}
	for i := range world.Gates {
		add(v1alpha1.GateKind, &world.Gates[i])
	}
	for i := range world.Exceptions {
		add(v1alpha1.GateExceptionKind, &world.Exceptions[i])
	}
	for i := range world.Targets {
		add(world.Targets[i].GetKind(), &world.Targets[i])
	}
	for i := range world.Locks {
		add(lockv1alpha1.GateLockKind, &world.Locks[i])
	}
	for i := range world.Events {
		if e := &world.Events[i]; e.ReportingController == v1alpha1.FieldManager {
			add("Event "+e.Reason+" of "+e.InvolvedObject.Kind, e)
		}
	}
	return all
}

// stillFor returns how long nothing may change in a quiet period: the full time at the last step, and less for the checks in between of a
// short walk.
func stillFor(last bool) time.Duration {
	if last || long() {
		return stillness
	}
	return time.Second
}

// quiet ends all faults and waits until the checker finds no violation and nothing changes.
func (w *walk) quiet(stillness time.Duration) {
	w.Helper()
	begun := time.Now()
	w.setWeather(0)
	w.stormUntil = 0
	for _, r := range w.replicas {
		w.unpause(r)
		r.downUntil = 0
	}
	for {
		w.Must(harness.Eventually(w.Context(), w.patience, "the checker finds no violation", w.content))
		world, err := w.see()
		w.Must(err)
		edge := checker.NextEdge(world, w.log, w.history, time.Now().Add(-time.Second/2))
		if left := time.Until(edge); !edge.IsZero() && left < stillness*3/2 {
			w.pass(left + time.Second/2 + 10*time.Millisecond)
			continue
		}
		err = harness.Throughout(w.Context(), stillness, "nothing changes", func() error { return w.still(world) })
		if err != nil && time.Since(begun) < w.patience {
			w.logf("%v", err) // the last report may be written after the promises hold
			continue
		}
		w.Must(err)
		w.Must(w.content())
		break
	}
	w.noPanics()
	w.Logf("%s quiet after %s", time.Now().UTC().Format("15:04:05.000"), time.Since(begun).Round(time.Millisecond))
	w.setWeather(weather)
}

// content runs the checker once, and returns its violations.
func (w *walk) content() error {
	w.updateReplicas()
	if err := w.certManager(); err != nil {
		return err
	}
	if err := w.caughtUp(); err != nil {
		return err
	}
	now := time.Now()
	world, err := w.see()
	if err != nil {
		return err
	}
	if wrong := checker.Check(world, w.log, w.history, now); len(wrong) > 0 {
		return fmt.Errorf("%d violations:\n  %s", len(wrong), strings.Join(wrong, "\n  "))
	}
	return nil
}

// still returns an error if anything has changed. cert-manager keeps reconciling: its writes, and the writes of the controller that follow,
// must not begin after that.
func (w *walk) still(before checker.World) error {
	if err := w.certManager(); err != nil {
		return err
	}
	after, err := w.see()
	if err != nil {
		return err
	}
	was, is := versions(before), versions(after)
	for name, version := range is {
		if was[name] != version {
			return fmt.Errorf("%s changed from version %s to %s", name, was[name], version)
		}
	}
	if len(was) != len(is) {
		return fmt.Errorf("there were %d objects, now %d", len(was), len(is))
	}
	return nil
}

// tail prints the ends of the logs.
func (w *walk) tail() {
	for i, r := range w.replicas {
		for _, path := range r.logs[max(0, len(r.logs)-2):] {
			content, err := os.ReadFile(path)
			w.Logf("log of replica %d (%v):\n%s", i, err, content[max(0, len(content)-6000):])
		}
	}
}
