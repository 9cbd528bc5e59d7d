package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kuberecorder "k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/machinecerts"
	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) { os.Exit(harness.RunTests(m, &cluster, "cluster-api", harness.Machines)) }

const (
	day    = 24 * time.Hour
	opened = v1alpha1.StateOpened
	closed = v1alpha1.StateClosed
)

var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

var errBroken = errors.New("the connection is broken")

// world is a namespace with a Reconciler and a clock that only the test moves.
type world struct {
	*harness.World
	*Reconciler
	clock  *clocktesting.FakePassiveClock
	events *kuberecorder.FakeRecorder

	mu sync.Mutex
	// writes has "verb Kind/name" of each write since the last call of take.
	writes []string
	// before is called before a write. If it returns an error, the write is not sent. after is called after a write.
	before, after func(write string) error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: harness.NewWorld(t, cluster), clock: clocktesting.NewFakePassiveClock(start), events: kuberecorder.NewFakeRecorder(1000)}
	w.Reconciler = &Reconciler{Client: w.recording(), EventRecorder: w.events, APIReader: cluster.Client, Clock: w.clock}
	w.kinds.refreshes, w.kinds.machines = "v1alpha1", "v1beta2"
	return w
}

func (w *world) recording() client.Client {
	return interceptor.NewClient(cluster.Client, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return w.record("patch", obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return w.record("apply", obj, func() error { return c.Apply(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.record("patch-"+sub, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
}

func (w *world) record(verb string, obj any, write func() error) error {
	name := verb + " "
	switch obj := obj.(type) {
	case *v1alpha1.MachineCertificateRefresh:
		name += "MachineCertificateRefresh/" + obj.Name
	case interface{ GetName() *string }:
		name += "Machine/" + *obj.GetName()
	case client.Object:
		name += "Machine/" + obj.GetName()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, name)
	if w.before != nil {
		if err := w.before(name); err != nil {
			return err
		}
	}
	if err := write(); err != nil || w.after == nil {
		return err
	}
	return w.after(name)
}

// take returns the writes that contain a text, and clears the record.
func (w *world) take(of string) []string {
	all := slices.DeleteFunc(w.writes, func(write string) bool { return !strings.Contains(write, of) })
	w.writes = nil
	return all
}

// told returns the events that contain a text, and clears the record.
func (w *world) told(of string) (all []string) {
	for len(w.events.Events) > 0 {
		if event := <-w.events.Events; strings.Contains(event, of) {
			all = append(all, event)
		}
	}
	return all
}

// once calls do before or after the first write that contains a text.
func once(of string, do func() error) func(string) error {
	done := false
	return func(write string) error {
		if done || !strings.Contains(write, of) {
			return nil
		}
		done = true
		return do()
	}
}

// try makes passes until one writes nothing. It returns the delay after the last pass, and the first error.
func (w *world) try() (time.Duration, error) {
	w.Helper()
	for range 8 {
		before := len(w.writes)
		result, err := w.Reconcile(w.Context(), request(w))
		if err != nil || len(w.writes) == before {
			return result.RequeueAfter, err
		}
	}
	return 0, errors.New("each of eight passes writes something")
}

func (w *world) reconcile() time.Duration {
	w.Helper()
	again, err := w.try()
	w.Must(err)
	return again
}

func (w *world) in(d time.Duration) time.Time {
	w.clock.SetTime(start.Add(d))
	return w.clock.Now()
}

// bare returns a Machine with only a name.
func (w *world) bare(name string) *metav1.PartialObjectMetadata {
	m := newMachine("v1beta2")
	m.Namespace, m.Name = w.Namespace, name
	return m
}

// machine creates a Machine whose certificates expire some time after start.
func (w *world) machine(name string, expires time.Duration, labels ...string) *metav1.PartialObjectMetadata {
	w.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"clusterName": "c1", "bootstrap": map[string]any{"dataSecretName": "data"},
		"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerMachine", "name": name},
	}}}
	obj.SetGroupVersionKind(machineKind.WithVersion("v1beta2"))
	obj.SetNamespace(w.Namespace)
	obj.SetName(name)
	all := map[string]string{clusterNameLabel: "c1"}
	for _, label := range labels {
		all[label] = ""
	}
	obj.SetLabels(all)
	obj.SetAnnotations(map[string]string{expiryAnnotation: start.Add(expires).Format(time.RFC3339)})
	w.Must(cluster.Client.Create(w.Context(), obj))
	return w.bare(name)
}

// gate creates a Gate, unless it exists, and sets its status as the gate controller does.
func (w *world) gate(name string, state v1alpha1.State, change ...func(*v1alpha1.Gate)) {
	w.Helper()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}, Spec: v1alpha1.GateSpec{Default: closed}}
	if err := w.TryRead(g); err != nil {
		w.Create(g)
	}
	w.Edit(g, func() {
		for _, c := range change {
			c(g)
		}
	})
	before := g.DeepCopy()
	g.Status.ObservedGeneration = g.Generation
	if last := g.Status.LastTransition; last == nil || last.State != state {
		g.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(w.clock.Now()), State: state, Reason: v1alpha1.DefaultReason}
	}
	conditions.MarkFalse(g, v1alpha1.OpenedCondition, v1alpha1.DefaultReason, "Gate is closed")
	if state == opened {
		conditions.MarkTrue(g, v1alpha1.OpenedCondition, v1alpha1.DefaultReason, "Gate is open")
	}
	w.Must(cluster.Client.Status().Patch(w.Context(), g, client.MergeFrom(before)))
}

// refreshes creates a MachineCertificateRefresh for the Gate nights.
func (w *world) refreshes(name string, change ...func(*v1alpha1.MachineCertificateRefreshSpec)) *v1alpha1.MachineCertificateRefresh {
	w.Helper()
	obj := &v1alpha1.MachineCertificateRefresh{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineCertificateRefreshSpec{
		GateRefs: []v1alpha1.GateReference{{Name: "nights"}},
	}}
	for _, c := range change {
		c(&obj.Spec)
	}
	w.Create(obj)
	return obj
}

// tryAnnotate sets annotations of a Machine as another manager. It removes those that are nil.
func (w *world) tryAnnotate(by, machine string, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	return cluster.Client.Patch(w.Context(), w.bare(machine), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(by))
}

func (w *world) annotateAs(by string, m *metav1.PartialObjectMetadata, annotations map[string]any) {
	w.Helper()
	w.Must(w.tryAnnotate(by, m.Name, annotations))
}

// Faults of the provider.
const (
	works         = ""
	stuck         = "stuck in progress"
	fails         = "fails forever"
	failsAtOnce   = "fails before it begins"
	neverAdvances = "never advances"
)

// provider takes one step on a Machine as the bootstrap provider of Canonical Kubernetes does, or as it does with a fault.
func (w *world) provider(m *metav1.PartialObjectMetadata, fault string) {
	w.Helper()
	w.Read(m)
	ttl, requested := m.Annotations[requestAnnotation]
	working := m.Annotations[statusAnnotation] == machinecerts.StatusInProgress
	change := map[string]any{}
	switch {
	case working && !requested:
		change[statusAnnotation] = nil
	case !requested, working && fault == stuck:
		return
	case !working && fault != failsAtOnce:
		change[statusAnnotation] = machinecerts.StatusInProgress
	case fault == fails, fault == failsAtOnce:
		change[statusAnnotation] = machinecerts.StatusFailed
	default:
		change[requestAnnotation], change[statusAnnotation] = nil, machinecerts.StatusDone
		if fault != neverAdvances {
			spec := v1alpha1.MachineCertificateRefreshSpec{TTL: ttl}
			change[expiryAnnotation] = w.clock.Now().Add(spec.Lifetime()).Format(time.RFC3339)
		}
	}
	w.annotateAs("manager", m, change)
}

// requested returns the request on a Machine, and whether it has a record.
func (w *world) requested(m *metav1.PartialObjectMetadata) (request string, recorded bool) {
	w.Helper()
	w.Read(m)
	_, recorded = m.Annotations[v1alpha1.RefreshAnnotation]
	return m.Annotations[requestAnnotation], recorded
}

// expectRequested checks which Machines have a request of this controller.
func (w *world) expectRequested(machines []*metav1.PartialObjectMetadata, want ...string) {
	w.Helper()
	var got []string
	for _, m := range machines {
		request, recorded := w.requested(m)
		if (request != "") != recorded {
			w.Errorf("%s: the request is %q, recorded %t", m.Name, request, recorded)
		}
		if request != "" {
			got = append(got, m.Name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.Errorf("requested %v, want %v", got, want)
	}
}

// expectQuiet checks that this controller owns nothing on a Machine.
func (w *world) expectQuiet(machines ...*metav1.PartialObjectMetadata) {
	w.Helper()
	for _, m := range machines {
		w.Read(m)
		for _, entry := range m.ManagedFields {
			if entry.Manager == v1alpha1.FieldManager {
				w.Errorf("%s: the controller owns %s", m.Name, entry.FieldsV1)
			}
		}
		if _, recorded := m.Annotations[v1alpha1.RefreshAnnotation]; recorded {
			w.Errorf("%s has a record", m.Name)
		}
	}
}

// expectStatus checks a summary of the status of a MachineCertificateRefresh, and the reason of Ready.
func (w *world) expectStatus(obj *v1alpha1.MachineCertificateRefresh, want, reason string) {
	w.Helper()
	w.Read(obj)
	got := fmt.Sprintf("due %d", obj.Status.Due)
	if obj.Status.Refreshing != "" {
		got += ", refreshing " + obj.Status.Refreshing
	}
	if obj.Status.Stopped != nil {
		got += ", stopped by " + obj.Status.Stopped.Machine
	}
	ready := conditions.Get(obj, meta.ReadyCondition)
	if ready == nil || got != want || ready.Reason != reason || (ready.Status == metav1.ConditionTrue) != (reason == meta.SucceededReason) {
		w.Errorf("status %q, want %q; ready %v, want %s", got, want, ready, reason)
	}
	if obj.Status.ObservedGeneration != obj.Generation || ready != nil && ready.ObservedGeneration != obj.Generation {
		w.Errorf("observed generation %d, want %d", obj.Status.ObservedGeneration, obj.Generation)
	}
}
