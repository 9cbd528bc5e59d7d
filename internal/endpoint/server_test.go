package endpoint

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// listed are the receivers in a cache, one more each time.
type listed struct {
	client.Reader
	names []string
}

func (l *listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if into, ok := list.(*v1alpha1.GateReceiverList); ok {
		for _, name := range l.names {
			into.Items = append(into.Items, v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "apps"}})
		}
	}
	l.names = append(l.names, fmt.Sprintf("new-%d", len(l.names)))
	return nil
}

func TestReplicaWaitsOnlyForInitialObjects(t *testing.T) {
	table := NewTable[*thing]()
	cache := &listed{names: []string{"one", "two"}}
	server := &Server{Objects: &v1alpha1.GateReceiverList{}, Cache: cache, IsReconciled: table.IsReconciled}
	look := func(name string) {
		table.Put(types.NamespacedName{Namespace: "apps", Name: name}, nil, false)
	}
	wait := func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		return server.await(ctx)
	}
	look("one")
	if wait(3*retryInterval) == nil {
		t.Error("it did not wait for the second one")
	}
	cache.names = []string{"one", "two"}
	look("two")
	if err := wait(10 * time.Second); err != nil {
		t.Errorf("with new ones all the time: %s", err)
	}
	cache.names = []string{"one", "two", "gone"}
	time.AfterFunc(2*retryInterval, func() { look("gone") })
	if err := wait(10 * time.Second); err != nil {
		t.Errorf("it was looked at later: %s", err)
	}
}
