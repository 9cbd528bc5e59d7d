package revisions

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestPinnedRevisionIsAppliedAndDriftCorrected(t *testing.T) {
	w := newWorld(t)
	w.follow(v1alpha1.GatedSourceSpec{})
	w.arrives("v1")
	first := "main@sha1:" + w.head
	w.isPinned(first)
	if got := revisionOf(w.source("GitRepository", "apps-gated")); got != first {
		t.Errorf("the pinned source is at %s, want %s", got, first)
	}
	w.closed()
	second := w.commit("v2")
	w.sees(second)
	w.reports(v1alpha1.ApprovedCondition, metav1.ConditionFalse, "waits. Held by gate '"+w.Namespace+"/nights'")
	w.drifts("v1")
	w.fetch("apps-gated")
	w.Throughout(patience, "v1 stays", w.applied("v1"))
	w.drifts("v1")
	w.open()
	w.arrives("v2")
	w.isPinned(second)
	w.reports(v1alpha1.ApprovedCondition, metav1.ConditionTrue, "UpToDate")
	w.Must(w.Client.Delete(w.Context(), w.g))
	w.drifts("v2") // the pinned source stays
}

func TestRollbackIsAppliedWhileGatesAreClosed(t *testing.T) {
	w := newWorld(t)
	w.follow(v1alpha1.GatedSourceSpec{})
	w.arrives("v1")
	first := "main@sha1:" + w.head
	second := w.commit("v2")
	w.sees(second)
	w.arrives("v2")
	w.isPinned(second)
	w.closed()
	w.eventually("the gate holds it", func(s v1alpha1.GatedSourceStatus) bool { return len(s.HeldBy) == 1 })
	w.Annotate(w.g, v1alpha1.RollbackRequestedAtAnnotation, promotion.FormatRollback(w.g, first, time.Now()),
		v1alpha1.RollbackGatesAnnotation, w.Namespace+"/nights")
	w.arrives("v1")
	w.isPinned(first)
	w.open()
	w.fetch("apps")
	w.Throughout(patience, "v1 stays", w.applied("v1"))
	third := w.commit("v3")
	w.sees(third)
	w.arrives("v3")
	w.isPinned(third)
}

// races is how often two commits race with an approval.
const races = 100

func TestApprovedRevisionIsPromotedDespiteNewerCommits(t *testing.T) {
	w := newWorld(t)
	w.follow(v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
	next := "main@sha1:" + w.head
	w.sees(next)
	approved := map[string]bool{}
	seen := w.watch("apps-gated")
	for n := range races {
		revision := next
		approved[revision] = true
		var wait sync.WaitGroup
		wait.Go(func() {
			next = w.commit(fmt.Sprintf("r%d", n))
			w.fetch("apps")
		})
		time.Sleep(time.Duration(n%10) * 10 * time.Millisecond) // sometimes before the other commit is pushed, sometimes after
		w.Must(w.approve(revision))
		wait.Wait()
		w.eventually("the pin is at "+revision, func(s v1alpha1.GatedSourceStatus) bool { return s.Pinned != nil && s.Pinned.Revision == revision })
		w.sees(next)
	}
	for _, commit := range seen() {
		if !approved["main@sha1:"+commit] {
			t.Errorf("%s was pinned without an approval", commit)
		}
	}
	if n := len(seen()); n != races {
		t.Errorf("%d commits were pinned, want %d", n, races)
	}
	if len(w.g.Status.Promotions) != v1alpha1.MaxPromotions || len(w.g.Status.Seen) != v1alpha1.MaxSeen {
		t.Errorf("%d promotions, %d seen", len(w.g.Status.Promotions), len(w.g.Status.Seen))
	}
}

// watch returns a function that returns all commits that a pinned source was pinned to, each once.
func (w *world) watch(name string) func() []string {
	w.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("source.toolkit.fluxcd.io/v1")
	list.SetKind("GitRepositoryList")
	ctx, cancel := context.WithCancel(w.Context())
	watch, err := w.Client.Watch(ctx, list, client.InNamespace(w.Namespace))
	w.Must(err)
	w.Cleanup(func() { cancel(); watch.Stop() })
	var mu sync.Mutex
	var commits []string
	known := map[string]bool{}
	go func() {
		for event := range watch.ResultChan() {
			obj, ok := event.Object.(*unstructured.Unstructured)
			if !ok || obj.GetName() != name {
				continue
			}
			commit, _, _ := unstructured.NestedString(obj.Object, "spec", "ref", "commit")
			mu.Lock()
			if !known[commit] {
				known[commit], commits = true, append(commits, commit)
			}
			mu.Unlock()
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), commits...)
	}
}

// loseDisk restarts source-controller with an empty disk.
func (w *world) loseDisk() {
	w.Helper()
	w.Must(sources.Stop())
	w.Must(os.RemoveAll(filepath.Join(cluster.Dir(), "source-controller")))
	var err error
	sources, err = cluster.StartSourceController(context.WithoutCancel(w.Context()))
	w.Must(err)
}

func TestPinnedRevisionIsFetchedAgainAfterDiskLoss(t *testing.T) {
	w := newWorld(t)
	w.follow(v1alpha1.GatedSourceSpec{})
	w.arrives("v1")
	first := "main@sha1:" + w.head
	w.isPinned(first)
	w.closed()
	w.sees(w.commit("v2"))
	before := urlOf(w.source("GitRepository", "apps-gated"))
	w.loseDisk()
	w.fetch("apps-gated")
	w.Eventually("the revision is fetched again", func() error { // source-controller has a new address
		if obj := w.source("GitRepository", "apps-gated"); urlOf(obj) == before || urlOf(obj) == "" || revisionOf(obj) != first {
			return fmt.Errorf("the source is at %q, %s", revisionOf(obj), urlOf(obj))
		}
		return nil
	})
	w.drifts("v1")
}

func TestForcePushRemovingPinnedCommitIsReported(t *testing.T) {
	w := newWorld(t)
	w.follow(v1alpha1.GatedSourceSpec{})
	w.arrives("v1")
	first := "main@sha1:" + w.head
	w.isPinned(first)
	w.closed()
	w.head = ""
	second := w.commit("v2")
	w.Must(git.Prune(w.Context(), w.Namespace))
	w.sees(second)
	w.drifts("v1") // source-controller still has a copy
	w.loseDisk()
	w.fetch("apps-gated")
	w.reports("Ready", metav1.ConditionFalse, "cannot be fetched at '"+first+"'")
	w.Throughout(patience, "v1 stays", w.applied("v1"))
	w.open()
	w.arrives("v2")
	w.isPinned(second)
}

func TestOCIRepositoryIsPinnedByDigest(t *testing.T) {
	w := newWorld(t)
	registry := harness.StartRegistry()
	t.Cleanup(registry.Stop)
	push := func(text string) {
		w.Must(registry.Push("app", "latest", map[string]string{"app.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n  namespace: %s\ndata:\n  text: %s\n", w.Namespace, text)}))
	}
	push("v1")
	source := harness.Object("source.toolkit.fluxcd.io/v1", "OCIRepository", w.Key("apps"))
	source.Object["spec"] = map[string]any{"interval": "1h", "insecure": true, "url": registry.URL("app"), "ref": map[string]any{"tag": "latest"}}
	w.Create(source)
	w.g = &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: v1alpha1.GatedSourceSpec{SourceRef: v1alpha1.PinnableReference{Kind: "OCIRepository", Name: "apps"}}}
	w.Create(w.g)
	w.eventually("the revision is promoted", func(s v1alpha1.GatedSourceStatus) bool { return s.Pinned != nil })
	first := w.g.Status.Pinned.Revision
	w.isPinned(first)
	if got := revisionOf(w.source("OCIRepository", "apps-gated")); !strings.HasPrefix(first, "latest@sha256:") || got != strings.TrimPrefix(first, "latest@") {
		t.Errorf("the pinned source is at %q, and the original at %q", got, first)
	}
	w.closed()
	push("v2")
	w.reconcile("source.toolkit.fluxcd.io/v1", "OCIRepository", "apps")
	w.eventually("the newer revision waits", func(s v1alpha1.GatedSourceStatus) bool { return s.Waiting == 1 })
	w.reconcile("source.toolkit.fluxcd.io/v1", "OCIRepository", "apps-gated")
	w.isPinned(first)
	w.open()
	w.eventually("the revision is promoted", func(s v1alpha1.GatedSourceStatus) bool { return s.Waiting == 0 && s.Pinned.Revision != first })
	w.isPinned(w.g.Status.Pinned.Revision)
}

func TestHelmChartIsPinnedToVersion(t *testing.T) {
	w := newWorld(t)
	repository := &charts{}
	server := httptest.NewServer(repository)
	t.Cleanup(server.Close)
	repository.publish(t, "1.0.0")
	helm := harness.Object("source.toolkit.fluxcd.io/v1", "HelmRepository", w.Key("charts"))
	helm.Object["spec"] = map[string]any{"interval": "1h", "url": server.URL}
	w.Create(helm)
	chart := harness.Object("source.toolkit.fluxcd.io/v1", "HelmChart", w.Key("apps"))
	chart.Object["spec"] = map[string]any{"interval": "1h", "chart": "app", "version": "1.x", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}
	w.Create(chart)
	w.g = &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: v1alpha1.GatedSourceSpec{SourceRef: v1alpha1.PinnableReference{Kind: "HelmChart", Name: "apps"}}}
	w.Create(w.g)
	w.isPinned("1.0.0")
	w.closed()
	repository.publish(t, "1.0.0", "1.1.0")
	w.reconcile("source.toolkit.fluxcd.io/v1", "HelmRepository", "charts")
	w.Eventually("the newer version waits", func() error {
		w.reconcile("source.toolkit.fluxcd.io/v1", "HelmChart", "apps")
		if w.Read(w.g); w.g.Status.Latest.Revision != "1.1.0" {
			return fmt.Errorf("the latest is %s", w.g.Status.Latest.Revision)
		}
		return nil
	})
	w.reconcile("source.toolkit.fluxcd.io/v1", "HelmChart", "apps-gated")
	w.isPinned("1.0.0")
	w.open()
	w.isPinned("1.1.0")
	if got := revisionOf(w.source("HelmChart", "apps-gated")); got != "1.1.0" {
		t.Errorf("the pinned source is at %s", got)
	}
}

// charts is a chart repository.
type charts struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (c *charts) publish(t *testing.T, versions ...string) {
	t.Helper()
	files := map[string][]byte{}
	index := "apiVersion: v1\nentries:\n  app:\n"
	for _, version := range versions {
		content, err := harness.Tarball(map[string]string{"app/Chart.yaml": "apiVersion: v2\nname: app\nversion: " + version + "\n"})
		if err != nil {
			t.Fatal(err)
		}
		files["/app-"+version+".tgz"] = content
		index += fmt.Sprintf("  - {apiVersion: v2, name: app, version: %s, urls: [app-%s.tgz]}\n", version, version)
	}
	files["/index.yaml"] = []byte(index)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = files
}

func (c *charts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	content, ok := c.files[r.URL.Path]
	c.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content)
}
