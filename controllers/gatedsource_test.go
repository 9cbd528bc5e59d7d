package controllers_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/gatedsource"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// commit returns a revision of a Git repository whose hash repeats a letter.
func commit(letter string) string { return "main@sha1:" + strings.Repeat(letter, 40) }

var allGatedSources = v1alpha1.TargetReference{Kind: v1alpha1.GatedSourceKind, Name: v1alpha1.AnyName}

// following is a world with a Git repository apps that a GatedSource follows.
type following struct {
	*world
	g *v1alpha1.GatedSource
}

// follow returns a world in which the Git repository is at commit a. The GatedSource has not been reconciled yet.
func follow(t *testing.T, spec v1alpha1.GatedSourceSpec) *following {
	t.Helper()
	f := &following{world: newWorld(t)}
	source := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", f.Key("apps"))
	source.Object["spec"] = map[string]any{"url": "https://git.example.com/apps", "interval": "1m", "ref": map[string]any{"branch": "main"}}
	f.Create(source)
	f.push("a")
	spec.SourceRef = v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}
	f.g = &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: spec}
	f.Create(f.g)
	return f
}

// source reads one of the Git repositories.
func (f *following) source(name string) *unstructured.Unstructured {
	f.Helper()
	obj := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", f.Key(name))
	f.Read(obj)
	return obj
}

// push sets the revision of the Git repository to a commit, as source-controller reports it.
func (f *following) push(letter string) { f.fetches("apps", commit(letter)) }

// fetches sets the revision of a Git repository, as source-controller reports it.
func (f *following) fetches(name, revision string) {
	f.Helper()
	obj := f.source(name)
	before := obj.DeepCopy()
	obj.Object["status"] = map[string]any{
		"observedGeneration": obj.GetGeneration(),
		"artifact": map[string]any{
			"revision": revision, "digest": "sha256:" + strings.Repeat("0", 64), "path": "p", "url": "http://source/p", "lastUpdateTime": "2026-11-23T12:00:00Z",
		},
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "lastTransitionTime": "2026-11-23T12:00:00Z"}},
	}
	f.Must(cluster.Client.Status().Patch(f.Context(), obj, client.MergeFrom(before)))
}

// looks reconciles the GatedSource and Gates.
func (f *following) looks(gates ...*v1alpha1.Gate) {
	f.Helper()
	f.Must(f.tries(gates...))
}

func (f *following) tries(gates ...*v1alpha1.Gate) error {
	f.Helper()
	for _, g := range gates {
		f.Reconcile(g)
	}
	_, err := f.Reconcilers().GatedSources.Reconcile(f.Context(), f.request())
	for _, g := range gates {
		f.Reconcile(g)
	}
	f.Read(f.g)
	return err
}

func (f *following) key() target.Key {
	return gatedsource.TargetKey(client.ObjectKeyFromObject(f.g))
}

func (f *following) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.g)}
}

// approves adds the approval of a revision by a user, as config/policies stamps it.
func (f *following) approves(who, revision string) {
	f.Helper()
	f.Read(f.g)
	lines := f.g.Annotations[v1alpha1.ApproveRequestedByAnnotation]
	f.Annotate(f.g, v1alpha1.ApproveRequestedByAnnotation, lines+fmt.Sprintf("round=%d,uid=%s,revision=%s %s\n", f.g.Status.Round, f.g.UID, revision, who))
}

// isAt checks the commit of the pinned source, and the conditions of the GatedSource.
func (f *following) isAt(letter string, want ...string) {
	f.Helper()
	got, obj := "", harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", f.Key("apps-gated"))
	if f.TryRead(obj) == nil {
		got, _, _ = unstructured.NestedString(obj.Object, "spec", "ref", "commit")
	}
	if got != strings.Repeat(letter, 40) {
		f.Errorf("the pinned source is at %q, not at %q", got, letter)
	}
	f.Read(f.g)
	for _, condition := range want {
		name, rest, _ := strings.Cut(condition, " ")
		c := apimeta.FindStatusCondition(f.g.Status.Conditions, name)
		if c == nil || !strings.HasPrefix(string(c.Status)+" "+c.Reason, rest) {
			f.Errorf("want %s, got %+v", condition, c)
		}
	}
}

func TestGatedSourceFollowsOnlyWhileAllGatesAreOpen(t *testing.T) {
	for name, spec := range map[string]struct {
		targets []v1alpha1.TargetReference
		names   bool
	}{
		"named by the gate": {[]v1alpha1.TargetReference{allGatedSources}, false}, "naming the gate": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := follow(t, v1alpha1.GatedSourceSpec{})
			g := f.ClosedGate("nights", spec.targets...)
			if spec.names {
				f.Annotate(f.g, v1alpha1.GatesAnnotation, "nights")
			}
			f.looks(g)
			f.isAt("", "Approved False GateClosed", "Ready False GateClosed")
			f.Open(g, f.FakeClock.Now())
			f.looks(g)
			f.isAt("a", "Approved True UpToDate", "Ready Unknown Progressing")
			f.fetches("apps-gated", commit("a"))
			f.looks()
			f.isAt("a", "Ready True Succeeded")
			f.Close(g, f.In(hours(1)))
			f.push("b")
			f.looks(g)
			f.isAt("a", "Approved False GateClosed", "Ready True Succeeded")
			if s := g.Status.Targets; s == nil || s.Total != 1 || s.Held != 1 || s.Pending != 0 {
				t.Errorf("the gate counts %+v", s)
			}
			if message := conditions.GetMessage(f.g, v1alpha1.ApprovedCondition); !strings.Contains(message, key(g)) || !strings.Contains(message, commit("b")) {
				t.Errorf("it says %q", message)
			}
			f.Open(g, f.In(hours(2)))
			f.looks(g)
			f.isAt("b", "Approved True UpToDate")
			if got := f.g.Status.Promotions; len(got) != 2 || got[0].From != commit("a") {
				t.Errorf("promotions: %+v", got)
			}
			spec := f.source("apps-gated").Object["spec"]
			want := runtime.DeepCopyJSON(f.source("apps").Object)["spec"].(map[string]any) //nolint:forcetypeassert // of a Git repository
			want["ref"] = map[string]any{"branch": "main", "commit": strings.Repeat("b", 40)}
			equal(t, spec, any(want))
		})
	}
}

// The steps share one GatedSource, without a Gate at first.
func TestPinnedSourceIsOwnedByGatedSource(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})

	// A younger GatedSource does not pin a source of the same name.
	younger := &following{world: f.world, g: &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "younger"}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: f.g.Spec.SourceRef, PinnedName: "apps-gated",
	}}}
	f.Create(younger.g)
	younger.looks()
	younger.isAt("", "Ready False SourceNotOurs", "Stalled True SourceNotOurs")
	f.Must(cluster.Client.Delete(f.Context(), younger.g))

	// A source with the same name that another client creates at the same time is not written.
	theirs := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", f.Key("apps-gated"))
	theirs.Object["spec"] = map[string]any{"url": "https://git.example.com/theirs", "interval": "1m"}
	f.Writes.Before = once("create GitRepository/apps-gated", func() error { return cluster.Client.Create(f.Context(), theirs) })
	f.looks()
	version := theirs.GetResourceVersion()
	f.isAt("", "Ready False SourceNotOurs", "Stalled True SourceNotOurs")
	f.looks()
	if f.Read(theirs); theirs.GetResourceVersion() != version {
		t.Error("it was written")
	}
	f.Must(cluster.Client.Delete(f.Context(), theirs))
	f.looks()
	f.isAt("a", "Approved True UpToDate")

	// The GatedSource owns the pinned source only with deletionPolicy: Delete.
	if owners := f.source("apps-gated").GetOwnerReferences(); len(owners) != 0 {
		t.Errorf("it is deleted with the GatedSource: %v", owners)
	}
	f.Edit(f.g, func() { f.g.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete })
	f.looks()
	if owners := f.source("apps-gated").GetOwnerReferences(); len(owners) != 1 || owners[0].UID != f.g.UID {
		t.Errorf("it is not deleted with the GatedSource: %v", owners)
	}
	f.Edit(f.g, func() { f.g.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan })
	f.looks()
	f.Writes.Take("")
	for range 3 {
		f.looks()
	}
	if wrote := f.Writes.Take(""); len(wrote) > 0 {
		t.Errorf("nothing has changed, but the writes are %q", wrote)
	}

	// Drift is corrected while a Gate is closed.
	g := f.ClosedGate("nights", allGatedSources)
	f.push("b")
	f.looks(g)
	equal(t, f.waiting(), []float64{1, float64(start.Unix())})
	pinned := f.source("apps-gated")
	f.Must(f.Merge(pinned, `{"spec":{"suspend":true,"ref":{"commit":%q},"ignore":"*"}}`, strings.Repeat("b", 40)))
	f.looks()
	f.isAt("a")
	pinned = f.source("apps-gated")
	if _, ignores, _ := unstructured.NestedString(pinned.Object, "spec", "ignore"); ignores || !harness.Suspended(pinned) {
		t.Errorf("its spec is %v", pinned.Object["spec"])
	}
	f.Must(cluster.Client.Delete(f.Context(), pinned))
	f.looks()
	f.isAt("a")

	// A GatedSource that is deleted and created again adopts it.
	f.Must(cluster.Client.Delete(f.Context(), f.g))
	_, err := f.Reconcilers().GatedSources.Reconcile(f.Context(), f.request())
	f.Must(err)
	if got := f.waiting(); len(got) > 0 {
		t.Errorf("the metrics of a deleted GatedSource are %v", got)
	}
	f.g = &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: f.g.Spec}
	f.Create(f.g)
	f.looks()
	f.isAt("a", "Approved False")
	if got := f.g.Status.Promotions; len(got) != 1 || got[0].Reason != v1alpha1.AdoptedReason {
		t.Errorf("promotions: %+v", got)
	}
}

// waiting returns the metrics of GatedSources: the number of waiting revisions, and since when they wait.
func (f *following) waiting() (values []float64) {
	f.Helper()
	families, err := f.Registry.Gather()
	f.Must(err)
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "gating_source_") {
			for _, m := range family.GetMetric() {
				values = append(values, m.GetGauge().GetValue())
			}
		}
	}
	return values
}

func TestApprovedRevisionIsPromoted(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 2}})
	f.looks()
	f.isAt("", "Approved False WaitingApproval")
	f.approves("alice", commit("a"))
	f.push("b")
	f.looks()
	f.isAt("", "Approved False WaitingApproval")
	f.approves("bob", commit("a"))
	f.Read(f.g)
	f.Annotate(f.g, v1alpha1.ApproveRequestedByAnnotation, "") // as Flux does
	f.looks()
	f.isAt("", "Approved False WaitingApproval")
	f.approves("bob", commit("a"))
	f.looks()
	f.isAt("a", "Approved False WaitingApproval")
	var by []string
	for _, a := range f.g.Status.Promotions[0].Approvals {
		by = append(by, a.ApprovedBy)
	}
	if !slices.Equal(by, []string{"alice", "bob"}) {
		t.Errorf("approved by %v", by)
	}
	events := f.Events.Take("GatedSource/apps")
	want := []string{
		"Normal GatedSource/apps RevisionWaits: '" + commit("a") + "' waits for approval: 0 of 2. To approve it: ",
		"Normal GatedSource/apps RevisionApproved: Revision '" + commit("a") + "' approved by alice",
		"Normal GatedSource/apps RevisionWaits: '" + commit("b") + "' waits for approval: ",
		"Normal GatedSource/apps RevisionApproved: Revision '" + commit("a") + "' approved by bob",
		"Normal GatedSource/apps RevisionWaits: '" + commit("b") + "' waits for approval: ", // of the next round
		"Normal GatedSource/apps RevisionPromoted: Promoted '" + commit("a") + "' from 'nothing' (RevisionApproved), approved by alice, bob",
	}
	if !slices.EqualFunc(events, want, strings.HasPrefix) {
		t.Errorf("got  %q\nwant %q", events, want)
	}
	f.Unstamped = true
	f.approves("alice", commit("b"))
	f.approves("bob", commit("b"))
	f.looks()
	f.isAt("a", "Approved False WaitingApproval")
	if message := conditions.GetMessage(f.g, v1alpha1.ApprovedCondition); !strings.Contains(message, "gated-source-stamp") {
		t.Errorf("it says %q", message)
	}
	f.Unstamped = false
	f.looks()
	f.isAt("b", "Approved True UpToDate")
}

func TestPerMinuteLimitsGatedSources(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})
	for i := range 3 {
		more := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("more-%d", i)}, Spec: f.g.Spec}
		f.Create(more)
	}
	g := f.Gate("paced", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{allGatedSources}, Release: &v1alpha1.ReleasePolicy{PerMinute: 1}})
	promoted := func() (n int) {
		list := &v1alpha1.GatedSourceList{}
		f.Must(cluster.Client.List(f.Context(), list, client.InNamespace(f.Namespace)))
		for _, one := range list.Items {
			if one.Status.Pinned != nil {
				n++
			}
		}
		return n
	}
	for minute := range 4 {
		f.In(hours(float64(minute) / 60))
		f.Reconcile(g)
		f.Reconcile(g)
		if got := promoted(); got != minute+1 {
			t.Errorf("after %d minutes %d are promoted", minute, got)
		}
		if r := f.ReadGate(g.Name).Status.Release; r == nil || r.Released != int64(minute+1) {
			t.Errorf("after %d minutes the gate counts %+v", minute, r)
		}
	}
}

func TestSourceEventEnqueuesFollowersAndPins(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})
	f.Create(&v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "else"}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "OCIRepository", Name: "apps"}, PinnedName: "other",
	}})
	f.looks()
	handler, ok := f.Reconcilers().Handlers.ForTargets(t.Context()).(cache.ResourceEventHandlerDetailedFuncs)
	if !ok {
		t.Fatal("it is another handler")
	}
	for _, name := range []string{"apps", "apps-gated"} {
		f.Queues.Clear()
		obj := f.source(name)
		handler.OnUpdate(obj, obj)
		if got := f.Queues.TakeTargets(); !reflect.DeepEqual(got, []target.Key{f.key()}) {
			t.Errorf("%s wakes %v", name, got)
		}
	}
	f.Queues.Clear()
	other := f.source("apps")
	other.SetName("unrelated")
	handler.OnUpdate(other, other)
	if got := f.Queues.TakeTargets(); len(got) > 0 {
		t.Errorf("it wakes %v", got)
	}
}
