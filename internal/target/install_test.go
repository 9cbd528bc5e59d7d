package target_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestObjectsWithoutSuccess(t *testing.T) {
	flux := func(group, kind, fields string) string {
		return `{"apiVersion":"` + group + `.toolkit.fluxcd.io/v1","kind":"` + kind + `","metadata":{"name":"app"},` + fields + `}`
	}
	release := func(statuses string) string {
		return flux("helm", "HelmRelease", `"status":{"history":[`+statuses+`]}`)
	}
	for name, tc := range map[string]struct {
		object string
		want   bool
	}{
		"Kustomization without status":         {flux("kustomize", "Kustomization", `"spec":{}`), true},
		"Kustomization that failed":            {flux("kustomize", "Kustomization", `"status":{"lastAttemptedRevision":"main@1"}`), true},
		"Kustomization that was applied":       {flux("kustomize", "Kustomization", `"status":{"lastAppliedRevision":"main@1"}`), false},
		"Kustomization with a malformed field": {flux("kustomize", "Kustomization", `"status":{"lastAppliedRevision":{}}`), false},
		"HelmRelease without history":          {release(""), true},
		"HelmRelease that failed":              {release(`{"status":"failed","chartVersion":"1"}`), true},
		"HelmRelease that was uninstalled":     {release(`{"status":"pending-install"},{"status":"uninstalled"},{"status":"failed"}`), true},
		"HelmRelease that is deployed":         {release(`{"status":"deployed"}`), false},
		"HelmRelease that was deployed":        {release(`{"status":"failed"},{"status":"superseded"}`), false},
		"HelmRelease in an upgrade":            {release(`{"status":"pending-upgrade"}`), false},
		"HelmRelease with an unknown status":   {release(`{"status":"new in Helm"}`), false},
		"HelmRelease with a malformed release": {release(`"deployed"`), false},
		"HelmRelease with a malformed history": {flux("helm", "HelmRelease", `"status":{"history":"deployed"}`), false},
		"HelmRelease of an old version":        {flux("helm", "HelmRelease", `"status":{"lastAppliedRevision":"1.0.0"}`), false},
		"GitRepository":                        {flux("source", "GitRepository", `"status":{"observedGeneration":1}`), true},
		"GitRepository with an artifact":       {flux("source", "GitRepository", `"status":{"artifact":{"revision":"main@1"}}`), false},
		"OCIRepository with an artifact":       {flux("source", "OCIRepository", `"status":{"artifact":{"revision":"latest@1"}}`), false},
		"Bucket with an artifact":              {flux("source", "Bucket", `"status":{"artifact":{"revision":"1"}}`), false},
		"HelmChart with an artifact":           {flux("source", "HelmChart", `"status":{"artifact":{"revision":"1"}}`), false},
		"HelmRepository":                       {flux("source", "HelmRepository", `"spec":{"type":"default"}`), true},
		"HelmRepository with an artifact":      {flux("source", "HelmRepository", `"status":{"artifact":{"revision":"1"}}`), false},
		"HelmRepository of type oci":           {flux("source", "HelmRepository", `"spec":{"type":"oci"}`), false},
		"ImageRepository":                      {flux("image", "ImageRepository", `"status":{"observedGeneration":1}`), true},
		"ImageRepository with a scan":          {flux("image", "ImageRepository", `"status":{"lastScanResult":{"tagCount":0}}`), false},
		"ImagePolicy":                          {flux("image", "ImagePolicy", `"status":{"observedGeneration":1}`), true},
		"ImagePolicy with a tag":               {flux("image", "ImagePolicy", `"status":{"latestRef":{"name":"a","tag":"1"}}`), false},
		"ImageUpdateAutomation":                {flux("image", "ImageUpdateAutomation", `"status":{"observedGeneration":1}`), true},
		"ImageUpdateAutomation that ran":       {flux("image", "ImageUpdateAutomation", `"status":{"lastAutomationRunTime":"2026-01-01T00:00:00Z"}`), false},
		"ImageUpdateAutomation that pushed":    {flux("image", "ImageUpdateAutomation", `"status":{"lastPushCommit":"1"}`), false},
		"GatedSource without a pin":            {flux("gating", "GatedSource", `"status":{"pending":{"revision":"main@1"}}`), true},
		"GatedSource with a pin":               {flux("gating", "GatedSource", `"status":{"pinned":{"revision":"main@1"}}`), false},
		"Certificate":                          {`{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"name":"app"}}`, false},
		"another kind":                         {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"app"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &target.Object{}
			if err := (&obj.Unstructured).UnmarshalJSON([]byte(tc.object)); err != nil {
				t.Fatal(err)
			}
			for range 2 { // what decides must be in the cache
				target.Trim(&obj.Unstructured, verdict.Us)
				if got := target.IsInitial(obj); got != tc.want {
					t.Errorf("got %t, want %t: %v", got, tc.want, obj.Object)
				}
			}
		})
	}
}

func TestTrimmedHistoryHasOnlyStatuses(t *testing.T) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(`{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{"name":"app"},
		"status":{"history":[{"status":"failed","chartVersion":"2"},{"status":"superseded","digest":"sha256:0"}]}}`)); err != nil {
		t.Fatal(err)
	}
	target.Trim(obj, verdict.Us)
	history, _, _ := unstructured.NestedSlice(obj.Object, "status", "history")
	for i, want := range []string{"failed", "superseded"} {
		if entry, _ := history[i].(map[string]any); len(entry) != 1 || entry["status"] != want {
			t.Errorf("got %v", entry)
		}
	}
}
