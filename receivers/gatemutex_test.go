package receivers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestRequestsAreSerializedPerGate(t *testing.T) {
	turns := gateMutexes{gates: map[types.NamespacedName]*gateMutex{}}
	production := types.NamespacedName{Namespace: "apps", Name: "production"}
	done, err := turns.take(t.Context(), production)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		other, err := turns.take(t.Context(), types.NamespacedName{Namespace: "apps", Name: fmt.Sprint("gate-", i)})
		if err != nil {
			t.Fatal(err)
		}
		defer other()
	}
	// A caller stops waiting when its context ends.
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := turns.take(ctx, production); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("two have the turn: %v", err)
	}
	done()
	again, err := turns.take(t.Context(), production)
	if err != nil {
		t.Fatal(err)
	}
	again()
	if turns.gates[production] != nil {
		t.Error("a turn that nobody has is kept")
	}
}

// oneGate is an API server that has only one Gate.
type oneGate struct {
	client.Client
	gate  *v1alpha1.Gate
	reads int
}

func (c *oneGate) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	c.reads++
	if into, ok := obj.(*v1alpha1.Gate); ok {
		c.gate.DeepCopyInto(into)
	}
	return nil
}

// An unhandled planned request delays new requests, but not if the Gate is suspended, because the controller does not handle it then.
func TestWebhookDoesNotWaitForSuspendedGate(t *testing.T) {
	c := &oneGate{gate: &v1alpha1.Gate{}}
	c.gate.Spec.Suspend = true
	c.gate.Annotations = map[string]string{v1alpha1.OpenRequestedAtAnnotation: testNow.Add(time.Hour).Format(time.RFC3339)}
	_, err := NewGates(c).request(t.Context(), types.NamespacedName{Namespace: "apps", Name: "production"}, gateRequest{action: v1alpha1.RequestOpen}, testNow)
	if !errors.Is(err, errUnavailable) || c.reads != 1 {
		t.Errorf("%d reads, %v", c.reads, err)
	}
}
