package lock

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// What a policy may cost is bounded, and beyond that the API server refuses each write of the kind.
func TestAnObjectThatThousandsOfGatesLockCanBeWritten(t *testing.T) {
	w := newWorld(t)
	var locks []v1alpha1.SelectorLock
	for i := range 2000 {
		locks = append(locks, v1alpha1.SelectorLock{Gates: []string{fmt.Sprintf("ops/gate-%d", i)}, NamespaceSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: fmt.Sprintf("exempt-%d", i), Operator: metav1.LabelSelectorOpDoesNotExist}},
			MatchLabels:      map[string]string{"kubernetes.io/metadata.name": w.Namespace},
		}})
	}
	defer w.fleet(v1alpha1.GateLockSpec{Selectors: map[string][]v1alpha1.SelectorLock{"Kustomization": locks}})()
	app := w.inGit("app")
	w.apply(app)
	w.resume(app)
	w.read(app)
	if by := harness.HeldBy(app); !harness.Suspended(app) || !strings.HasPrefix(by, "ops/gate-") || len(owners(app)) > 0 {
		t.Errorf("suspended %t, held by %q, owned by %v", harness.Suspended(app), by, owners(app))
	}
}

// The controller writes no such selector, but one of them would stop each write of its kind.
func TestASelectorWithoutValuesStopsNoWrite(t *testing.T) {
	w := newWorld(t)
	var locks []v1alpha1.SelectorLock
	for _, operator := range []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, "Nonsense"} {
		locks = append(locks, v1alpha1.SelectorLock{Gates: []string{"ops/broken"}, NamespaceSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kubernetes.io/metadata.name", Operator: operator}},
		}})
	}
	defer w.fleet(v1alpha1.GateLockSpec{Selectors: map[string][]v1alpha1.SelectorLock{"Kustomization": locks}})()
	app := w.inGit("app")
	w.apply(app)
	w.expectFree(app)
}
