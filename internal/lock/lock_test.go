package lock

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// refs draws few targets, so that Gates share some.
func refs(t *rapid.T) []v1alpha1.TargetReference {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.TargetReference {
		ref := v1alpha1.TargetReference{
			Kind: rapid.SampledFrom([]string{"Kustomization", "HelmRelease"}).Draw(t, "kind"),
			Name: rapid.SampledFrom([]string{"*", "a", "b"}).Draw(t, "name"),
		}
		switch rapid.SampledFrom([]string{"own", "all", "selected"}).Draw(t, "namespaces") {
		case "all":
			ref.Namespace = v1alpha1.AnyName
		case "selected":
			ref.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: rapid.MapOfN(rapid.Just("x"), rapid.SampledFrom([]string{"1", "2"}), 0, 1).Draw(t, "namespace labels")}
		}
		if ref.Name == "*" {
			if rapid.Bool().Draw(t, "expressions") {
				ref.MatchExpressions = []v1alpha1.LabelSelectorRequirement{{Key: "x", Operator: metav1.LabelSelectorOpExists}}
			}
			ref.MatchLabels = rapid.MapOfN(rapid.SampledFrom([]string{"x", "y", "z"}), rapid.SampledFrom([]string{"1", "2"}), 0, 2).Draw(t, "labels")
		}
		return ref
	}), 0, 4).Draw(t, "refs")
}

func text(t *rapid.T, spec lockv1alpha1.GateLockSpec) string {
	out, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestSharesAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := lockv1alpha1.GateLockSpec{}
		model := map[string]Part{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			gate := "ns/" + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "gate")
			if was, ok := model[gate]; ok {
				Remove(&spec, gate, was)
				delete(model, gate)
			}
			if rapid.Bool().Draw(t, "put") {
				part := NewPart(rapid.Bool().Draw(t, "locked"), refs(t)...)
				Put(&spec, gate, part)
				model[gate] = part
			}
			read := Read(&spec)
			if !maps.EqualFunc(read, model, Part.Equal) {
				t.Fatalf("got %+v, want %+v", read, model)
			}
			// Nothing is left of those that are gone, and the order of the steps is of
			// no matter for look-ups.
			for key, gates := range spec.Targets {
				if len(gates) == 0 {
					t.Fatalf("%s has no gates", key)
				}
			}
			for key, locks := range spec.Labels {
				for _, l := range locks {
					if len(l.Gates) == 0 {
						t.Fatalf("%s has no gates", key)
					}
				}
				if len(locks) == 0 {
					t.Fatalf("%s is empty", key)
				}
			}
			for kind, locks := range spec.Selectors {
				if len(locks) == 0 || slices.ContainsFunc(locks, func(l lockv1alpha1.SelectorLock) bool { return len(l.Gates) == 0 }) {
					t.Fatalf("%s has an entry without gates: %+v", kind, locks)
				}
			}
		}
		for gate, part := range model {
			Remove(&spec, gate, part)
		}
		if got := text(t, spec); got != "{}" {
			t.Fatalf("left: %s", got)
		}
	})
}

func TestLockersMatchIndependentLookup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := lockv1alpha1.GateLockSpec{}
		all := map[string][]v1alpha1.TargetReference{}
		for i := range rapid.IntRange(1, 6).Draw(t, "gates") {
			gate := fmt.Sprintf("ns/%d", i)
			all[gate] = refs(t)
			Put(&spec, gate, NewPart(true, all[gate]...))
		}
		labels := rapid.MapOfN(rapid.SampledFrom([]string{"x", "y", "z"}), rapid.SampledFrom([]string{"1", "2"}), 0, 3).Draw(t, "of object")
		namespace := rapid.MapOf(rapid.Just("x"), rapid.SampledFrom([]string{"1", "2"})).Draw(t, "of namespace")
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "object")
		for gate, targets := range all {
			want := false
			for _, ref := range targets {
				matches := ref.Kind == "Kustomization" && (ref.Name == name || ref.Name == "*")
				for key, value := range ref.MatchLabels {
					matches = matches && labels[key] == value
				}
				if _, has := labels["x"]; len(ref.MatchExpressions) > 0 {
					matches = matches && has
				}
				if ref.NamespaceSelector != nil && len(ref.NamespaceSelector.MatchLabels) > 0 {
					matches = matches && namespace["x"] == ref.NamespaceSelector.MatchLabels["x"]
				}
				want = want || matches
			}
			lockers := Selecting(&spec, Object{Kind: "Kustomization", Name: name, Labels: labels, NamespaceLabels: namespace})
			if got := lookUp(&spec, name, labels)[gate] || slices.Contains(lockers, gate); got != want {
				t.Fatalf("%s locks the object: %t, want %t in %s", gate, got, want, text(t, spec))
			}
		}
	})
}

// lookUp does what the policy in config/lock does for a Kustomization.
func lookUp(spec *lockv1alpha1.GateLockSpec, name string, labels map[string]string) map[string]bool {
	found := map[string]bool{}
	for _, key := range []string{"Kustomization/" + name, "Kustomization/*"} {
		for _, gate := range spec.Targets[key] {
			found[gate] = true
		}
	}
	for key, value := range labels {
		for _, l := range spec.Labels["Kustomization/"+key+"="+value] {
			matches := true
			for key, value := range l.MatchLabels {
				has, ok := labels[key]
				matches = matches && ok && has == value
			}
			for _, gate := range l.Gates {
				found[gate] = found[gate] || matches
			}
		}
	}
	return found
}
