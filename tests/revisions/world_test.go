package revisions

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// patience is how long tests watch for changes that must not happen.
const patience = 4 * time.Second

// world is a namespace with a Git repository, a GatedSource that follows it, and a Kustomization that applies the pinned source.
type world struct {
	*harness.World
	g *v1alpha1.GatedSource
	// head is the last commit.
	head string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: harness.NewWorld(t, cluster)}
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{gating, sources} })
	return w
}

// follow creates a commit, its source, a GatedSource and a Kustomization of the pinned source.
func (w *world) follow(spec v1alpha1.GatedSourceSpec) {
	w.Helper()
	w.commit("v1")
	source := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", w.Key("apps"))
	source.Object["spec"] = map[string]any{"interval": "1h", "url": git.URL(w.Namespace), "ref": map[string]any{"branch": "main"}}
	w.Create(source)
	spec.SourceRef = v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}
	w.g = &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: spec}
	w.Create(w.g)
	app := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key("apps"))
	app.Object["spec"] = map[string]any{
		"interval": "1h", "retryInterval": "1s", "prune": true, "path": "./", "sourceRef": map[string]any{"kind": "GitRepository", "name": "apps-gated"},
	}
	w.Create(app)
}

// commit pushes a ConfigMap with a text, and returns the revision.
func (w *world) commit(text string) string {
	w.Helper()
	var err error
	w.head, err = git.Commit(w.Context(), w.Namespace, w.head, "app.yaml",
		fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n  namespace: %s\ndata:\n  text: %s\n", w.Namespace, text))
	w.Must(err)
	return "main@sha1:" + w.head
}

// fetch makes source-controller fetch a source now.
func (w *world) fetch(name string) {
	w.Helper()
	w.reconcile("source.toolkit.fluxcd.io/v1", "GitRepository", name)
}

func (w *world) reconcile(apiVersion, kind, name string) {
	w.Helper()
	w.Annotate(harness.Object(apiVersion, kind, w.Key(name)), fluxmeta.ReconcileRequestAnnotation, time.Now().Format(time.RFC3339Nano))
}

// sees waits until the GatedSource has observed a revision.
func (w *world) sees(revision string) {
	w.Helper()
	w.fetch("apps")
	w.eventually("the status has "+revision, func(s v1alpha1.GatedSourceStatus) bool { return s.Latest != nil && s.Latest.Revision == revision })
}

// eventually waits until the status of the GatedSource meets a condition.
func (w *world) eventually(what string, is func(v1alpha1.GatedSourceStatus) bool) {
	w.Helper()
	w.Eventually(what, func() error {
		if w.Read(w.g); !is(w.g.Status) {
			return fmt.Errorf("the status is %+v", w.g.Status)
		}
		return nil
	})
}

// approve approves a revision.
func (w *world) approve(revision string) error {
	w.Read(w.g)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ApproveRequestedAtAnnotation, promotion.FormatApproval(w.g, revision, time.Now()))
	return w.Client.Patch(w.Context(), w.g.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-annotate"))
}

// isPinned waits until the pinned source is fetched at a revision.
func (w *world) isPinned(revision string) {
	w.Helper()
	w.eventually("the pinned source is at "+revision, func(s v1alpha1.GatedSourceStatus) bool {
		return s.Pinned != nil && s.Pinned.Revision == revision && apimeta.IsStatusConditionTrue(s.Conditions, fluxmeta.ReadyCondition)
	})
}

// source reads a source.
func (w *world) source(kind, name string) *unstructured.Unstructured {
	w.Helper()
	obj := harness.Object("source.toolkit.fluxcd.io/v1", kind, w.Key(name))
	w.Read(obj)
	return obj
}

func revisionOf(obj *unstructured.Unstructured) string {
	revision, _, _ := unstructured.NestedString(obj.Object, "status", "artifact", "revision")
	return revision
}

func urlOf(obj *unstructured.Unstructured) string {
	url, _, _ := unstructured.NestedString(obj.Object, "status", "artifact", "url")
	return url
}

func (w *world) applied(text string) func() error {
	return func() error {
		config := &corev1.ConfigMap{}
		if err := w.Client.Get(w.Context(), w.Key("app"), config); err != nil {
			return err
		}
		if got := config.Data["text"]; got != text {
			return fmt.Errorf("the ConfigMap has %q", got)
		}
		return nil
	}
}

func (w *world) arrives(text string) {
	w.Helper()
	w.Eventually(text+" arrives", w.applied(text))
}

// drifts changes the ConfigMap, and waits until kustomize-controller has corrected it.
func (w *world) drifts(text string) {
	w.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: w.Namespace}}
	w.Must(w.Merge(config, `{"data":{"text":"drifted"}}`))
	w.reconcile("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "apps")
	w.arrives(text)
}

func (w *world) condition(name string) (metav1.ConditionStatus, string) {
	w.Helper()
	w.Read(w.g)
	c := apimeta.FindStatusCondition(w.g.Status.Conditions, name)
	if c == nil {
		return "", ""
	}
	return c.Status, c.Reason + ": " + c.Message
}

// reports waits until a condition of the GatedSource has a status and a text in its message.
func (w *world) reports(name string, status metav1.ConditionStatus, text string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%s is %s with %q", name, status, text), func() error {
		if got, message := w.condition(name); got != status || !strings.Contains(message, text) {
			return fmt.Errorf("got %s %s", got, message)
		}
		return nil
	})
}

// closed returns a closed Gate that governs the GatedSource.
func (w *world) closed() *v1alpha1.Gate {
	w.Helper()
	w.ClosedGate("nights", v1alpha1.TargetReference{Kind: v1alpha1.GatedSourceKind, Name: "apps"})
	return w.Opened("nights", metav1.ConditionFalse)
}

func (w *world) open() {
	w.Helper()
	w.Annotate(w.ReadGate("nights"), v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339))
}
