package gate

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/applier"
	"github.com/fluxcd/gating-controller/internal/target"
)

// slowReader blocks each read of the object slow until released is closed.
type slowReader struct {
	view.TargetReader
	reading, released chan struct{}
}

func (r slowReader) Read(_ context.Context, _ target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if key.Name == "slow" {
		close(r.reading)
		<-r.released
	}
	return &unstructured.Unstructured{}, nil
}

func TestSlowReadOfApplierDelaysNoOther(t *testing.T) {
	t.Parallel()
	read, slow := &Appliers{}, slowReader{reading: make(chan struct{}), released: make(chan struct{})}
	done := make(chan error)
	get := func(name string) error {
		obj, err := read.get(t.Context(), slow, applier.Reference{Kind: "Kustomization", Namespace: "shop", Name: name}, start)
		if err == nil && obj == nil {
			t.Errorf("%s was not found", name)
		}
		return err
	}
	go func() { done <- get("slow") }()
	<-slow.reading
	other := make(chan error)
	go func() { other <- get("other") }()
	select {
	case err := <-other:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the read of another applier waits")
	}
	close(slow.released)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// countingReader counts the reads of appliers.
type countingReader struct {
	view.TargetReader
	n   int
	err error
}

func (r *countingReader) Read(_ context.Context, _ target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error) {
	r.n++
	return &newKustomization(key.Namespace, key.Name).Unstructured, r.err
}

func TestAppliersAreReadOnlyIfNeeded(t *testing.T) {
	reader := &countingReader{}
	checks := diagnostics{selector: &view.Selector{Targets: reader}, state: &State{}, appliers: &Appliers{}}
	g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: v1alpha1.AnyName}}}}
	g.Namespace = "shop"
	g.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "flux-system", "kustomize.toolkit.fluxcd.io/namespace": "shop"}
	// expect checks the appliers of a Gate with the key of the last check. It expects the number of reads and whether the Gate governs its
	// applier, nil if that is unknown.
	expect := func(when, key string, at time.Duration, reads int, governs *bool) string {
		t.Helper()
		reader.n = 0
		found := &findings{applierKey: key}
		checks.checkAppliers(t.Context(), g, start.Add(at), found)
		if reader.n != reads || (found.held == nil) != (governs == nil) || governs != nil && (*found.held != "") != *governs {
			t.Errorf("%s: %d reads, want %d, %+v", when, reader.n, reads, found)
		}
		return found.applierKey
	}
	first := expect("at first", "", 0, 1, ptr.To(true))
	expect("nothing has changed", first, hours(1), 0, nil)
	g.Generation, reader.err = 2, errors.New("broken")
	if key := expect("unreadable", first, hours(1), 1, nil); key != first {
		t.Errorf("the failed check counts: %q", key)
	}
	reader.err = nil
	expect("readable again", first, hours(1), 1, ptr.To(true))
	expect("another Gate at the same time", "", hours(1), 0, ptr.To(true))

	// A user who forges the labels of Flux must not learn from the condition what is in other namespaces.
	g.Labels["kustomize.toolkit.fluxcd.io/namespace"], g.Spec.Targets[0].Namespace = "bank", "bank"
	expect("out of reach", "", hours(2), 0, ptr.To(false))
	checks.selector.AllowCrossNamespaceRefs = true
	expect("in reach", "", hours(3), 1, ptr.To(true))
}
