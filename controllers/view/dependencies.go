package view

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	// DependencyField is the index of Gates by their dependencies. Most targets with frequent events are not dependencies.
	DependencyField = "spec.dependsOn"

	// dependencyTimeout bounds how long reading dependencies delays the decision on a Gate. Objects that are not read in time count as not
	// ready.
	dependencyTimeout = 10 * time.Second
)

// DependencyIndexKeys returns the dependencies of a Gate, for the index DependencyField.
func DependencyIndexKeys(obj client.Object) []string {
	g, ok := obj.(*v1alpha1.Gate)
	if !ok {
		return nil
	}
	var keys []string
	for i := range g.Spec.DependsOn {
		ref := &g.Spec.DependsOn[i]
		if adapter, err := target.For(ref.APIVersion, ref.Kind); err == nil {
			keys = append(keys, objectKey(adapter.GroupKind(), gate.DependencyNamespace(g, ref), ref.Name))
		}
	}
	return keys
}

// observation is the readiness of a dependency at the time it was read.
type observation struct {
	ready   bool
	message string
	// failure is the reason in status.targets.failures why the object cannot be read, empty if it can be read. retry is the error if a retry
	// may succeed.
	failure string
	retry   error
}

// evaluation is an observation with the versions of its inputs.
type evaluation struct {
	observation
	// gate is the resource version of the Gate, because expressions may depend on it.
	gate string
	ref  v1alpha1.DependencyReference
	// version is the UID and the resource version of the object, empty if the object did not exist.
	version string
	at      time.Time
}

// evaluationMaxAge bounds the age of an evaluation even if the object does not change in the cache, because the watch may be broken.
const evaluationMaxAge = 10 * time.Minute

// DependencyReader reads the dependencies of Gates, and caches their evaluations.
type DependencyReader struct {
	Reach
	Targets TargetReader

	mu          sync.Mutex
	evaluations map[types.UID][]evaluation
}

// Read returns the state of the dependencies of a Gate, with faults for dependencies that cannot be read. It reads whole objects from the
// API server, because expressions need fields that the cache of targets lacks. Unless all is set, unchanged dependencies are not read
// again. cached is true if any dependency was not read again. A dependency that cannot be read counts as not ready, because the Gate must
// not open, or stay open, based on an outdated state.
func (r *DependencyReader) Read(ctx context.Context, obj *v1alpha1.Gate, now time.Time, all bool) (status []v1alpha1.DependencyStatus, faults []Fault, cached bool) {
	self, err := gateContent(obj)
	if err != nil {
		panic(err) // objects that were decoded from JSON always convert
	}
	ctx, cancel := context.WithTimeout(ctx, dependencyTimeout)
	defer cancel()
	before, seen := r.cachedEvaluations(obj.UID, len(obj.Spec.DependsOn)), make([]evaluation, len(obj.Spec.DependsOn))
	known := make([]bool, len(seen))
	var group sync.WaitGroup
	for i := range obj.Spec.DependsOn {
		group.Go(func() {
			if known[i] = !all && r.unchanged(ctx, obj, &before[i], &obj.Spec.DependsOn[i], now); known[i] {
				seen[i] = before[i]
				return
			}
			seen[i] = r.evaluate(ctx, obj, self, &obj.Spec.DependsOn[i])
			seen[i].at = now
		})
	}
	group.Wait()

	status = make([]v1alpha1.DependencyStatus, len(seen))
	for i, o := range seen {
		ref := &obj.Spec.DependsOn[i]
		status[i] = gate.RecordDependency(obj, ref, o.ready, o.message, now)
		if o.failure != "" {
			f := NewFault(ref.Kind, status[i].Namespace, ref.Name, o.failure, status[i].Message)
			f.Cause = o.retry
			faults = append(faults, f)
		}
	}
	r.store(obj.UID, seen)
	return status, faults, slices.Contains(known, true)
}

// cachedEvaluations returns the last evaluations of the n dependencies of a Gate.
func (r *DependencyReader) cachedEvaluations(gate types.UID, n int) []evaluation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.evaluations[gate]; len(known) == n {
		return known
	}
	return make([]evaluation, n)
}

func (r *DependencyReader) store(gate types.UID, seen []evaluation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.evaluations == nil {
		r.evaluations = map[types.UID][]evaluation{}
	}
	r.evaluations[gate] = seen
}

// Forget evicts a Gate.
func (r *DependencyReader) Forget(gate types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.evaluations, gate)
}

// unchanged returns whether the evaluation of a dependency is still valid, because the cache has the evaluated version.
func (r *DependencyReader) unchanged(ctx context.Context, obj *v1alpha1.Gate, seen *evaluation, ref *v1alpha1.DependencyReference, now time.Time) bool {
	age := now.Sub(seen.at)
	if seen.gate == "" || readsGate(ref) && seen.gate != obj.ResourceVersion || seen.ref != *ref || seen.failure != "" || age < 0 || age >= evaluationMaxAge {
		return false
	}
	adapter, err := target.For(ref.APIVersion, ref.Kind)
	if err != nil {
		return false
	}
	cached, err := r.Targets.Select(ctx, adapter, gate.DependencyNamespace(obj, ref), &v1alpha1.TargetReference{Kind: ref.Kind, Name: ref.Name})
	switch {
	case err != nil || len(cached) > 1:
		return false
	case len(cached) == 0:
		return seen.version == ""
	}
	return seen.version == objectVersion(&cached[0].Unstructured)
}

// readsGate returns whether the readyExpr of a dependency may refer to the Gate.
func readsGate(ref *v1alpha1.DependencyReference) bool {
	return strings.Contains(ref.ReadyExpr, "self")
}

func objectVersion(u *unstructured.Unstructured) string {
	return string(u.GetUID()) + "/" + u.GetResourceVersion()
}

// gateContent returns the content of a Gate for expressions.
func gateContent(obj *v1alpha1.Gate) (map[string]any, error) {
	self, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	self["apiVersion"], self["kind"] = v1alpha1.GroupVersion.String(), v1alpha1.GateKind // typed objects have neither
	return self, nil
}

// evaluate evaluates one dependency of a Gate.
func (r *DependencyReader) evaluate(ctx context.Context, obj *v1alpha1.Gate, self map[string]any, ref *v1alpha1.DependencyReference) evaluation {
	cannot := func(failure, message string) evaluation {
		return evaluation{observation: observation{failure: failure, message: message}}
	}
	namespace := gate.DependencyNamespace(obj, ref)
	if message := r.OutOfReach("objects", "read", obj.Namespace, namespace); message != "" {
		return cannot(v1alpha1.AccessDeniedReason, message)
	}
	adapter, err := target.For(ref.APIVersion, ref.Kind)
	if err != nil {
		return cannot(v1alpha1.UnsupportedKindReason, err.Error())
	}
	dep, err := r.Targets.Read(ctx, adapter, types.NamespacedName{Namespace: namespace, Name: ref.Name})
	var unsupported UnsupportedError
	if errors.As(err, &unsupported) {
		return cannot(v1alpha1.UnsupportedKindReason, err.Error())
	}
	if errors.Is(err, ErrNotInstalled) {
		return cannot(v1alpha1.CRDNotFoundReason, err.Error())
	}
	if err != nil {
		seen := cannot(v1alpha1.ReadFailedReason, msgUnread+err.Error())
		seen.retry = err
		return seen
	}
	seen := evaluation{gate: obj.ResourceVersion, ref: *ref}
	var content map[string]any
	if dep != nil {
		content, seen.version = dep.Object, objectVersion(dep)
	}
	if dep == nil || ref.ReadyExpr != "" {
		seen.ready, seen.message = gate.EvaluateReadyExpr(ctx, content, self, ref.ReadyExpr)
		return seen
	}
	was := gate.FindDependency(obj, ref)
	seen.ready, seen.message = target.IsReady(&target.Object{Unstructured: *dep}, was != nil && was.Ready)
	return seen
}
