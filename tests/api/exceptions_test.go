package api_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// createException creates a GateException for a Gate with the typed client.
func createException(w *harness.World, gate string) *v1alpha1.GateException {
	w.Helper()
	from := time.Date(2026, 12, 19, 0, 0, 0, 0, time.UTC)
	e := &v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "exception-"},
		Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: gate}, Default: v1alpha1.StateClosed,
			ValidFrom: metav1.NewTime(from), ValidUntil: metav1.NewTime(from.Add(time.Hour)),
		},
	}
	w.Create(e)
	return e
}

func TestExceptionsAreListedByGate(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	mine, other := createException(w, "listed"), createException(w, "not-listed")
	list := &v1alpha1.GateExceptionList{}
	w.Must(w.Client.List(t.Context(), list, client.InNamespace(w.Namespace), client.MatchingFields{"spec.gateRef.name": "listed"}))
	if len(list.Items) != 1 || list.Items[0].Name != mine.Name {
		t.Errorf("got %d exceptions, want %s and not %s", len(list.Items), mine.Name, other.Name)
	}
}

func TestExceptionGateIsImmutable(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	e := createException(w, "first")
	if err := w.Merge(e, `{"spec":{"gateRef":{"name":"second"}}}`); err == nil || !strings.Contains(err.Error(), "spec.gateRef: ") || !strings.Contains(err.Error(), "gateRef is immutable") {
		t.Errorf("got %v", err)
	}
}
