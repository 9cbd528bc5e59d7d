package policies

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	repositories = "gitrepositories.source.toolkit.fluxcd.io"
	gatedBy      = v1alpha1.PinnedByAnnotation
)

// gated creates a GatedSource that pins commit a at once.
func (w *world) gated() *unstructured.Unstructured {
	w.Helper()
	w.pushed(commit("a"))
	w.Create(&v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"},
	}})
	return w.isPinned("a")
}

// isPinned waits until the pinned source is at a commit.
func (w *world) isPinned(letter string) *unstructured.Unstructured {
	w.Helper()
	obj := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", w.Key("apps-gated"))
	w.until("the source is pinned", func() (bool, any) {
		err := w.TryRead(obj)
		got, _, _ := unstructured.NestedString(obj.Object, "spec", "ref", "commit")
		return err == nil && got == strings.Repeat(letter, 40) && obj.GetAnnotations()[gatedBy] == "apps", obj.Object
	})
	return obj
}

// writer returns a person who may write sources, but may not choose a revision.
func (w *world) writer(name string, roles ...string) *person {
	w.Helper()
	p := w.as(name, roles...)
	w.mayOn(name, "get create patch update delete", repositories)
	return p
}

func onPinned(patch string) []string {
	return []string{"patch", "gitrepository", "apps-gated", "--type=merge", "-p", patch}
}

func TestAttacksOnPinnedSource(t *testing.T) {
	w := newWorld(t)
	pinned := w.gated()
	version := pinned.GetResourceVersion()
	mallory := w.writer("mallory", sourceEditor, viewer)
	// mallory may approve revisions of another GatedSource.
	defer w.bind("mallory", false, "approve", []string{"production"}, "gatedsources.gating.toolkit.fluxcd.io")()
	evil := pinned.DeepCopy()
	w.Must(unstructured.SetNestedField(evil.Object, strings.Repeat("e", 40), "spec", "ref", "commit"))
	raw, err := json.Marshal(evil)
	w.Must(err)
	for _, args := range [][]string{
		onPinned(`{"spec":{"ref":{"commit":"` + strings.Repeat("e", 40) + `"}}}`),
		onPinned(`{"spec":{"ref":{"commit":null,"branch":"main"}}}`),
		onPinned(`{"spec":{"url":"https://git.example.com/evil"}}`),
		onPinned(`{"spec":{"ignore":"/tests"}}`),
		onPinned(`{"spec":{"verify":null,"secretRef":{"name":"x"}}}`),
		onPinned(`{"spec":{"suspend":true,"ref":{"commit":"` + strings.Repeat("e", 40) + `"}}}`),
		{"patch", "gitrepository", "apps-gated", "--type=json", "-p", `[{"op":"remove","path":"/spec/ref"}]`},
		{"annotate", "gitrepository", "apps-gated", gatedBy + "-"},
		{"annotate", "--overwrite", "gitrepository", "apps-gated", gatedBy + "="},
		{"annotate", "--overwrite", "gitrepository", "apps-gated", gatedBy + "=production"},
		onPinned(`{"metadata":{"annotations":{"` + gatedBy + `":"production"}},"spec":{"ref":{"commit":"` + strings.Repeat("e", 40) + `"}}}`),
		{"replace", "-f", string(raw)},
		{"apply", "--server-side", "--force-conflicts", "-f", repositoryFile("apps-gated", nil)},
		{"apply", "--server-side", "--force-conflicts", "--field-manager=gating-controller", "-f", repositoryFile("apps-gated", map[string]string{gatedBy: "apps"})},
		{"annotate", "gitrepository", "apps", gatedBy + "=apps"},
		{"create", "-f", repositoryFile("another", map[string]string{gatedBy: "apps"})},
	} {
		w.refused(mallory, "user mallory may not change what is pinned in GitRepository "+w.Namespace+"/", args...)
	}
	w.refused(mallory, "the verb approve on gatedsources.gating.toolkit.fluxcd.io apps", onPinned(`{"spec":{"ignore":"/tests"}}`)...)
	w.is("the version of the pinned source", w.isPinned("a").GetResourceVersion(), version)
}

func TestSourceCannotTakeNameOfPin(t *testing.T) {
	w := newWorld(t)
	mallory := w.writer("mallory", sourceEditor, viewer)
	take := func(name string) {
		t.Helper()
		w.refused(mallory, "user mallory may not create GitRepository "+w.Namespace+"/"+name+", which gated source ", "create", "-f", repositoryFile(name, nil))
		w.refused(mallory, "pins: it needs the verb approve on gatedsources", "create", "-f", repositoryFile(name, nil))
	}
	w.pushed(commit("a"))
	w.ClosedGate("nights", v1alpha1.TargetReference{Kind: v1alpha1.GatedSourceKind, Name: "*"})
	for name, pinned := range map[string]string{"waits": "", "named": "production"} {
		w.Create(&v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatedSourceSpec{
			SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}, PinnedName: pinned,
		}})
	}
	for _, name := range []string{"waits-gated", "production"} {
		w.until("the policy considers the GatedSource", func() (bool, any) {
			out, err := mallory.kubectl(w.Context(), w.Namespace, "create", "--dry-run=server", "-f", repositoryFile(name, nil))
			return err != nil, out
		})
		take(name)
	}
	w.allowed(mallory, "create", "-f", repositoryFile("named-gated", nil)) // the pinned source has another name
	oci := `{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"OCIRepository","metadata":{"name":"production"},"spec":{"interval":"1h","url":"oci://registry.example.com/app"}}`
	w.mayOn("mallory", "create", "ocirepositories.source.toolkit.fluxcd.io")
	w.allowed(mallory, "create", "-f", oci) // the pinned source has another kind
}

func TestDeletedPinnedSourceCannotBeRecreated(t *testing.T) {
	w := newWorld(t)
	w.gated()
	mallory := w.writer("mallory", sourceEditor, viewer)
	start := w.stopController()
	w.allowed(mallory, "delete", "gitrepository", "apps-gated")
	for _, annotations := range []map[string]string{nil, {gatedBy: "apps"}} {
		w.refused(mallory, "user mallory may not ", "create", "-f", repositoryFile("apps-gated", annotations))
	}
	start()
	w.isPinned("a")
	w.allowed(w.clusterAdmin(), "delete", "gtsrc", "apps")
	// The pinned source of a deleted GatedSource is still guarded.
	w.refused(mallory, "user mallory may not change what is pinned", onPinned(`{"spec":{"ref":{"commit":"`+strings.Repeat("e", 40)+`"}}}`)...)
	w.allowed(mallory, "delete", "gitrepository", "apps-gated")
	w.until("no GatedSource pins the source any more", func() (bool, any) { // the policy observes the deletion a moment later
		out, err := mallory.kubectl(w.Context(), w.Namespace, "create -f "+repositoryFile("apps-gated", nil))
		return err == nil, out
	})
}

func TestPinnedSourceFieldsWithoutRevisionAreWritable(t *testing.T) {
	w := newWorld(t)
	pinned := w.gated()
	mallory := w.writer("mallory", viewer)
	for _, args := range [][]string{
		onPinned(`{"spec":{"suspend":true}}`), onPinned(`{"spec":{"suspend":null}}`),
		{"label gitrepository apps-gated team=shop"}, {"annotate gitrepository apps-gated reconcile.fluxcd.io/requestedAt=now"},
	} {
		w.allowed(mallory, args...)
	}
	flux := w.writer("system:serviceaccount:flux-system:source-controller")
	w.mayOn("system:serviceaccount:flux-system:source-controller", "get patch", "gitrepositories/status.source.toolkit.fluxcd.io")
	w.allowed(flux, onPinned(`{"metadata":{"finalizers":["finalizers.fluxcd.io"]}}`)...)
	w.allowed(flux, append(onPinned(`{"status":{"observedGeneration":1,"artifact":{"revision":"main@sha1:`+strings.Repeat("a", 40)+
		`","digest":"sha256:`+strings.Repeat("0", 64)+`","path":"p","url":"http://source/p","lastUpdateTime":"2026-11-23T12:00:00Z"}}}`), "--subresource=status")...)
	w.allowed(flux, onPinned(`{"metadata":{"finalizers":null}}`)...)
	collector := &person{w.Person("system:serviceaccount:kube-system:generic-garbage-collector")}
	w.allowed(collector, onPinned(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`)...)
	w.allowed(collector, onPinned(`{"metadata":{"ownerReferences":null}}`)...)
	uid := pinned.GetUID()
	w.allowed(collector, "delete", "gitrepository", "apps-gated")
	w.until("the controller has created it again", func() (bool, any) { return w.TryRead(pinned) == nil && pinned.GetUID() != uid, pinned.GetUID() })
	w.isPinned("a")
}

// In an emergency, a user who may choose revisions may write the pinned source. The controller restores the source unless the GatedSource
// selects the same revision.
func TestApproverMayWritePinnedSource(t *testing.T) {
	w := newWorld(t)
	w.gated()
	alice := w.writer("alice", sourceApprover)
	for _, who := range []*person{alice, w.clusterAdmin()} {
		w.allowed(who, onPinned(`{"spec":{"ref":{"commit":"`+strings.Repeat("e", 40)+`"}}}`)...)
		w.isPinned("a")
	}
}

func TestOtherGatedSourceCannotTakeNameOfPin(t *testing.T) {
	w := newWorld(t)
	mallory, alice := w.writer("mallory", sourceEditor, viewer), w.as("alice", sourceEditor, sourceApprover)
	w.pushed(commit("a"))
	w.Create(&v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}, Approvals: &v1alpha1.ApprovalRule{Required: 1},
	}})
	const evil = `{"sourceRef":{"kind":"GitRepository","name":"evil"}}`
	w.allowed(mallory, "create", "-f", repositoryFile("evil", nil))
	const refused = ", which gated source apps pins: it needs the verb approve on gatedsources.gating.toolkit.fluxcd.io apps"
	pins := func(name string) string {
		return "user mallory may not let gated source " + w.Namespace + "/" + name + " pin GitRepository apps-gated" + refused
	}
	takes := []string{"create", "-f", gatedFile("takes", `{"pinnedName":"apps-gated","sourceRef":{"kind":"GitRepository","name":"evil"}}`, nil)}
	w.until("the policy considers the GatedSource", func() (bool, any) {
		out, err := mallory.kubectl(w.Context(), w.Namespace, append(takes, "--dry-run=server")...)
		return err != nil, out
	})
	w.refused(mallory, pins("takes"), takes...)
	w.allowed(mallory, "create", "-f", gatedFile("moves", evil, nil))
	defer w.bind("mallory", false, "approve", []string{"moves", "production"}, "gatedsources.gating.toolkit.fluxcd.io")()
	w.refused(mallory, pins("moves"), "patch", "gtsrc", "moves", "--type=merge", "-p", `{"spec":{"pinnedName":"apps-gated"}}`)
	w.allowed(mallory, "create", "-f", gatedFile("chart", `{"pinnedName":"apps-gated","sourceRef":{"kind":"HelmChart","name":"evil"}}`, nil)) // another kind
	w.allowed(alice, append(takes, "--dry-run=server")...)
	w.allowed(mallory, "annotate", "gtsrc", "apps", "example.org/note=reviewed") // the GatedSource that pins it may be edited
}

func TestDeletionOfGatedSourceNeedsVerbApprove(t *testing.T) {
	w := newWorld(t)
	w.gated()
	ref := v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}
	w.Create(&v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "people"}, Spec: v1alpha1.GatedSourceSpec{SourceRef: ref, Approvals: &v1alpha1.ApprovalRule{Required: 1}}})
	w.Create(&v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "says"}, Spec: v1alpha1.GatedSourceSpec{SourceRef: ref, Revision: commit("f")}})
	mallory, alice := w.as("mallory", sourceEditor, viewer), w.as("alice", sourceEditor, sourceApprover)
	w.until("the pin is in the status", func() (bool, any) {
		g := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps", Namespace: w.Namespace}}
		w.Read(g)
		return g.Status.Pinned != nil, g.Status
	})
	refused := func(name string) string {
		return "user mallory may not delete gated source " + w.Namespace + "/" + name + ": it needs the verb approve"
	}
	for _, name := range []string{"apps", "people", "says"} {
		w.refused(mallory, refused(name), "delete", "gtsrc", name)
	}
	w.refused(mallory, refused("apps"), "delete", "gtsrc", "--all")
	w.refused(mallory, refused("people"), "replace", "--force", "-f", gatedFile("people", "", nil))
	w.refused(mallory, "by metadata.ownerReferences: it needs the verb approve", "patch", "gtsrc", "apps", "--type=merge", "-p",
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}]}}`) // the garbage collector would delete it
	w.allowed(alice, "delete", "gtsrc", "says")
	collector := &person{w.Person("system:serviceaccount:kube-system:generic-garbage-collector")}
	w.bind(collector.Name, false, "get", nil, "gatedsources.gating.toolkit.fluxcd.io")
	w.bind(collector.Name, false, "delete", nil, "gatedsources.gating.toolkit.fluxcd.io")
	w.allowed(collector, "delete", "gtsrc", "people")
	w.Must(cluster.Client.Delete(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}))
	w.until("the content of a namespace under deletion can be deleted", func() (bool, any) {
		out, err := mallory.kubectl(w.Context(), w.Namespace, "delete gtsrc apps")
		return err == nil, out
	})
}

func TestOnlySourceControllerWritesStatusOfPinnedSource(t *testing.T) {
	w := newWorld(t)
	w.gated()
	const status = "gitrepositories/status.source.toolkit.fluxcd.io"
	const byName = "system:serviceaccount:flux-system:source-controller"
	const elsewhere = "system:serviceaccount:delivery:sources"
	mallory, alice := w.writer("mallory", sourceEditor, viewer), w.writer("alice", sourceApprover)
	for _, p := range []*person{mallory, alice, w.writer(byName), w.writer(elsewhere)} {
		w.mayOn(p.Name, "get patch", status)
	}
	has := func(letter string) []string {
		raw, err := json.Marshal(map[string]any{"status": map[string]any{"artifact": map[string]any{
			"revision": commit(letter), "digest": "sha256:" + strings.Repeat("0", 64), "path": "p", "url": "http://source/" + letter, "lastUpdateTime": "2026-11-23T12:00:00Z",
		}}})
		w.Must(err)
		return append(onPinned(string(raw)), "--subresource=status")
	}
	refused := func(who string) string {
		return "user " + who + " may not change status.artifact of GitRepository " + w.Namespace + "/apps-gated, which gated source apps pins: only source-controller may change it. " +
			"If this is source-controller, grant it all verbs on " + status
	}
	w.refused(mallory, refused("mallory"), has("e")...)
	w.refused(w.writer(elsewhere), refused(elsewhere), has("a")...)
	w.mayOn(elsewhere, "*", status) // with the binding of Flux
	for i, p := range []*person{w.writer(elsewhere), w.writer(byName), alice, w.clusterAdmin()} {
		w.allowed(p, has(string(rune('a'+i)))...)
	}
	w.refused(mallory, refused("mallory"), append(onPinned(`{"status":{"artifact":null}}`), "--subresource=status")...)
	w.allowed(mallory, append(onPinned(`{"status":{"observedGeneration":7}}`), "--subresource=status")...)
	got, _, err := unstructured.NestedString(w.isPinned("a").Object, "status", "artifact", "revision")
	w.Must(err)
	w.is("the artifact", got, commit("d"))
}
