package check_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/target"
)

// published returns the OpenAPI document that an API server would publish for our CRDs, after a change.
func published(t *testing.T, change func(kind string, schema map[string]any)) []byte {
	t.Helper()
	schemas := map[string]any{}
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := object(t, string(raw))
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		schema, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema")
		schema["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": v1alpha1.GroupVersion.Group, "kind": kind, "version": "v1alpha1"}}
		if change(kind, schema); schema["properties"] != nil {
			schemas[kind] = schema
		}
	}
	raw, err := json.Marshal(map[string]any{"components": map[string]any{"schemas": schemas}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestCRDsOfAnotherReleaseAreFound(t *testing.T) {
	finds(t, check.Definitions(published(t, func(string, map[string]any) {})))
	finds(t, check.Definitions(nil), "error CustomResourceDefinitions: the API server does not serve gating.toolkit.fluxcd.io/v1alpha1")
	finds(t, check.Definitions([]byte("<html>")), "warning CustomResourceDefinitions: their OpenAPI document cannot be read")
	older := published(t, func(kind string, schema map[string]any) {
		if kind == "Gate" {
			unstructured.RemoveNestedField(schema, "properties", "status", "properties", "history")
			unstructured.RemoveNestedField(schema, "properties", "spec", "properties", "openPeriods", "items", "properties", "schedule")
		}
	})
	finds(t, check.Definitions(older), "error CustomResourceDefinition gates.gating.toolkit.fluxcd.io: it is older than this plugin, and lacks spec.openPeriods.schedule, status.history")
	newer := published(t, func(kind string, schema map[string]any) {
		if kind == "GateException" {
			_ = unstructured.SetNestedField(schema, map[string]any{}, "properties", "spec", "properties", "weather")
		}
	})
	finds(t, check.Definitions(newer), "warning CustomResourceDefinition gateexceptions.gating.toolkit.fluxcd.io: it is newer than this plugin, which does not support spec.weather")
	var kinds []string
	published(t, func(kind string, _ map[string]any) { kinds = append(kinds, kind) })
	for _, missing := range kinds {
		gone := published(t, func(kind string, schema map[string]any) {
			if kind == missing {
				delete(schema, "properties")
			}
		})
		finds(t, check.Definitions(gone), "error CustomResourceDefinition "+strings.ToLower(missing)+"s.gating.toolkit.fluxcd.io: it is missing")
	}
}

// installed returns the policies in folders of config.
func installed(t *testing.T, folders ...string) (all check.Admission) {
	t.Helper()
	for _, folder := range folders {
		files, _ := filepath.Glob("../../config/" + folder + "/*.yaml")
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for part := range strings.SplitSeq(string(raw), "\n---\n") {
				var fields map[string]any
				if err := yaml.Unmarshal([]byte(part), &fields); err != nil {
					t.Fatal(err)
				}
				if u := (unstructured.Unstructured{Object: fields}); strings.Contains(u.GetKind(), "AdmissionPolicy") {
					all = append(all, u)
				}
			}
		}
	}
	return all
}

func deployment(t *testing.T, change string) check.Controller {
	t.Helper()
	manifest := `
kind: Deployment
apiVersion: apps/v1
metadata: {namespace: gating-system, name: gating-controller}
spec: {replicas: 2, template: {spec: {serviceAccountName: gating-controller, containers: [
  {image: "registry:5000/gating-controller:v0.1.0@sha256:1", args: [--enable-leader-election]}]}}}
status: {readyReplicas: 2}`
	if from, to, ok := strings.Cut(change, " -> "); ok {
		if !strings.Contains(manifest, from) {
			t.Fatalf("%q is not in the manifest", from)
		}
		manifest = strings.Replace(manifest, from, to, 1)
	}
	return check.ControllerOf(object(t, manifest))
}

func TestStoppedControllerIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		change, version string
		want            []string
	}{
		"all replicas are ready":  {"", "v0.1.0", nil},
		"none of them":            {"readyReplicas: 2 -> x: 1", "v0.1.0", []string{"error Deployment gating-system/gating-controller: no replica of 2 is ready"}},
		"one of them":             {"readyReplicas: 2 -> readyReplicas: 1", "v0.1.0", []string{"warning Deployment gating-system/gating-controller: 1 of 2 replicas are ready"}},
		"scaled to 0":             {"replicas: 2 -> replicas: 0", "v0.1.0", []string{"error Deployment gating-system/gating-controller: it is scaled to 0"}},
		"of another release":      {"", "v0.2.0", []string{"warning Deployment gating-system/gating-controller: it is v0.1.0, and this plugin is v0.2.0"}},
		"a plug-in of no release": {"", "(devel)", nil},
		"an image without a tag":  {":v0.1.0@ -> @", "v0.2.0", nil},
		"an image of no release":  {":v0.1.0@ -> :main@", "v0.2.0", nil},
		"a registry with no tag":  {"/gating-controller:v0.1.0@sha256:1 -> /gating-controller", "v0.2.0", nil},
	} {
		t.Run(name, func(t *testing.T) {
			finds(t, check.Controllers([]check.Controller{deployment(t, tc.change)}, tc.version, false), tc.want...)
		})
	}
	for image, want := range map[string]string{"": "v0.1.0", ":v0.1.0@ -> @": "", "registry:5000/gating-controller:v0.1.0@sha256:1 -> registry:5000/gating-controller": ""} {
		if c := deployment(t, image); c.Version != want || c.Replicas != 2 {
			t.Errorf("%s: %+v", image, c)
		}
	}
	finds(t, check.Controllers(nil, "v0.1.0", false), "error Deployment gating-controller: there is no Deployment")
	finds(t, check.Controllers(nil, "v0.1.0", true), "warning Deployment gating-controller: no Deployment of the controller was found, but Gates are reconciled: it runs elsewhere")
}

func TestLeaseOrDecidedGatesProveController(t *testing.T) {
	decided := gate("decided")
	decided.Status.Conditions = []metav1.Condition{{Type: "Opened"}}
	next, edited, suspended := decided, decided, gate("suspended")
	next.Status.NextTransition = &v1alpha1.Transition{At: metav1.NewTime(noon.Add(-10 * time.Second))}
	late := next
	late.Status.NextTransition = &v1alpha1.Transition{At: metav1.NewTime(noon.Add(-2 * time.Minute))}
	edited.Generation, suspended.Spec.Suspend = 2, true
	const id = "gating-controller-leader-election"
	fresh, stale, other := lease(t, id, "pod-1", noon), lease(t, id, "pod-1", noon.Add(-time.Hour)), lease(t, "other", "pod", noon)
	for name, tc := range map[string]struct {
		gates  []v1alpha1.Gate
		leases []unstructured.Unstructured
		want   bool
	}{
		"nothing":                               {nil, nil, false},
		"a lease that is renewed":               {nil, []unstructured.Unstructured{stale, fresh}, true},
		"a lease of another program":            {nil, []unstructured.Unstructured{other}, false},
		"Gates that are decided":                {[]v1alpha1.Gate{decided, next, suspended}, nil, true},
		"one that is not reconciled":            {[]v1alpha1.Gate{suspended}, nil, false},
		"one that is not decided as it is":      {[]v1alpha1.Gate{decided, edited}, nil, false},
		"one that was never decided":            {[]v1alpha1.Gate{gate("new")}, nil, false},
		"one that should have changed":          {[]v1alpha1.Gate{decided, late}, nil, false},
		"decided Gates, and nobody leads since": {[]v1alpha1.Gate{decided}, []unstructured.Unstructured{stale}, false},
	} {
		if got := check.SignOfLife(tc.gates, tc.leases, noon); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func lease(t *testing.T, name, holder string, at time.Time) unstructured.Unstructured {
	t.Helper()
	return *object(t, "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {namespace: gating-system, name: "+name+
		"}\nspec: {leaseDurationSeconds: 15, holderIdentity: '"+holder+"', renewTime: '"+at.Format("2006-01-02T15:04:05.000000Z")+"'}")
}

func TestMissingLeaderIsFound(t *testing.T) {
	one, two := []check.Controller{deployment(t, "")}, []check.Controller{deployment(t, ""), deployment(t, "name: gating-controller} -> name: shard}")}
	none := []check.Controller{deployment(t, "args: [--enable-leader-election] -> args: []")}
	const id = "gating-controller-leader-election"
	fresh, stale := lease(t, id, "pod-1", noon.Add(-5*time.Second)), lease(t, id, "pod-1", noon.Add(-31*time.Second))
	for name, tc := range map[string]struct {
		controllers []check.Controller
		leases      []unstructured.Unstructured
		want        []string
	}{
		"it is renewed":                    {one, []unstructured.Unstructured{fresh}, nil},
		"it was renewed long ago":          {one, []unstructured.Unstructured{stale}, []string{"error Lease gating-system/" + id + ": pod-1 renewed it last at 2026-11-23T11:59:29Z: no controller leads"}},
		"it was given back":                {one, []unstructured.Unstructured{lease(t, id, "", noon)}, []string{"error Lease gating-system/" + id + ": it has no holder"}},
		"there is none":                    {one, nil, []string{"error Lease gating-system/" + id + ": it does not exist"}},
		"another program has one":          {one, []unstructured.Unstructured{lease(t, "other", "pod", noon)}, []string{"error Lease gating-system/" + id + ": it does not exist"}},
		"none is needed":                   {none, nil, nil},
		"of two shards, one":               {two, []unstructured.Unstructured{fresh, lease(t, id+"-2", "pod-2", noon.Add(-time.Hour))}, []string{"error Lease gating-system/" + id + "-2: pod-2 renewed it last"}},
		"of two shards, both":              {two, []unstructured.Unstructured{fresh, lease(t, id+"-2", "pod-2", noon)}, nil},
		"of a shard that is no more":       {one, []unstructured.Unstructured{fresh, lease(t, id+"-2", "pod-2", noon.Add(-time.Hour))}, nil},
		"a controller that is scaled to 0": {[]check.Controller{deployment(t, "replicas: 2 -> replicas: 0")}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) { finds(t, check.Leases(tc.controllers, tc.leases, noon), tc.want...) })
	}
}

func without(all check.Admission, kind, name string) check.Admission {
	return slices.DeleteFunc(slices.Clone(all), func(u unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
}

// The check knows all policies in config: it reports each one that is missing.
func TestMissingPoliciesAreFound(t *testing.T) {
	controllers := []check.Controller{deployment(t, "")}
	older := slices.DeleteFunc(installed(t, "policies", "policies-1.30"), func(u unstructured.Unstructured) bool {
		return strings.HasPrefix(u.GetKind(), "Mutating") || slices.Contains([]string{"gate-exception-stamp", "gated-source-stamp", "gate-approval"}, u.GetName())
	})
	finds(t, check.Policies(installed(t, "policies"), controllers, nil))
	finds(t, check.Lock(installed(t, "lock"), true, controllers))
	finds(t, check.Policies(older, controllers, nil), "note policies-1.30: requests have no requester")
	for _, set := range []check.Admission{installed(t, "policies"), installed(t, "lock"), older} {
		for _, u := range set {
			rest := without(set, u.GetKind(), u.GetName())
			want := "error " + u.GetKind() + " " + u.GetName() + ": it is missing"
			if kind, ok := strings.CutSuffix(u.GetKind(), "Binding"); ok && !strings.HasPrefix(u.GetName(), "gate-hold") && !strings.HasPrefix(u.GetName(), "gate-overlay-verb") {
				want = "error " + kind + " " + u.GetName() + ": no binding"
			}
			found := append(check.Policies(rest, controllers, nil), check.Lock(rest, true, nil)...)
			if !slices.ContainsFunc(found, func(f check.Finding) bool { return strings.HasPrefix("error "+f.Object+": "+f.Message, want) }) && u.GetName() != "gate-request-by" {
				t.Errorf("without %s %s: %v", u.GetKind(), u.GetName(), found)
			}
		}
	}
}

func TestIneffectivePoliciesAreFound(t *testing.T) {
	asks := gate("production")
	asks.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 2}}
	elsewhere := check.ControllerOf(object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: flux-system, name: ours}, spec: {template: {spec: {serviceAccountName: gating-controller}}}}"))
	finds(t, check.Policies(nil, nil, nil), "warning policies: they are not installed")
	none := gate("other")
	none.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{}}
	finds(t, check.Policies(nil, nil, []v1alpha1.Gate{asks, none, gate("another")}), "warning policies: they are not installed", "error Gate flux-system/production: it requires 2 approvals of its GateExceptions")
	finds(t, check.Policies(installed(t, "policies"), nil, []v1alpha1.Gate{asks}))
	found := check.Policies(installed(t, "policies"), []check.Controller{elsewhere}, nil)
	if len(found) == 0 || !strings.Contains(found[0].Message, "it does not exempt system:serviceaccount:flux-system:gating-controller, the user of Deployment flux-system/ours") {
		t.Errorf("%v", found)
	}
	audit := installed(t, "policies")
	for i := range audit {
		if audit[i].GetName() == "gate-edit" && audit[i].GetKind() == "ValidatingAdmissionPolicyBinding" {
			_ = unstructured.SetNestedStringSlice(audit[i].Object, []string{"Audit"}, "spec", "validationActions")
		}
	}
	finds(t, check.Policies(audit, nil, nil), "error ValidatingAdmissionPolicy gate-edit: no binding with the action Deny")
	finds(t, check.Lock(nil, false, nil), "note lock: it is not installed")
	finds(t, check.Lock(installed(t, "lock"), false, nil), "error CustomResourceDefinition gatelocks: it is missing")
}

func TestHeldKindsAreListed(t *testing.T) {
	var all []string
	for _, a := range target.All() {
		all = append(all, a.GroupKind().String())
	}
	finds(t, check.Kinds(all), "note kinds: all supported kinds are installed")
	finds(t, check.Kinds([]string{"Deployment.apps"}), "warning kinds: none of the supported kinds")
	finds(t, check.Kinds([]string{"Kustomization.kustomize.toolkit.fluxcd.io"}), "note kinds: Gates hold Kustomization; not installed: Bucket, Certificate, ")
}

func TestPermissionsAreReportedOncePerCommand(t *testing.T) {
	var denied []check.Right
	for _, r := range check.Rights {
		if r.Command != "list" {
			denied = append(denied, r)
		}
	}
	finds(t, check.Permissions(denied, "flux-system"),
		`note you: you may not patch and open gates in namespace "flux-system", which kubectl gate open needs`,
		`note you: you may not patch and close gates`, `note you: you may not create gateexceptions`, `note you: you may not patch and approve gateexceptions`)
	finds(t, check.Permissions(nil, "flux-system"))
}

func TestWorstFindingIsFirst(t *testing.T) {
	found := []check.Finding{{check.Note, "a", "", ""}, {check.Error, "b", "", ""}, {check.Warning, "c", "", ""}, {check.Error, "d", "", ""}}
	check.Sort(found)
	finds(t, found, "error b", "error d", "warning c", "note a")
}
