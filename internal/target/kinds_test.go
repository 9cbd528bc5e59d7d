package target_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/internal/target"
)

func TestKindsAreParsedOrRefusedWithOneError(t *testing.T) {
	for name, tc := range map[string]struct {
		values    []string
		want, err string
	}{
		"no kind":                        {nil, "", ""},
		"suspend is the default":         {[]string{"batch/CronJob"}, "batch/CronJob", ""},
		"the default may be named":       {[]string{"batch/CronJob=spec.suspend"}, "batch/CronJob", ""},
		"another field":                  {[]string{"argoproj.io/Rollout=spec.paused"}, "argoproj.io/Rollout=spec.paused", ""},
		"several, with blanks":           {[]string{"batch/CronJob", " apps/Deployment=spec.paused "}, "batch/CronJob apps/Deployment=spec.paused", ""},
		"nothing":                        {[]string{""}, "", `"": must be group/Kind or group/Kind=spec.field`},
		"a kind alone":                   {[]string{"CronJob"}, "", "must be group/Kind"},
		"no group":                       {[]string{"/Pod"}, "", "must be group/Kind"},
		"a group that is none":           {[]string{"Batch_/CronJob"}, "", "must be group/Kind"},
		"a version":                      {[]string{"batch/v1/CronJob"}, "", "must not have a version: write batch/CronJob"},
		"a resource":                     {[]string{"batch/cronjobs"}, "", `the kind must be written as in manifests, such as CronJob, not "cronjobs"`},
		"the core group":                 {[]string{"core/Pod"}, "", "kinds of the core group, such as Pod, cannot be held"},
		"a Gate":                         {[]string{"gating.toolkit.fluxcd.io/Gate"}, "", "gates cannot hold"},
		"a field outside of spec":        {[]string{"a.b/C=status.paused"}, "", `must be in spec, such as spec.paused, not "status.paused"`},
		"a field two levels down":        {[]string{"a.b/C=spec.a.paused"}, "", "must be in spec"},
		"an empty field":                 {[]string{"a.b/C="}, "", `not ""`},
		"a built-in kind":                {[]string{"helm.toolkit.fluxcd.io/HelmRelease"}, "", "kind HelmRelease of helm.toolkit.fluxcd.io is built in"},
		"the name of a built-in kind":    {[]string{"infra.example.org/Kustomization"}, "", "kind Kustomization of kustomize.toolkit.fluxcd.io is built in, and kinds must have different names"},
		"the same kind twice":            {[]string{"batch/CronJob", "a.b/Widget", " batch/CronJob=spec.suspend"}, "batch/CronJob a.b/Widget", ""},
		"one kind with two fields":       {[]string{"batch/CronJob", "batch/CronJob=spec.paused"}, "", `"batch/CronJob=spec.paused": kind CronJob of batch is already configured with field spec.suspend; only one field per kind is allowed`},
		"one name in two groups":         {[]string{"a.b/Widget", "c.d/Widget"}, "", "a.b/Widget is already configured; kinds must have different names"},
		"a good one does not save a bad": {[]string{"batch/CronJob", "x"}, "", "must be group/Kind"},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, err := target.ParseKinds(tc.values)
			var got []string
			for _, k := range kinds {
				got = append(got, k.String())
			}
			switch {
			case tc.err == "" && (err != nil || strings.Join(got, " ") != tc.want):
				t.Errorf("got %q, %v", got, err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "\n") || len(kinds) > 0):
				t.Errorf("got %q, error %v, want %q", got, err, tc.err)
			}
		})
	}
}

// added adds kinds for one test. Parallel tests run after it.
func added(t *testing.T, values ...string) {
	t.Helper()
	kinds, err := target.ParseKinds(values)
	if err != nil {
		t.Fatal(err)
	}
	target.SetKinds(kinds...)
	t.Cleanup(func() { target.SetKinds() })
}

func TestAddedKindIsHeldByItsField(t *testing.T) {
	added(t, "argoproj.io/Rollout=spec.paused")
	rollout := func(spec map[string]any, owners ...metav1.ManagedFieldsEntry) *target.Object {
		obj := &target.Object{Unstructured: unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": map[string]any{"name": "web", "namespace": "shop"}, "spec": spec,
		}}}
		obj.SetManagedFields(owners)
		target.Trim(&obj.Unstructured, identity)
		return obj
	}
	paused := `{"f:spec":{"f:paused":{}}}`
	adapter, err := target.For("", "Rollout")
	if err != nil || !target.Suspends(adapter) {
		t.Fatal(adapter, err)
	}
	for name, tc := range map[string]struct {
		obj  *target.Object
		want target.State
	}{
		"paused by us":               {rollout(map[string]any{"paused": true, "replicas": int64(3)}, owner(manager, apply, "", paused)), target.Held},
		"paused by a person":         {rollout(map[string]any{"paused": true}, owner("kubectl", update, "", paused)), target.SuspendedByOthers},
		"not paused":                 {rollout(map[string]any{"paused": false}), target.Free},
		"suspended, not paused":      {rollout(map[string]any{"suspend": true}, owner(manager, apply, "", suspendField)), target.Free},
		"without the field":          {rollout(map[string]any{}), target.Free},
		"the field is not a boolean": {rollout(map[string]any{"paused": "yes"}), target.Free},
	} {
		t.Run(name, func(t *testing.T) {
			if got := adapter.Observe(tc.obj, identity); got != tc.want {
				t.Errorf("got state %d, want %d", got, tc.want)
			}
		})
	}
	free := rollout(map[string]any{})
	if lever := adapter.Plan(free, target.Free, target.Terms{}, time.Time{}).Lever; len(lever) != 1 || lever["paused"] != true {
		t.Errorf("it is held by %v", lever)
	}
	held := rollout(map[string]any{"paused": true, "replicas": int64(3)}, owner("kubectl", update, "", paused))
	if lever := target.Lever(held); lever["paused"] != true || held.Object["spec"].(map[string]any)["replicas"] != nil {
		t.Errorf("trimmed, it is %v, held by %v", held.Object, lever)
	}
	if others := target.OtherOwners(&held.Unstructured, identity); len(others) != 1 || others[0].Manager != "kubectl" {
		t.Errorf("others are %v", others)
	}
}

func TestAddedKindsAreReplaced(t *testing.T) {
	before := len(target.All())
	added(t, "batch/CronJob", "argoproj.io/Rollout=spec.paused")
	if got := len(target.All()); got != before+2 {
		t.Errorf("%d kinds, want %d", got, before+2)
	}
	if k, ok := target.Added(schema.GroupKind{Group: "batch", Kind: "CronJob"}); !ok || k.String() != "batch/CronJob" || !k.IsBuiltIn() {
		t.Errorf("got %v, %t", k, ok)
	}
	if _, ok := target.Added(schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}); ok {
		t.Error("a built-in kind counts as added")
	}
	var names []string
	for _, k := range target.AddedKinds() {
		names = append(names, k.String())
	}
	if want := []string{"batch/CronJob", "argoproj.io/Rollout=spec.paused"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	target.SetKinds()
	if _, err := target.For("batch/v1", "CronJob"); len(target.All()) != before || err == nil ||
		err.Error() != "kind CronJob of batch/v1 is not supported: if a boolean field suspends its objects, start the controller with --suspend-kinds=batch/CronJob" {
		t.Errorf("%d kinds, %v", len(target.All()), err)
	}
}
