package gate

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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
