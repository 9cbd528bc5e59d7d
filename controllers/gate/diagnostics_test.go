package gate

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/record"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// selectable is a TargetReader of objects in memory. It counts the evaluations of references.
type selectable struct {
	view.TargetReader
	objects   []*target.Object
	evaluated int
}

// Readable implements view.TargetReader.
func (*selectable) Readable(context.Context, target.Adapter) error { return nil }

// Select implements view.TargetReader.
func (s *selectable) Select(_ context.Context, adapter target.Adapter, namespace string, ref *v1alpha1.TargetReference) (found []*target.Object, err error) {
	for _, obj := range s.objects {
		if obj.GroupVersionKind().GroupKind() == adapter.GroupKind() && (namespace == "" || namespace == obj.GetNamespace()) &&
			(ref.Name == v1alpha1.AnyName || ref.Name == obj.GetName()) && verdict.Matches(ref.Selector(), obj.GetLabels()) {
			found = append(found, obj)
		}
	}
	return found, nil
}

// Any implements view.TargetReader.
func (s *selectable) Any(ctx context.Context, adapter target.Adapter, namespace string, ref *v1alpha1.TargetReference) (bool, error) {
	s.evaluated++
	found, err := s.Select(ctx, adapter, namespace, ref)
	return len(found) > 0, err
}

// diagnosed is a Gate of namespace flux-system with its diagnostics.
type diagnosed struct {
	diagnostics
	*selectable
	gate *v1alpha1.Gate
	fake *record.FakeRecorder
}

// newDiagnosed returns a closed Gate with references. There is one object, the Kustomization apps with the label tier=web.
func newDiagnosed(refs ...v1alpha1.TargetReference) *diagnosed {
	apps := newKustomization("flux-system", "apps")
	apps.SetLabels(map[string]string{"tier": "web"})
	d := &diagnosed{selectable: &selectable{objects: []*target.Object{apps}}, fake: record.NewFakeRecorder(10)}
	d.gate = newGate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: refs, Interval: *duration(hours(24))})
	d.gate.UID, d.gate.Generation = "1", 1
	d.restart()
	return d
}

// restart loses the state in memory.
func (d *diagnosed) restart() {
	selector := &view.Selector{Scopes: view.Scopes{Reach: view.Reach{AllowCrossNamespaceRefs: true}}, Targets: d.selectable}
	d.diagnostics = diagnostics{selector, &State{}, &Appliers{}, d.fake, events.MustMakeMetrics(prometheus.NewRegistry())}
	d.state.add(d.gate, start)
}

// at reports on the Gate at a time after start, with some pending targets. It returns the condition Ready, the warning, and the next check.
func (d *diagnosed) at(after time.Duration, pending int64) (ready, warning string, recheck time.Duration) {
	now, before := start.Add(after), d.gate.DeepCopy()
	d.state.isDue(d.gate, false, now)
	sums := summary.Sums{Total: int64(len(d.objects)), Pending: pending}
	p := &gate.Progress{Targets: targetCounts(sums), Settled: sums.IsSettled()}
	found := d.check(context.Background(), before, d.gate, sums, now)
	if found != nil {
		if p.Unmatched = found.message; !found.recheck.IsZero() {
			recheck = found.recheck.Sub(start)
		}
	}
	d.gate.Status = gate.NewSnapshot(d.gate, nil).Resolve(gate.Observed{}, now).Status(p)
	d.report(before, d.gate, found, now)
	select {
	case warning = <-d.fake.Events:
	default:
	}
	return conditions.GetReason(d.gate, meta.ReadyCondition) + ": " + conditions.GetMessage(d.gate, meta.ReadyCondition), warning, recheck
}

func reference(kind, name, namespace string, labels ...string) v1alpha1.TargetReference {
	ref := v1alpha1.TargetReference{Kind: kind, Name: name, Namespace: namespace}
	for i := 0; i < len(labels); i += 2 {
		ref.MatchLabels = map[string]string{labels[i]: labels[i+1]}
	}
	return ref
}

func TestUnmatchedReferencesAreNamed(t *testing.T) {
	one := func(name string) v1alpha1.TargetReference { return reference("Kustomization", name, "") }
	for name, tc := range map[string]struct {
		refs []v1alpha1.TargetReference
		want string
	}{
		"missing":                       {[]v1alpha1.TargetReference{one("app")}, "1 of 1 entries of spec.targets matches nothing: spec.targets[0] Kustomization app;"},
		"existing":                      {[]v1alpha1.TargetReference{one("apps")}, ""},
		"missing in another namespace":  {[]v1alpha1.TargetReference{reference("Kustomization", "apps", "shop")}, "1 of 1 entries of spec.targets matches nothing: spec.targets[0] Kustomization apps in shop"},
		"existing in another namespace": {[]v1alpha1.TargetReference{reference("Kustomization", "there", "other")}, ""},
		"all of a kind without objects": {[]v1alpha1.TargetReference{reference("HelmRelease", "*", "")}, "1 of 1 entries of spec.targets matches nothing: spec.targets[0] HelmRelease *;"},
		"all of a kind":                 {[]v1alpha1.TargetReference{one("*")}, ""},
		"matching labels":               {[]v1alpha1.TargetReference{reference("Kustomization", "*", "", "tier", "web")}, ""},
		"other labels":                  {[]v1alpha1.TargetReference{reference("Kustomization", "*", "", "tier", "wep")}, "1 of 1 entries of spec.targets matches nothing: spec.targets[0] Kustomization * with tier=wep;"},
		"existing in any namespace":     {[]v1alpha1.TargetReference{reference("Kustomization", "there", "*")}, ""},
		"missing in all namespaces":     {[]v1alpha1.TargetReference{reference("Kustomization", "nowhere", "*")}, "1 of 1 entries of spec.targets matches nothing: spec.targets[0] Kustomization nowhere in all namespaces;"},
		"two of three":                  {[]v1alpha1.TargetReference{one("a"), one("apps"), one("b")}, "2 of 3 entries of spec.targets match nothing: spec.targets[0] Kustomization a, spec.targets[2] Kustomization b;"},
		"more than five":                {[]v1alpha1.TargetReference{one("a"), one("b"), one("c"), one("d"), one("e"), one("f"), one("g")}, "spec.targets[4] Kustomization e and 2 more;"},
		"no references":                 {nil, ""},
		"a kind with a fault":           {[]v1alpha1.TargetReference{reference("Secret", "x", "")}, ""},
	} {
		d := newDiagnosed(tc.refs...)
		d.objects = append(d.objects, newKustomization("other", "there"))
		if _, _, recheck := d.at(0, 0); (recheck == emptyFor) != (tc.want != "") {
			t.Errorf("%s: the next check is after %s", name, recheck)
		}
		ready, _, _ := d.at(emptyFor, 0)
		if strings.HasPrefix(ready, v1alpha1.NoTargetsReason) != (tc.want != "") || !strings.Contains(ready, tc.want) {
			t.Errorf("%s: %s", name, ready)
		}
	}
}

// References that matched something are evaluated again if there are fewer targets, or at a resync. Others are evaluated each time.
func TestMatchedReferencesAreNotEvaluatedAgain(t *testing.T) {
	d := newDiagnosed(reference("Kustomization", "*", ""), reference("Kustomization", "*", "", "tier", "db"))
	for _, step := range []struct {
		what      string
		change    func()
		at        time.Duration
		evaluated int
	}{
		{"at first", func() {}, 0, 2},
		{"more targets", func() { d.objects = append(d.objects, newKustomization("flux-system", "more")) }, 0, 1},
		{"fewer targets", func() { d.objects = d.objects[1:] }, 0, 2},
		{"no change", func() {}, time.Second, 1},
		{"another spec", func() { d.gate.Generation++ }, time.Second, 2},
		{"a resync", func() {}, hours(24), 2},
	} {
		step.change()
		d.evaluated = 0
		if d.at(step.at, 0); d.evaluated != step.evaluated {
			t.Errorf("%s: %d evaluations, want %d", step.what, d.evaluated, step.evaluated)
		}
	}
}

// While targets are pending, the condition Ready has another reason.
func TestUnmatchedReferenceIsReportedOnce(t *testing.T) {
	d := newDiagnosed(reference("Kustomization", "app", ""))
	for _, step := range []struct {
		what      string
		change    func()
		at        time.Duration
		pending   int64
		isEmpty   bool
		isWarning bool
	}{
		{"at first", func() {}, 0, 0, false, false},
		{"just before a minute", func() {}, emptyFor - 1, 0, false, false},
		{"after a minute", func() {}, emptyFor, 0, true, true},
		{"a target is pending", func() {}, 2 * emptyFor, 1, false, false},
		{"all targets are settled", func() {}, 3 * emptyFor, 0, true, false},
		{"after a restart", d.restart, 4 * emptyFor, 0, true, false},
		{"it matches", func() { d.objects = append(d.objects, newKustomization("flux-system", "app")) }, 5 * emptyFor, 0, false, false},
		{"it is unmatched again", func() { d.objects = d.objects[:1] }, 6 * emptyFor, 0, false, false},
		{"for another minute", func() {}, 7 * emptyFor, 0, true, true},
	} {
		step.change()
		ready, warning, _ := d.at(step.at, step.pending)
		if strings.HasPrefix(ready, v1alpha1.NoTargetsReason) != step.isEmpty || strings.HasPrefix(warning, "Warning NoTargets ") != step.isWarning {
			t.Errorf("%s: %s, warning %q", step.what, ready, warning)
		}
	}
}
