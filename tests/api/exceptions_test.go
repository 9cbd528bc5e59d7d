package api_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// createException creates one of a Gate from Go.
func createException(t *testing.T, gate string) *v1alpha1.GateException {
	t.Helper()
	from := time.Date(2026, 12, 19, 0, 0, 0, 0, time.UTC)
	e := &v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "exception-", Namespace: metav1.NamespaceDefault},
		Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: gate}, Type: v1alpha1.ExceptionReplace,
			ValidFrom: metav1.NewTime(from), ValidUntil: metav1.NewTime(from.Add(time.Hour)),
		},
	}
	must(t, cluster.Client.Create(t.Context(), e))
	t.Cleanup(func() {
		if err := cluster.Client.Delete(context.Background(), e); err != nil {
			t.Error(err)
		}
	})
	return e
}

func TestExceptionsAreListedByTheirGate(t *testing.T) {
	mine, other := createException(t, "listed"), createException(t, "not-listed")
	list := &v1alpha1.GateExceptionList{}
	must(t, cluster.Client.List(t.Context(), list, client.InNamespace(metav1.NamespaceDefault), client.MatchingFields{"spec.gateRef.name": "listed"}))
	if len(list.Items) != 1 || list.Items[0].Name != mine.Name {
		t.Errorf("got %d exceptions, want %s and not %s", len(list.Items), mine.Name, other.Name)
	}
}
