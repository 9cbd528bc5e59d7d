package lock

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The cost of a policy is bounded. If it exceeds the limit, the API server refuses each write of the kind.
func TestObjectLockedByThousandsOfGatesIsWritable(t *testing.T) {
	w := newWorld(t)
	var locks []lockv1alpha1.SelectorLock
	for i := range 2000 {
		locks = append(locks, lockv1alpha1.SelectorLock{Gates: []string{fmt.Sprintf("ops/gate-%d", i)}, NamespaceSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: fmt.Sprintf("exempt-%d", i), Operator: metav1.LabelSelectorOpDoesNotExist}},
			MatchLabels:      map[string]string{"kubernetes.io/metadata.name": w.Namespace},
		}})
	}
	defer w.fleet(lockv1alpha1.GateLockSpec{Selectors: map[string][]lockv1alpha1.SelectorLock{"Kustomization": locks}})()
	app := w.inGit("app")
	w.apply(app)
	w.resume(app)
	w.read(app)
	if by := harness.HeldBy(app); !harness.Suspended(app) || !strings.HasPrefix(by, "ops/gate-") || len(owners(app)) > 0 {
		t.Errorf("suspended %t, held by %q, owned by %v", harness.Suspended(app), by, owners(app))
	}
}

// The controller writes no such selector, but a single one could prevent each write of its kind.
func TestSelectorWithoutValuesStopsNoWrite(t *testing.T) {
	w := newWorld(t)
	var locks []lockv1alpha1.SelectorLock
	for _, operator := range []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, "Nonsense"} {
		locks = append(locks, lockv1alpha1.SelectorLock{Gates: []string{"ops/broken"}, NamespaceSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kubernetes.io/metadata.name", Operator: operator}},
		}})
	}
	defer w.fleet(lockv1alpha1.GateLockSpec{Selectors: map[string][]lockv1alpha1.SelectorLock{"Kustomization": locks}})()
	app := w.inGit("app")
	w.apply(app)
	w.expectFree(app)
}

// An object can be written even if it has two labels with the maximum number of entries, and a kind with as many selectors.
func TestPolicyComparesMaximumLabels(t *testing.T) {
	labels := map[string]string{"a": "v", "b": "v"}
	for j := range 30 {
		labels[fmt.Sprintf("k%02d", j)] = "v"
	}
	for name, more := range map[string]int{"few labels each": 0, "many labels each": 30} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			spec := lockv1alpha1.GateLockSpec{Labels: map[string]lockv1alpha1.LabelLocks{}, Selectors: map[string][]lockv1alpha1.SelectorLock{}}
			for i := range 1000 {
				gates := []string{fmt.Sprintf("ops/gate-%d", i)}
				for _, first := range []string{"a", "b"} {
					match := map[string]string{first: "v", "z": fmt.Sprint(i)} // the label that is compared last differs
					for j := range more {
						match[fmt.Sprintf("k%02d", j)] = "v"
					}
					key := "Kustomization/" + first + "=v"
					spec.Labels[key] = append(spec.Labels[key], lockv1alpha1.LabelLock{MatchLabels: match, Gates: gates})
				}
				for range 2 {
					spec.Selectors["Kustomization"] = append(spec.Selectors["Kustomization"], lockv1alpha1.SelectorLock{Gates: gates, Selector: &metav1.LabelSelector{
						MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}},
					}})
				}
			}
			if left := lock.Bound(&spec); len(left) == 0 {
				t.Fatal("the limit is not reached")
			}
			w.lock(spec)
			app := w.inGit("app")
			app.SetLabels(labels)
			w.apply(app)
			w.resume(app)
		})
	}
}

// The bound is set by the controller, and the cost limit of the policy by the API server.
func TestPolicyComparesMaximumSelectors(t *testing.T) {
	for name, entry := range map[string]func(i int) lockv1alpha1.SelectorLock{
		"one expression each": func(i int) lockv1alpha1.SelectorLock {
			return lockv1alpha1.SelectorLock{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: fmt.Sprintf("exempt-%d", i), Operator: metav1.LabelSelectorOpDoesNotExist},
			}}}
		},
		"many labels each": func(i int) lockv1alpha1.SelectorLock {
			labels := map[string]string{"last": fmt.Sprint(i)}
			for j := range 32 {
				labels[fmt.Sprintf("k%d", j)] = "v"
			}
			return lockv1alpha1.SelectorLock{Selector: &metav1.LabelSelector{MatchLabels: labels}}
		},
		"many expressions each": func(i int) lockv1alpha1.SelectorLock {
			s := &metav1.LabelSelector{}
			for j := range 32 {
				s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: fmt.Sprintf("k%d", j), Operator: metav1.LabelSelectorOpNotIn, Values: []string{fmt.Sprint(i)},
				})
			}
			return lockv1alpha1.SelectorLock{Selector: s}
		},
		"many values each": func(i int) lockv1alpha1.SelectorLock {
			e := metav1.LabelSelectorRequirement{Key: "k0", Operator: metav1.LabelSelectorOpNotIn}
			for j := range 1000 {
				e.Values = append(e.Values, fmt.Sprint(i*1000+j))
			}
			return lockv1alpha1.SelectorLock{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			spec := lockv1alpha1.GateLockSpec{Selectors: map[string][]lockv1alpha1.SelectorLock{}}
			for i := 0; ; i++ {
				l := entry(i)
				l.Gates = []string{fmt.Sprintf("ops/gate-%d", i)}
				if spec.Selectors["Kustomization"] = append(spec.Selectors["Kustomization"], l); len(lock.Bound(&spec)) > 0 {
					break
				}
			}
			spec.Overlays = map[string][]lockv1alpha1.OverlayLock{}
			for i := range lockv1alpha1.MaxOverlayLocks {
				l := entry(i)
				spec.Overlays["Kustomization"] = append(spec.Overlays["Kustomization"], lockv1alpha1.OverlayLock{
					Gate: fmt.Sprintf("ops/gate-%d", i), Selector: l.Selector, NamespaceSelector: l.NamespaceSelector,
				})
			}
			if left := lock.Bound(&spec); len(left) > 0 {
				t.Fatalf("left out are %v", left)
			}
			defer w.fleet(spec)()
			app := w.inGit("app")
			labels := map[string]string{}
			for j := range 32 {
				labels[fmt.Sprintf("k%d", j)] = "v"
			}
			app.SetLabels(labels)
			w.apply(app)
			w.resume(app)
		})
	}
}
