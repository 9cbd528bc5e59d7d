package explain_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/explain"
)

// artifact sets the revision of a source, which it has had for ten minutes.
func artifact(revision string) edit {
	return set(map[string]any{"revision": revision, "lastUpdateTime": noon.Add(-10 * time.Minute).Format(time.RFC3339)}, "status", "artifact")
}

func source(kind string, edits ...edit) *unstructured.Unstructured {
	return newObject("source.toolkit.fluxcd.io/v1", kind, "apps", edits...)
}

// refers makes an object refer to a source.
func refers(field, kind string) edit {
	return set(map[string]any{"kind": kind, "name": "apps"}, "spec", field)
}

func release(edits ...edit) *unstructured.Unstructured {
	return newObject("helm.toolkit.fluxcd.io/v2", "HelmRelease", "apps", edits...)
}

// installed sets the version of the chart that a HelmRelease has installed.
func installed(version string) edit {
	return set([]any{map[string]any{"chartVersion": version}}, "status", "history")
}

func TestPendingRevisionIsFromSource(t *testing.T) {
	chart := func(version string) edit {
		return set(map[string]any{"chart": "apps", "version": version}, "spec", "chart", "spec")
	}
	digest := "sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
	for _, tc := range []struct {
		name        string
		obj, source *unstructured.Unstructured
		reason      explain.Reason
		revision    string
		waits       string
		since       bool
	}{
		{"a new revision", kustomization(refers("sourceRef", "GitRepository"), set("v1", "status", "lastAppliedRevision")), source("GitRepository", artifact("v2")), explain.NewRevision, "v1", "v2", true},
		{"a revision that failed waits too", kustomization(refers("sourceRef", "GitRepository"), set("v1", "status", "lastAppliedRevision"), set("v2", "status", "lastAttemptedRevision")), source("GitRepository", artifact("v2")), explain.NewRevision, "v1", "v2", true},
		{"the same revision", kustomization(refers("sourceRef", "GitRepository"), set("v2", "status", "lastAppliedRevision")), source("GitRepository", artifact("v2")), explain.NothingNew, "v2", "", false},
		{"nothing was ever applied", kustomization(refers("sourceRef", "ExternalArtifact")), source("ExternalArtifact", artifact("v2")), explain.NewRevision, "", "v2", true},
		{"the source does not exist", kustomization(refers("sourceRef", "GitRepository")), nil, explain.SourceUnknown, "", "", false},
		{"the source has no artifact", kustomization(refers("sourceRef", "GitRepository")), source("GitRepository"), explain.SourceUnknown, "", "", false},
		{"a new chart", release(chart("6.x"), installed("6.0.0")), source("HelmChart", artifact("6.1.0"), set("6.x", "spec", "version")), explain.NewRevision, "6.0.0", "6.1.0", true},
		{"the same chart", release(chart("6.x"), installed("6.1.0")), source("HelmChart", artifact("6.1.0"), set("6.x", "spec", "version")), explain.NothingNew, "6.1.0", "", false},
		{"another version is wanted", release(chart("7.0.0"), installed("6.1.0")), source("HelmChart", artifact("6.1.0"), set("6.1.0", "spec", "version")), explain.NewRevision, "6.1.0", "7.0.0", false},
		{"the version is left to the default", release(set(map[string]any{"chart": "apps"}, "spec", "chart", "spec"), installed("6.1.0")), source("HelmChart", artifact("6.1.0"), set("*", "spec", "version")), explain.NothingNew, "6.1.0", "", false},
		{"the same chart from a registry", release(refers("chartRef", "OCIRepository"), installed("6.1.0+6b86b273ff34"), set(digest, "status", "lastAttemptedRevisionDigest")), source("OCIRepository", artifact("6.1.0@"+digest)), explain.NothingNew, "6.1.0+6b86b273ff34", "", false},
		{"a new chart from a registry", release(refers("chartRef", "OCIRepository"), installed("6.1.0+6b86b273ff34"), set(digest, "status", "lastAttemptedRevisionDigest")), source("OCIRepository", artifact("6.1.0@sha256:d4735e")), explain.NewRevision, "6.1.0+6b86b273ff34", "6.1.0@sha256:d4735e", true},
		{"a held source", source("GitRepository", artifact("v1")), nil, explain.NotFetched, "v1", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := explain.Wait(tc.obj, tc.source, noon)
			if w.Reason != tc.reason || w.Revision != tc.revision || w.Waits != tc.waits || (w.Since != nil) != tc.since {
				t.Errorf("%+v", w)
			}
			if w.Since != nil && !w.Since.Time.Equal(noon.Add(-10*time.Minute)) {
				t.Errorf("since %s", w.Since)
			}
			if w.IsNew() != (tc.reason != explain.NothingNew) {
				t.Errorf("is new: %t", w.IsNew())
			}
		})
	}
}

func TestSourceOfFindsSource(t *testing.T) {
	for _, tc := range []struct {
		name string
		obj  *unstructured.Unstructured
		want string
	}{
		{"in the same namespace", kustomization(refers("sourceRef", "OCIRepository")), "OCIRepository shop/apps"},
		{"in another namespace", kustomization(refers("sourceRef", "Bucket"), set("ops", "spec", "sourceRef", "namespace")), "Bucket ops/apps"},
		{"the chart that the status names", release(set("ops/other", "status", "helmChart"), set(map[string]any{}, "spec", "chart")), "HelmChart ops/other"},
		{"the chart before there is a status", release(set("ops", "spec", "chart", "spec", "sourceRef", "namespace")), "HelmChart ops/shop-apps"},
		{"the chart by reference", release(refers("chartRef", "HelmChart")), "HelmChart shop/apps"},
	} {
		if ref, ok := explain.SourceOf(tc.obj); !ok || ref.String() != tc.want {
			t.Errorf("%s: %s, %t, want %s", tc.name, ref, ok, tc.want)
		}
	}
	if ref, ok := explain.SourceOf(source("GitRepository")); ok {
		t.Errorf("a source has the source %s", ref)
	}
}

// certificate returns a Certificate that is valid for ninety days. cert-manager would renew it thirty days before it expires.
func certificate(expires time.Duration) *unstructured.Unstructured {
	return newObject("cert-manager.io/v1", "Certificate", "www",
		set(noon.Add(expires-90*24*time.Hour).Format(time.RFC3339), "status", "notBefore"), set(noon.Add(expires).Format(time.RFC3339), "status", "notAfter"))
}

func TestDueRenewalOfCertificateWaits(t *testing.T) {
	for _, tc := range []struct {
		days   time.Duration
		reason explain.Reason
	}{{20, explain.RenewalDue}, {30, explain.RenewalDue}, {31, explain.NothingNew}} {
		w := explain.Wait(certificate(tc.days*24*time.Hour), nil, noon)
		if due := noon.Add((tc.days - 30) * 24 * time.Hour); w.Reason != tc.reason || w.Since == nil || !w.Since.Time.Equal(due) {
			t.Errorf("expires in %d days: %s since %s, due %s", tc.days, w.Reason, w.Since, due)
		}
	}
}

func TestIsHeldIgnoresSuspensionByOthers(t *testing.T) {
	for _, tc := range []struct {
		name string
		obj  *unstructured.Unstructured
		want bool
	}{
		{"held", kustomization(heldBy("shop/production")), true},
		{"held, without room for a name", kustomization(set(true, "spec", "suspend"), owns("gating-controller", "Apply", `{"f:spec":{"f:suspend":{}}}`)), true},
		{"suspended by somebody else", kustomization(suspendedBy("flux")), false},
		{"free", kustomization(), false},
		{"resumed", kustomization(named("shop/production", "")), false},
		{"of a kind that gates do not hold", newObject("v1", "ConfigMap", "a"), false},
	} {
		if got := explain.IsHeld(tc.obj); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

func TestWaitingHasShortText(t *testing.T) {
	for reason, want := range map[explain.Reason]string{
		explain.NewRevision: "main@sha1:01234567", explain.NothingNew: "nothing new", explain.NotFetched: "not fetched", explain.Stopped: "stopped",
		explain.RenewalDue: "renewal", explain.Passes: "a pass allows one reconciliation", explain.SourceUnknown: "source unknown",
	} {
		w := explain.Waiting{Reason: reason, Waits: "main@sha1:0123456789abcdef"}
		if got := w.Short(); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}
