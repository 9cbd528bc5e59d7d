package cli

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/dryrun"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// configMap returns a manifest with a value.
func configMap(name, data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {key: \"%s\"}\n", name, data)
}

// secret returns the manifest of a Secret whose value must not be printed.
func secret(data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: secret}\nstringData: {password: %s}\n", data)
}

// heldChange creates a held Kustomization with a waiting revision that makes all kinds of changes. It returns the address of its
// artifacts.
func (w *world) heldChange() (sourceAddress string) {
	w.Helper()
	publish := func(revision string, files map[string]string) {
		w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("apps"), revision, files))
	}
	publish("v1", map[string]string{
		"a.yaml": configMap("changes", "one"), "b.yaml": configMap("goes", "away"), "c.yaml": secret("old-password"), "d.yaml": configMap("stays", "${who}"),
	})
	apps := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key("apps"))
	apps.Object["spec"] = map[string]any{
		"interval": "1h", "prune": true, "path": "./", "targetNamespace": w.Namespace, "sourceRef": map[string]any{"kind": "ExternalArtifact", "name": "apps"},
		"postBuild": map[string]any{"substitute": map[string]any{"who": "me"}},
	}
	w.Create(apps)
	w.applies(apps, "v1")
	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"})
	w.isHeldBy(apps, "production")
	publish("v2", map[string]string{
		"a.yaml": configMap("changes", "two"), "c.yaml": secret("new-password"), "d.yaml": configMap("stays", "${who}"), "e.yaml": configMap("comes", "why"),
	})
	source := harness.Object("source.toolkit.fluxcd.io/v1", "ExternalArtifact", w.Key("apps"))
	w.Read(source)
	address, _, _ := unstructured.NestedString(source.Object, "status", "artifact", "url")
	at, err := url.Parse(address)
	w.Must(err)
	return "http://" + at.Host
}

func TestPendingShowsChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	address := w.heldChange()
	all := listOf[struct {
		Diff struct {
			Cause   string
			Changes []dryrun.Change
		}
	}](w, "pending", "--diff", "--source-address", address)
	var got []string
	for _, c := range all[0].Diff.Changes {
		got = append(got, strings.ReplaceAll(c.Object, w.Namespace, "ns")+" "+c.Action)
		switch {
		case c.Object == "ConfigMap/"+w.Namespace+"/changes" && (len(c.Fields) != 1 || c.Fields[0] != (dryrun.Field{Path: "/data/key", Before: "one", After: "two"})):
			t.Errorf("%+v", c)
		case strings.HasPrefix(c.Object, "Secret/") && (len(c.Fields) != 1 || c.Fields[0].Path != "/data/password"):
			t.Errorf("%+v", c)
		}
	}
	want := "ConfigMap/ns/changes configured, ConfigMap/ns/comes created, ConfigMap/ns/goes deleted, Secret/ns/secret configured"
	if strings.Join(got, ", ") != want || all[0].Diff.Cause != "" {
		t.Errorf("%+v", all[0])
	}
	printed := w.gate("pending", "--diff", "--source-address", address)
	for _, secret := range []string{"old-password", "new-password", "b2xkLXBhc3N3b3Jk", "bmV3LXBhc3N3b3Jk"} {
		if strings.Contains(printed.out, secret) {
			t.Errorf("the output contains a secret: %s", printed.out)
		}
	}
	if printed.code != 0 || !strings.Contains(printed.out, "/data/key: \"one\" -> \"two\"\n") {
		t.Errorf("%+v", printed)
	}
	deleted := harness.Object("v1", "ConfigMap", w.Key("goes"))
	if w.Read(deleted); deleted.GetUID() == "" {
		t.Error("pending deleted the object that it lists")
	}
	w.open("production")
	w.applies(w.Kustomization("apps"), "v2")
	if got := w.gate("pending", "--diff", "--source-address", address); got != (output{"", "Nothing waits.\n", 0}) {
		t.Errorf("%+v", got)
	}
}

func TestPendingReportsUnknownChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	address := w.heldChange()
	for flags, want := range map[string]string{
		"":                                    "which is not a Service: name another with --source-address",
		"--source-address=http://127.0.0.1:1": "connection refused",
		"--source-address=" + address + "/nowhere": "404 Not Found",
	} {
		got := w.gate(append([]string{"pending", "--diff"}, strings.Fields(flags)...)...)
		if got.code != exitIncomplete || !strings.Contains(got.out, "  unknown: ") || !strings.Contains(got.out, want) {
			t.Errorf("%s: %+v", flags, got)
		}
	}
	if got := w.gate("pending", "--diff", "--source-address=localhost"); got.code != 2 || !strings.Contains(got.errOut, "it must be an address such as http://localhost:8080") {
		t.Errorf("%+v", got)
	}
	// A user who may read everything, but write nothing.
	got := w.reader("looks", true, kustomizations, artifactsOf, "configmaps", "secrets").gate("pending", "--diff", "--source-address", address)
	if got.code != exitIncomplete || !strings.Contains(got.out, "ConfigMap/"+w.Namespace+"/changes unknown: ") || !strings.Contains(got.out, "forbidden") {
		t.Errorf("%+v", got)
	}
}
