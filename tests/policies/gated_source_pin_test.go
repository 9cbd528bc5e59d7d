package policies

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	repositories = "gitrepositories.source.toolkit.fluxcd.io"
	gatedBy      = v1alpha1.PinnedByAnnotation
)

var repositoryKind = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}

// repositoryFile writes a manifest of a Git repository at commit e into a folder and returns its path.
func repositoryFile(dir, name string, annotations map[string]string) string {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": map[string]any{"name": name, "annotations": annotations},
		"spec": map[string]any{"url": "https://git.example.com/evil", "interval": "1m", "ref": map[string]any{"commit": strings.Repeat("e", 40)}},
	})
	path := filepath.Join(dir, "repository-"+name+".json")
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		panic(err) // a map, and a folder of this test
	}
	return path
}

// gated has a GatedSource pin commit a at once.
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
	w.Eventually("it is pinned", func() error {
		if err := w.TryRead(obj); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(obj.Object, "spec", "ref", "commit"); got != strings.Repeat(letter, 40) || obj.GetAnnotations()[gatedBy] != "apps" {
			return fmt.Errorf("it is at %q, of %q", got, obj.GetAnnotations()[gatedBy])
		}
		return nil
	})
	return obj
}

// writer returns a person who may write sources, but chooses no revision.
func (w *world) writer(name string, roles ...string) *person {
	w.Helper()
	p := w.as(name, roles...)
	for _, verb := range []string{"get", "create", "patch", "update", "delete"} {
		w.mayOn(name, verb, repositories)
	}
	return p
}

func onPinned(patch string) []string {
	return []string{"patch", "gitrepository", "apps-gated", "--type=merge", "-p", patch}
}

func TestAttacksOnAPinnedSource(t *testing.T) {
	w := newWorld(t)
	pinned := w.gated()
	version := pinned.GetResourceVersion()
	mallory := w.writer("mallory", sourceEditor, viewer)
	// She approves revisions of another GatedSource.
	defer w.bind("mallory", false, "approve", []string{"production"}, "gatedsources.gating.toolkit.fluxcd.io")()
	evil := pinned.DeepCopy()
	w.Must(unstructured.SetNestedField(evil.Object, strings.Repeat("e", 40), "spec", "ref", "commit"))
	raw, err := json.Marshal(evil)
	w.Must(err)
	dir := t.TempDir()
	const needs = "the verb approve on gatedsources.gating.toolkit.fluxcd.io apps"
	for name, args := range map[string][]string{
		"another commit":                       onPinned(`{"spec":{"ref":{"commit":"` + strings.Repeat("e", 40) + `"}}}`),
		"a branch instead of the commit":       onPinned(`{"spec":{"ref":{"commit":null,"branch":"main"}}}`),
		"another place":                        onPinned(`{"spec":{"url":"https://git.example.com/evil"}}`),
		"other files":                          onPinned(`{"spec":{"ignore":"/tests"}}`),
		"no verification":                      onPinned(`{"spec":{"verify":null,"secretRef":{"name":"x"}}}`),
		"another commit while suspending it":   onPinned(`{"spec":{"suspend":true,"ref":{"commit":"` + strings.Repeat("e", 40) + `"}}}`),
		"the commit is taken away":             {"patch", "gitrepository", "apps-gated", "--type=json", "-p", `[{"op":"remove","path":"/spec/ref"}]`},
		"it is nobody's":                       {"annotate", "gitrepository", "apps-gated", gatedBy + "-"},
		"it is nobody's by an empty name":      {"annotate", "--overwrite", "gitrepository", "apps-gated", gatedBy + "="},
		"it is of a GatedSource of hers":       {"annotate", "--overwrite", "gitrepository", "apps-gated", gatedBy + "=production"},
		"it is hers, and at another commit":    onPinned(`{"metadata":{"annotations":{"` + gatedBy + `":"production"}},"spec":{"ref":{"commit":"` + strings.Repeat("e", 40) + `"}}}`),
		"it is replaced":                       {"replace", "-f", w.file(string(raw))},
		"it is applied by force":               {"apply", "--server-side", "--force-conflicts", "-f", repositoryFile(dir, "apps-gated", nil)},
		"it is applied as by the controller":   {"apply", "--server-side", "--force-conflicts", "--field-manager=gating-controller", "-f", repositoryFile(dir, "apps-gated", map[string]string{gatedBy: "apps"})},
		"the source itself is said to be ours": {"annotate", "gitrepository", "apps", gatedBy + "=apps"},
		"another one is said to be ours":       {"create", "-f", repositoryFile(dir, "another", map[string]string{gatedBy: "apps"})},
	} {
		out, err := mallory.kubectl(w.Context(), w.Namespace, args...)
		if err == nil || !strings.Contains(out, "user mallory may not change what is pinned in GitRepository "+w.Namespace+"/") || !strings.Contains(out, needs) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
	if now := w.isPinned("a"); now.GetResourceVersion() != version {
		t.Errorf("it was written: %v", now.Object)
	}
}

func TestNobodyTakesThePlaceOfWhatIsToBePinned(t *testing.T) {
	w := newWorld(t)
	mallory := w.writer("mallory", sourceEditor, viewer)
	dir := t.TempDir()
	const refused = "pins: only the gating-controller does, and who has the verb approve"
	take := func(name string) {
		t.Helper()
		out, err := mallory.kubectl(w.Context(), w.Namespace, "create", "-f", repositoryFile(dir, name, nil))
		if err == nil || !strings.Contains(out, "user mallory may not create GitRepository "+w.Namespace+"/"+name+", which gated source ") || !strings.Contains(out, refused) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
	w.pushed(commit("a"))
	w.ClosedGate("nights", v1alpha1.TargetReference{Kind: v1alpha1.GatedSourceKind, Name: "*"})
	for name, pinned := range map[string]string{"waits": "", "named": "production"} {
		w.Create(&v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatedSourceSpec{
			SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}, PinnedName: pinned,
		}})
	}
	w.Eventually("the API server knows the GatedSources", func() error {
		for _, name := range []string{"waits-gated", "production"} {
			if out, err := mallory.kubectl(w.Context(), w.Namespace, "create", "--dry-run=server", "-f", repositoryFile(dir, name, nil)); err == nil {
				return fmt.Errorf("%s", out)
			}
		}
		return nil
	})
	take("waits-gated")
	take("production")
	w.allowed(mallory, "create", "-f", repositoryFile(dir, "named-gated", nil)) // what is pinned has another name
	oci := w.file(`{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"OCIRepository","metadata":{"name":"production"},"spec":{"interval":"1h","url":"oci://registry.example.com/app"}}`)
	w.mayOn("mallory", "create", "ocirepositories.source.toolkit.fluxcd.io")
	w.allowed(mallory, "create", "-f", oci) // and another kind
}

func TestWhoDeletesAPinnedSourceDoesNotCreateItAgain(t *testing.T) {
	w := newWorld(t)
	w.gated()
	mallory := w.writer("mallory", sourceEditor, viewer)
	start := w.stopController()
	w.allowed(mallory, "delete", "gitrepository", "apps-gated")
	for _, annotations := range []map[string]string{nil, {gatedBy: "apps"}} {
		out, err := mallory.kubectl(w.Context(), w.Namespace, "create", "-f", repositoryFile(t.TempDir(), "apps-gated", annotations))
		if err == nil || !strings.Contains(out, "user mallory may not ") {
			t.Errorf("%v: %s, %v", annotations, out, err)
		}
	}
	start()
	w.isPinned("a")
	w.allowed(w.clusterAdmin(), "delete", "gtsrc", "apps")
	// The pinned source that it leaves is still guarded.
	out, err := mallory.kubectl(w.Context(), w.Namespace, onPinned(`{"spec":{"ref":{"commit":"`+strings.Repeat("e", 40)+`"}}}`)...)
	if err == nil || !strings.Contains(out, "user mallory may not change what is pinned") {
		t.Errorf("%s, %v", out, err)
	}
	w.allowed(mallory, "delete", "gitrepository", "apps-gated")
	w.Eventually("nobody pins it any more", func() error { // the API server forgets a GatedSource a moment later
		_, err := mallory.kubectl(w.Context(), w.Namespace, "create", "-f", repositoryFile(t.TempDir(), "apps-gated", nil))
		return err
	})
}

func TestFluxAndPeopleDoWithAPinnedSourceWhatChoosesNoRevision(t *testing.T) {
	w := newWorld(t)
	pinned := w.gated()
	mallory := w.writer("mallory", viewer)
	w.allowed(mallory, onPinned(`{"spec":{"suspend":true}}`)...)
	w.allowed(mallory, onPinned(`{"spec":{"suspend":null}}`)...)
	w.allowed(mallory, "label", "gitrepository", "apps-gated", "team=shop")
	w.allowed(mallory, "annotate", "gitrepository", "apps-gated", "reconcile.fluxcd.io/requestedAt=now")
	flux := w.writer("system:serviceaccount:flux-system:source-controller")
	for _, verb := range []string{"get", "patch"} {
		w.mayOn("system:serviceaccount:flux-system:source-controller", verb, "gitrepositories/status.source.toolkit.fluxcd.io")
	}
	w.allowed(flux, onPinned(`{"metadata":{"finalizers":["finalizers.fluxcd.io"]}}`)...)
	w.allowed(flux, append(onPinned(`{"status":{"observedGeneration":1,"artifact":{"revision":"main@sha1:`+strings.Repeat("a", 40)+
		`","digest":"sha256:`+strings.Repeat("0", 64)+`","path":"p","url":"http://source/p","lastUpdateTime":"2026-11-23T12:00:00Z"}}}`), "--subresource=status")...)
	w.allowed(flux, onPinned(`{"metadata":{"finalizers":null}}`)...)
	collector := &person{w.Person("system:serviceaccount:kube-system:generic-garbage-collector")}
	w.allowed(collector, onPinned(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`)...)
	w.allowed(collector, onPinned(`{"metadata":{"ownerReferences":null}}`)...)
	uid := pinned.GetUID()
	w.allowed(collector, "delete", "gitrepository", "apps-gated")
	w.Eventually("the controller has created it again", func() error {
		if err := w.TryRead(pinned); err != nil || pinned.GetUID() == uid {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
	w.isPinned("a")
}

// In an emergency, who chooses revisions may. The controller puts it back, unless its GatedSource says so as well.
func TestWhoMayApproveWritesAPinnedSource(t *testing.T) {
	w := newWorld(t)
	w.gated()
	alice := w.writer("alice", sourceApprover)
	for _, who := range []*person{alice, w.clusterAdmin()} {
		seen := w.commits(func() { w.allowed(who, onPinned(`{"spec":{"ref":{"commit":"`+strings.Repeat("e", 40)+`"}}}`)...) })
		if !slices.Contains(seen, strings.Repeat("e", 40)) {
			t.Errorf("it was at %q", seen)
		}
		w.isPinned("a")
	}
}

// commits returns what the pinned source was pinned to while something was done, and until the controller has put it back.
func (w *world) commits(do func()) (seen []string) {
	w.Helper()
	history := w.Record(repositoryKind)
	do()
	w.Eventually("the controller puts it back", func() error {
		seen = nil
		for _, version := range history.All() {
			commit, _, _ := unstructured.NestedString(version.Object, "spec", "ref", "commit")
			seen = append(seen, commit)
		}
		if len(seen) < 2 || seen[len(seen)-1] != strings.Repeat("a", 40) {
			return fmt.Errorf("it was at %q", seen)
		}
		return nil
	})
	return seen
}
