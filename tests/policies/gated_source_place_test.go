package policies

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const gatedSources = "gatedsources.gating.toolkit.fluxcd.io"

// gatedFile writes a manifest of a GatedSource and returns its path.
func (w *world) gatedFile(name string, spec v1alpha1.GatedSourceSpec) string {
	w.Helper()
	raw, err := json.Marshal(&v1alpha1.GatedSource{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.GatedSourceKind},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	})
	w.Must(err)
	return w.file(string(raw))
}

// refuses checks that a command is refused to a person, and why.
func (w *world) refuses(p *person, because string, args ...string) {
	w.Helper()
	if out, err := p.kubectl(w.Context(), w.Namespace, args...); err == nil || !strings.Contains(out, because) {
		w.Errorf("want %q: %s, %v", because, out, err)
	}
}

func TestNoOtherGatedSourceTakesThePlaceOfWhatIsToBePinned(t *testing.T) {
	w := newWorld(t)
	mallory, alice := w.writer("mallory", sourceEditor, viewer), w.as("alice", sourceEditor, sourceApprover)
	w.pushed(commit("a"))
	w.Create(&v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}, Approvals: &v1alpha1.ApprovalRule{Required: 1},
	}})
	evil := v1alpha1.PinnableReference{Kind: "GitRepository", Name: "evil"}
	w.allowed(mallory, "create", "-f", repositoryFile(t.TempDir(), "evil", nil))
	const refused = ", which gated source apps pins: only the gating-controller does, and who has the verb approve on gatedsources.gating.toolkit.fluxcd.io apps"
	pins := func(name string) string {
		return "user mallory may not have gated source " + w.Namespace + "/" + name + " pin GitRepository apps-gated" + refused
	}
	takes := []string{"create", "-f", w.gatedFile("takes", v1alpha1.GatedSourceSpec{SourceRef: evil, PinnedName: "apps-gated"})}
	w.Eventually("the API server knows the GatedSource", func() error {
		out, err := mallory.kubectl(w.Context(), w.Namespace, append(takes, "--dry-run=server")...)
		if err == nil {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	w.refuses(mallory, pins("takes"), takes...)
	w.allowed(mallory, "create", "-f", w.gatedFile("moves", v1alpha1.GatedSourceSpec{SourceRef: evil}))
	defer w.bind("mallory", false, "approve", []string{"moves", "production"}, gatedSources)()
	w.refuses(mallory, pins("moves"), "patch", "gtsrc", "moves", "--type=merge", "-p", `{"spec":{"pinnedName":"apps-gated"}}`)
	w.allowed(mallory, "create", "-f", w.gatedFile("chart", v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "HelmChart", Name: "evil"}, PinnedName: "apps-gated", // of another kind
	}))
	w.allowed(alice, append(takes, "--dry-run=server")...)
	w.allowed(mallory, "annotate", "gtsrc", "apps", "example.org/note=reviewed") // what pins it may be edited
}

func TestDeletionOfAGatedSourceNeedsTheVerbApprove(t *testing.T) {
	w := newWorld(t)
	w.gated()
	ref := v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}
	w.Create(&v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "people"}, Spec: v1alpha1.GatedSourceSpec{SourceRef: ref, Approvals: &v1alpha1.ApprovalRule{Required: 1}}})
	w.Create(&v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "says"}, Spec: v1alpha1.GatedSourceSpec{SourceRef: ref, Revision: commit("f")}})
	mallory, alice := w.as("mallory", sourceEditor, viewer), w.as("alice", sourceEditor, sourceApprover)
	w.Eventually("the pin is in the status", func() error {
		g := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps", Namespace: w.Namespace}}
		if w.Read(g); g.Status.Pinned == nil {
			return fmt.Errorf("it is %+v", g.Status)
		}
		return nil
	})
	refused := func(name string) string {
		return "user mallory may not delete gated source " + w.Namespace + "/" + name + ": it needs the verb approve"
	}
	for _, name := range []string{"apps", "people", "says"} {
		w.refuses(mallory, refused(name), "delete", "gtsrc", name)
	}
	w.refuses(mallory, refused("apps"), "delete", "gtsrc", "--all")
	w.refuses(mallory, refused("people"), "replace", "--force", "-f", w.gatedFile("people", v1alpha1.GatedSourceSpec{SourceRef: ref}))
	w.refuses(mallory, "by metadata.ownerReferences: it needs the verb approve", "patch", "gtsrc", "apps", "--type=merge", "-p",
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}]}}`) // the garbage collector would delete it
	w.allowed(alice, "delete", "gtsrc", "says")
	collector := &person{w.Person("system:serviceaccount:kube-system:generic-garbage-collector")}
	w.bind(collector.Name, false, "get", nil, gatedSources)
	w.bind(collector.Name, false, "delete", nil, gatedSources)
	w.allowed(collector, "delete", "gtsrc", "people")
	w.Must(cluster.Client.Delete(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}))
	w.Eventually("the content of a namespace under deletion goes", func() error {
		_, err := mallory.kubectl(w.Context(), w.Namespace, "delete", "gtsrc", "apps")
		return err
	})
}

func TestOnlySourceControllerSaysWhatAPinnedSourceHas(t *testing.T) {
	w := newWorld(t)
	w.gated()
	const status = "gitrepositories/status.source.toolkit.fluxcd.io"
	const byName = "system:serviceaccount:flux-system:source-controller"
	const elsewhere = "system:serviceaccount:delivery:sources"
	mallory, alice := w.writer("mallory", sourceEditor, viewer), w.writer("alice", sourceApprover)
	for _, p := range []*person{mallory, alice, w.writer(byName), w.writer(elsewhere)} {
		w.mayOn(p.Name, "get", status)
		w.mayOn(p.Name, "patch", status)
	}
	has := func(letter string) []string {
		raw, err := json.Marshal(map[string]any{"status": map[string]any{"artifact": map[string]any{
			"revision": commit(letter), "digest": "sha256:" + strings.Repeat("0", 64), "path": "p", "url": "http://source/" + letter, "lastUpdateTime": "2026-11-23T12:00:00Z",
		}}})
		w.Must(err)
		return append(onPinned(string(raw)), "--subresource=status")
	}
	refused := func(who string) string {
		return "user " + who + " may not change status.artifact of GitRepository " + w.Namespace + "/apps-gated, which gated source apps pins: only source-controller does. " +
			"If this is source-controller, give it all verbs on " + status
	}
	w.refuses(mallory, refused("mallory"), has("e")...)
	w.refuses(w.writer(elsewhere), refused(elsewhere), has("a")...)
	w.mayOn(elsewhere, "*", status) // as Flux binds it
	for i, p := range []*person{w.writer(elsewhere), w.writer(byName), alice, w.clusterAdmin()} {
		w.allowed(p, has(string(rune('a'+i)))...)
	}
	w.refuses(mallory, refused("mallory"), append(onPinned(`{"status":{"artifact":null}}`), "--subresource=status")...)
	w.allowed(mallory, append(onPinned(`{"status":{"observedGeneration":7}}`), "--subresource=status")...)
	if got, _, err := unstructured.NestedString(w.isPinned("a").Object, "status", "artifact", "revision"); err != nil || got != commit("d") {
		t.Errorf("it has %q, %v", got, err)
	}
}
