package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// reader returns a user with the role gate-viewer in the namespace, with read access to resources there, or neither.
func (w *world) reader(name string, viewer bool, resources ...string) *world {
	w.Helper()
	name += "-of-" + w.Namespace
	kubectl := func(args ...string) {
		_, err := cluster.Kubectl(w.Context(), append([]string{"-n", w.Namespace}, args...)...)
		w.Must(err)
	}
	if viewer {
		kubectl("apply", "-f", filepath.Join(harness.Root(), "config", "policies", "gate_viewer_role.yaml"))
		kubectl("create", "rolebinding", name+"-views", "--clusterrole=gate-viewer", "--user="+name)
	}
	if len(resources) > 0 {
		kubectl("create", "role", name, "--verb=get,list", "--resource="+strings.Join(resources, ","))
		kubectl("create", "rolebinding", name, "--role="+name, "--user="+name)
	}
	return w.as(name)
}

const (
	kustomizations = "kustomizations.kustomize.toolkit.fluxcd.io"
	artifactsOf    = "externalartifacts.source.toolkit.fluxcd.io"
)

func TestForbiddenReadsNameTheVerbAndResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heldApps()
	stranger := w.reader("stranger", false)
	for _, tc := range []struct{ args, want string }{
		{"why ks/apps", `you may not get kustomizations.kustomize.toolkit.fluxcd.io in namespace "` + w.Namespace + `": that needs the verb "get", which the ClusterRole view has`},
		{"pending", `kustomizations.kustomize.toolkit.fluxcd.io,`},
		{"pending -A", `in all namespaces: that needs the verb "list", which the ClusterRole view has`},
		{"status production", `you may not get gates in namespace "` + w.Namespace + `": that needs the verb "get", which the ClusterRole gate-viewer has`},
	} {
		got := stranger.gate(strings.Fields(tc.args)...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.errOut, tc.want) || strings.Count(got.errOut, "\n") != 1 {
			t.Errorf("%s: %+v", tc.args, got)
		}
	}
}

func TestGateViewerSeesNoTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heldApps()
	viewer := w.reader("viewer", true)
	got := viewer.gate("status", "production")
	if got.code != 0 || !strings.Contains(got.out, "1 held") || strings.Contains(got.out, "Kustomization/apps") || !strings.Contains(got.out, "You may not see which.") ||
		!strings.Contains(got.errOut, kustomizations) || strings.Count(got.errOut, "\n") != 1 {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"why", "ks/apps"}, {"pending"}} {
		if got := viewer.gate(args...); got.code != 2 || got.out != "" || !strings.Contains(got.errOut, kustomizations) || strings.Count(got.errOut, "\n") != 1 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestReadableKindsAreShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heldApps()
	some := w.reader("some", true, kustomizations, artifactsOf)
	got := some.gate("pending", "--no-headers")
	if got.code != 3 || !strings.HasPrefix(got.out, "Kustomization/apps   production   v1   v2") || !strings.Contains(got.errOut, "helmreleases.helm.toolkit.fluxcd.io") ||
		strings.Contains(got.errOut, kustomizations) || strings.Count(got.errOut, "\n") != 1 {
		t.Errorf("%+v", got)
	}
	got = some.gate("why", "ks/apps")
	if got.code != 0 || !strings.Contains(got.out, "is held by gate production.\nRevision v2 waits") ||
		!strings.Contains(got.errOut, `you may not list gates in all namespaces, only in "`+w.Namespace+`"`) || strings.Count(got.errOut, "\n") != 1 {
		t.Errorf("%+v", got)
	}
}

func TestWhyWarnsOfUnreadableGates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heldApps()
	got := w.reader("blind", false, kustomizations).gate("why", "ks/apps")
	if got.code != 2 || got.out != "" || !strings.Contains(got.errOut, `you may not list gates in namespace "`+w.Namespace+`": that needs the verb "list", which the ClusterRole gate-viewer has`) ||
		strings.Count(got.errOut, "\n") != 1 {
		t.Errorf("%+v", got)
	}
}

func TestUnreadableSourcesAreUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heldApps()
	got := w.reader("half", true, kustomizations).gate("pending", "--no-headers")
	if got.code != 3 || !strings.HasPrefix(got.out, "Kustomization/apps   production   v1   source unknown") || !strings.Contains(got.errOut, artifactsOf) {
		t.Errorf("%+v", got)
	}
}
