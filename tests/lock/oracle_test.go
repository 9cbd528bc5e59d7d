package lock

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The policy and the controller implement the same rules in two languages, and must agree.
func TestPolicyAndControllerGovernSameObjects(t *testing.T) {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick, labels := draws(random)
	held, initially, byOverlay := 0, 0, map[bool]int{}
	for range 16 {
		spec := lockv1alpha1.GateLockSpec{}
		refs := map[string][]v1alpha1.TargetReference{}
		locked, initial := map[string]bool{}, map[string]bool{}
		overlaid := map[string][4][]v1alpha1.TargetReference{} // in order of precedence, those at even indexes lock
		draw := func() v1alpha1.TargetReference {
			ref := v1alpha1.TargetReference{Kind: pick("Kustomization", "HelmRelease"), Name: pick("*", "*", "app", "other")}
			if ref.Name == "*" {
				ref.MatchLabels = labels(2)
				ref.MatchExpressions = expressions(random, 2)
			}
			return ref
		}
		for _, gate := range []string{w.gate("a"), w.gate("b"), "ops/a", "ops/c-d.e"} {
			locked[gate] = random.IntN(3) == 0
			for range random.IntN(3) {
				refs[gate] = append(refs[gate], draw())
			}
			part := lock.NewPart(locked[gate], refs[gate]...)
			part.Initial = random.IntN(4) == 0
			initial[gate] = part.Initial
			var overlays [4][]v1alpha1.TargetReference
			for range random.IntN(8) {
				i, ref := random.IntN(4), draw()
				overlays[i] = append(overlays[i], ref)
				part.AddOverlay(i%2 == 0, i < 2, []v1alpha1.TargetReference{ref}, []string{pick("", w.Namespace)}, refs[gate])
			}
			overlaid[gate] = overlays
			lock.Put(&spec, gate, part)
		}
		w.lock(spec)
		for range 40 {
			app := w.inGit(pick("app", "other", "third"))
			app.SetLabels(labels(3))
			var names []string
			for range random.IntN(4) {
				names = append(names, pick("a", "b", "c", "ops/a", "ops/c-d.e", w.gate("a"), " b ", "", "\ta", "A", "a b", "a/b/c", "/a", "ops/", "*", strings.Repeat("a,", 40), strings.Repeat("n", 254),
					strings.Repeat(",", 198), strings.Repeat(",", 200), strings.Repeat(" ", 11000), strings.Repeat("\u2003", 12000)))
			}
			value := strings.Join(names, ",")
			app.SetAnnotations(map[string]string{v1alpha1.GatesAnnotation: value})

			matching := func(ref v1alpha1.TargetReference) bool { return matches(ref, app.GetName(), app.GetLabels()) }
			governing := target.ParseGates(value, w.Namespace)
			for gate, refs := range refs {
				if slices.ContainsFunc(refs, matching) {
					governing = append(governing, gate)
				}
			}
			var want []string
			for _, gate := range governing {
				is, known := locked[gate]
				overlays := overlaid[gate]
				first := slices.IndexFunc(overlays[:], func(refs []v1alpha1.TargetReference) bool { return slices.ContainsFunc(refs, matching) })
				switch {
				case initial[gate]:
					initially++
				case first >= 0:
					if first%2 == 0 {
						want = append(want, gate)
					}
					byOverlay[!is]++
				case is, !known:
					want = append(want, gate)
				}
			}
			object := lock.Object{
				Kind: "Kustomization", Namespace: w.Namespace, Name: app.GetName(), Labels: app.GetLabels(), Gates: target.ParseGates(value, w.Namespace), Initial: true,
			}
			if got := lock.Lockers(&spec, object); target.FormatHeldBy(got) != target.FormatHeldBy(want) {
				t.Errorf("%s with labels %v that names %q: the controller finds it locked by %q, want %q", app.GetName(), app.GetLabels(), value, got, want)
			}
			w.Must(w.Client.Create(w.Context(), app, client.DryRunAll))
			if got := harness.HeldBy(app); got != target.FormatHeldBy(want) || harness.Suspended(app) != (len(want) > 0) {
				t.Errorf("%s with labels %v that names %q: suspended %t, held by %q, want %q", app.GetName(), app.GetLabels(), value, harness.Suspended(app), got, want)
			}
			if len(want) > 0 {
				held++
			}
		}
	}
	if byOverlay[true] < 10 || byOverlay[false] < 10 {
		t.Errorf("too few overlays matter: %v", byOverlay)
	}
	if initially < 40 {
		t.Errorf("only %d gates allow an initial reconciliation", initially)
	}
	if held < 40 || held > 560 {
		t.Errorf("%d of 640 held, want a mix", held)
	}
}

func matches(ref v1alpha1.TargetReference, name string, labels map[string]string) bool {
	if ref.Kind != "Kustomization" || (ref.Name != "*" && ref.Name != name) {
		return false
	}
	return selects(ref.Selector(), labels)
}

// selects implements a label selector.
func selects(selector *metav1.LabelSelector, labels map[string]string) bool {
	for key, value := range selector.MatchLabels {
		if has, ok := labels[key]; !ok || has != value {
			return false
		}
	}
	for _, e := range selector.MatchExpressions {
		has, ok := labels[e.Key]
		if ok = map[metav1.LabelSelectorOperator]bool{
			metav1.LabelSelectorOpIn: ok && slices.Contains(e.Values, has), metav1.LabelSelectorOpNotIn: !ok || !slices.Contains(e.Values, has),
			metav1.LabelSelectorOpExists: ok, metav1.LabelSelectorOpDoesNotExist: !ok,
		}[e.Operator]; !ok {
			return false
		}
	}
	return true
}

// draws returns a function that picks one of several texts, and one that creates at most a number of labels.
func draws(random *rand.Rand) (pick func(...string) string, labels func(most int) map[string]string) {
	pick = func(from ...string) string { return from[random.IntN(len(from))] }
	return pick, func(most int) map[string]string {
		all := map[string]string{}
		for range random.IntN(most + 1) {
			all[pick("x", "y", "example.com/z")] = pick("1", "2", "")
		}
		return all
	}
}

// expressions returns some random expressions about a few labels.
func expressions(random *rand.Rand, most int) []v1alpha1.LabelSelectorRequirement {
	var all []v1alpha1.LabelSelectorRequirement
	for range random.IntN(most + 1) {
		e := v1alpha1.LabelSelectorRequirement{
			Key: []string{"x", "y", "example.com/z"}[random.IntN(3)],
			Operator: []metav1.LabelSelectorOperator{
				metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
			}[random.IntN(4)],
		}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			e.Values = []string{"1", "2", ""}[:1+random.IntN(3)]
		}
		all = append(all, e)
	}
	return all
}
