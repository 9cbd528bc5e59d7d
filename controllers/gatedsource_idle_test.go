package controllers_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// many is the number of GatedSources, each with a source, and most with a pinned source.
const many = 200

// requests counts the requests of a manager to the API server: writes by method and path, and reads by method, without the watches of its
// caches.
type requests struct {
	mu     sync.Mutex
	counts map[string]int
}

// countingTripper counts the requests to next.
type countingTripper struct {
	*requests
	next http.RoundTripper
}

func (c countingTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	what := r.Method
	if what != http.MethodGet {
		what += " " + r.URL.Path
	}
	if r.URL.Query().Get("watch") == "" {
		c.mu.Lock()
		c.counts[what]++
		c.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}

// of returns a control plane for a manager whose requests are counted.
func (r *requests) of(c *harness.ControlPlane) *harness.ControlPlane {
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countingTripper{r, next} })
	return &harness.ControlPlane{Config: config}
}

// take returns the counts since the last call.
func (r *requests) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.counts
	r.counts = map[string]int{}
	return taken
}

// setClock is a clock that is set while it runs.
type setClock struct {
	clock.RealClock
	by atomic.Int64
}

// Now implements clock.PassiveClock.
func (c *setClock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.by.Load())) }

// Since implements clock.PassiveClock.
func (c *setClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// crowd is a namespace with many GatedSources in all forms.
type crowd struct {
	*world
	clock    setClock
	requests requests
}

// form is a GatedSource with its wanted state after it has settled.
type form struct {
	spec v1alpha1.GatedSourceSpec
	// has is the commit of the source, and pinned the commit that is pinned already, as letters, empty for none.
	has, pinned string
	gates       string
	want        string
}

var forms = []form{
	{has: "a", want: "Approved=True/UpToDate Ready=True/Succeeded"},
	{has: "b", pinned: "a", gates: "nights", want: "Approved=False/GateClosed Ready=True/Succeeded"},
	{has: "b", pinned: "a", spec: v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}}, want: "Approved=False/WaitingApproval Ready=True/Succeeded"},
	{has: "b", pinned: "a", spec: v1alpha1.GatedSourceSpec{Revision: commit("a")}, want: "Approved=True/PinnedInSpec Ready=True/Succeeded"},
	{want: "Approved=False/SourceNotFound Ready=False/SourceNotFound"},
}

// repository creates a Git repository. If letter is set, source-controller has fetched that commit.
func (c *crowd) repository(name, letter string, change func(*unstructured.Unstructured)) error {
	obj := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", c.Key(name))
	obj.Object["spec"] = map[string]any{"url": "https://git.example.com/apps", "interval": "1m", "ref": map[string]any{"branch": "main"}}
	if change(obj); letter == "" {
		return cluster.Client.Create(c.Context(), obj)
	}
	return errors.Join(cluster.Client.Create(c.Context(), obj), c.fetched(obj, letter))
}

// fetched sets the status of a Git repository as source-controller does after fetching a commit.
func (c *crowd) fetched(obj *unstructured.Unstructured, letter string) error {
	before := obj.DeepCopy()
	obj.Object["status"] = map[string]any{
		"observedGeneration": obj.GetGeneration(),
		"artifact": map[string]any{
			"revision": commit(letter), "digest": "sha256:" + strings.Repeat("0", 64), "path": "p", "url": "http://source/p", "lastUpdateTime": "2026-11-23T12:00:00Z",
		},
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "lastTransitionTime": "2026-11-23T12:00:00Z"}},
	}
	return cluster.Client.Status().Patch(c.Context(), obj, client.MergeFrom(before))
}

// newCrowd creates all GatedSources. They have not been reconciled yet.
func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{world: newWorld(t), requests: requests{counts: map[string]int{}}}
	c.ClosedGate("nights")
	var all errgroup.Group
	all.SetLimit(16)
	for i := range many {
		all.Go(func() error {
			f, name := forms[i%len(forms)], fmt.Sprintf("app-%d", i)
			g := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}, Spec: f.spec}
			g.Spec.SourceRef = v1alpha1.PinnableReference{Kind: "GitRepository", Name: name}
			if f.gates != "" {
				g.Annotations = map[string]string{v1alpha1.GatesAnnotation: f.gates}
			}
			err := c.repository(name, f.has, func(*unstructured.Unstructured) {})
			if f.pinned != "" {
				err = errors.Join(err, c.repository(g.PinnedName(), f.pinned, func(obj *unstructured.Unstructured) {
					obj.SetAnnotations(map[string]string{v1alpha1.PinnedByAnnotation: name})
					obj.Object["spec"].(map[string]any)["ref"] = map[string]any{"branch": "main", "commit": strings.Repeat(f.pinned, 40)} //nolint:forcetypeassert // it was just made
				}))
			}
			return errors.Join(err, cluster.Client.Create(c.Context(), g))
		})
	}
	c.Must(all.Wait())
	return c
}

// all returns the Git repositories and the GatedSources.
func (c *crowd) all() (repositories *unstructured.UnstructuredList, sources *v1alpha1.GatedSourceList) {
	c.Helper()
	repositories, sources = &unstructured.UnstructuredList{}, &v1alpha1.GatedSourceList{}
	repositories.SetAPIVersion("source.toolkit.fluxcd.io/v1")
	repositories.SetKind("GitRepositoryList")
	c.Must(cluster.Client.List(c.Context(), repositories, client.InNamespace(c.Namespace)))
	c.Must(cluster.Client.List(c.Context(), sources, client.InNamespace(c.Namespace)))
	return repositories, sources
}

// versions returns the resource versions of all objects that the controllers could write.
func (c *crowd) versions() map[string]string {
	c.Helper()
	repositories, sources := c.all()
	versions := map[string]string{"gate": c.ReadGate("nights").ResourceVersion}
	for i := range repositories.Items {
		versions["repository "+repositories.Items[i].GetName()] = repositories.Items[i].GetResourceVersion()
	}
	for i := range sources.Items {
		versions["source "+sources.Items[i].Name] = sources.Items[i].ResourceVersion
	}
	return versions
}

// settles waits until each GatedSource has its wanted state. Meanwhile it reports pinned sources as fetched.
func (c *crowd) settles() {
	c.Helper()
	c.Must(harness.Eventually(c.Context(), 3*harness.Patience, "all are as they are meant to be", func() error {
		repositories, sources := c.all()
		for i := range repositories.Items {
			obj := &repositories.Items[i]
			if _, has, _ := unstructured.NestedMap(obj.Object, "status", "artifact"); !has && strings.HasSuffix(obj.GetName(), "-gated") {
				c.Must(c.fetched(obj, "a"))
			}
		}
		for i := range sources.Items {
			g := &sources.Items[i]
			var n int
			if _, err := fmt.Sscanf(g.Name, "app-%d", &n); err != nil {
				return err
			}
			if got, want := conditionsOf(g), forms[n%len(forms)].want; got != want {
				return fmt.Errorf("%s is %s, not %s", g.Name, got, want)
			}
		}
		if g := c.ReadGate("nights"); !conditions.IsReady(g) || int(g.Status.Targets.Held) != many/len(forms) {
			return fmt.Errorf("the gate is %+v", g.Status)
		}
		return nil
	}))
}

// conditionsOf returns a summary of the conditions of a GatedSource.
func conditionsOf(g *v1alpha1.GatedSource) string {
	var is []string
	for _, name := range []string{v1alpha1.ApprovedCondition, "Ready"} {
		if found := apimeta.FindStatusCondition(g.Status.Conditions, name); found != nil {
			is = append(is, fmt.Sprintf("%s=%s/%s", name, found.Status, found.Reason))
		}
	}
	return strings.Join(is, " ")
}

// looks returns the number of reconciliations of targets so far.
func (c *crowd) looks() (n float64) {
	c.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	c.Must(err)
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "controller" && slices.Contains([]string{"target", "gatedsource"}, label.GetValue()) {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// lookedAt waits until there were a number of reconciliations of targets since from.
func (c *crowd) lookedAt(from float64, times int) {
	c.Helper()
	c.Must(harness.Eventually(c.Context(), 3*harness.Patience, "all are looked at", func() error {
		if n := c.looks() - from; n < float64(times) {
			return fmt.Errorf("%.0f looks of %d", n, times)
		}
		return nil
	}))
}

// isIdle checks that no requests are sent while all objects are reconciled repeatedly, because the clock is set.
func (c *crowd) isIdle(objects int) {
	c.Helper()
	c.requests.take()
	for range 2 {
		from := c.looks()
		c.clock.by.Add(int64(time.Hour))
		c.lookedAt(from, objects)
	}
	if asked := c.requests.take(); len(asked) > 0 {
		c.Errorf("idle, and yet it asks: %v", asked)
	}
}

// unchanged checks that nothing was written since.
func (c *crowd) unchanged(before map[string]string) {
	c.Helper()
	for name, version := range c.versions() {
		if before[name] != version {
			c.Errorf("%s was written", name)
		}
	}
}

// leave deletes all objects, because they would be reconciled in other tests.
func (c *crowd) leave() {
	c.Helper()
	plain, err := client.New(cluster.Config, client.Options{Scheme: cluster.Client.Scheme()})
	c.Must(err)
	repository := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", c.Key(""))
	for _, obj := range []client.Object{&v1alpha1.GatedSource{}, repository} {
		c.Must(plain.DeleteAllOf(c.Context(), obj, client.InNamespace(c.Namespace)))
	}
}

func TestIdleGatedSourcesCauseNoWrites(t *testing.T) {
	c := newCrowd(t)
	defer c.leave()
	start := func(t *testing.T) {
		t.Helper()
		startManager(t, c.requests.of(cluster), func(r *controllers.Gating) {
			r.Clock, r.Namespaces = &c.clock, map[string]ctrlcache.Config{c.Namespace: {}}
		})
	}
	const objects = many + many + many*4/5
	var settled map[string]string
	t.Run("while it runs", func(t *testing.T) {
		start(t)
		c.settles()
		settled = c.versions()
		c.isIdle(objects)
		c.unchanged(settled)
	})
	t.Run("when it starts again", func(t *testing.T) {
		c.requests.take()
		from := c.looks()
		start(t)
		c.lookedAt(from, objects)
		asked := c.requests.take()
		if delete(asked, http.MethodGet); len(asked) > 0 { // its caches list objects at the start
			t.Errorf("it writes: %v", asked)
		}
		c.isIdle(objects)
		c.unchanged(settled)
	})
	if n := len(settled); n != objects+1 {
		t.Errorf("there are %d objects, want %d and a gate", n, objects)
	}
}
