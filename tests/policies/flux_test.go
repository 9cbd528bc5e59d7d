package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// git is a tenant's repository with Gates, which kustomize-controller applies as
// a service account of the tenant.
type git struct {
	*world
	artifacts *harness.ArtifactServer
	tenant    string
	revision  int
}

func newGit(t *testing.T, roles ...string) *git {
	t.Helper()
	r := &git{world: newWorld(t), artifacts: harness.StartArtifactServer()}
	t.Cleanup(r.artifacts.Stop)
	flux, err := cluster.StartKustomizeController(context.Background())
	r.Must(err)
	t.Cleanup(func() {
		if err := flux.Stop(); err != nil {
			t.Error(err)
		}
	})
	r.tenant = "system:serviceaccount:" + r.Namespace + ":tenant"
	r.as(r.tenant, roles...)
	return r
}

// commit makes a Gate with annotations the content of the repository.
func (r *git) commit(annotations string) {
	r.Helper()
	r.commitManifest(fmt.Sprintf(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"Gate","spec":{"default":"closed"},`+
		`"metadata":{"name":"production","namespace":%q,"annotations":%s}}`, r.Namespace, annotations))
}

func (r *git) commitManifest(manifest string) {
	r.Helper()
	r.revision++
	key := client.ObjectKey{Namespace: r.Namespace, Name: "gates"}
	r.Must(r.artifacts.Publish(r.Context(), cluster.Client, key, fmt.Sprintf("v%d", r.revision), map[string]string{"gate.yaml": manifest}))
	if r.revision > 1 {
		return
	}
	obj := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", key)
	obj.Object["spec"] = map[string]any{
		"interval": "1h", "prune": true, "path": "./", "serviceAccountName": "tenant",
		"sourceRef": map[string]any{"kind": "ExternalArtifact", "name": "gates"},
	}
	r.Create(obj)
	r.Cleanup(func() { // another kustomize-controller would ask for the artifact when it is gone
		ctx := context.Background()
		r.Must(cluster.Client.Delete(ctx, obj))
		r.Must(harness.Eventually(ctx, harness.Patience, "the Kustomization is gone", func() error {
			if err := cluster.Client.Get(ctx, key, obj); !apierrors.IsNotFound(err) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}))
	})
}

// sync has kustomize-controller apply the repository, and returns its condition
// Ready.
func (r *git) sync() *metav1.Condition {
	r.Helper()
	token := time.Now().Format(time.RFC3339Nano)
	obj := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", client.ObjectKey{Namespace: r.Namespace, Name: "gates"})
	r.Must(cluster.Client.Patch(r.Context(), obj, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"`+token+`"}}}`))))
	var status struct {
		LastHandledReconcileAt string             `json:"lastHandledReconcileAt"`
		LastAttemptedRevision  string             `json:"lastAttemptedRevision"`
		Conditions             []metav1.Condition `json:"conditions"`
	}
	var ready *metav1.Condition
	r.Eventually("kustomize-controller has reconciled", func() error {
		r.Read(obj)
		content, _, err := unstructured.NestedMap(obj.Object, "status")
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status)
		}
		if err != nil || status.LastHandledReconcileAt != token || status.LastAttemptedRevision != fmt.Sprintf("v%d", r.revision) {
			return fmt.Errorf("status %+v, %w", status, err)
		}
		if ready = meta.FindStatusCondition(status.Conditions, "Ready"); ready == nil || ready.Status == metav1.ConditionUnknown {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	})
	return ready
}

// synced is sync that succeeds.
func (r *git) synced() {
	r.Helper()
	if ready := r.sync(); ready == nil || ready.Status != metav1.ConditionTrue {
		r.Fatalf("Ready is %+v", ready)
	}
}

// settled checks that kustomize-controller has nothing to correct.
func (r *git) settled(g *v1alpha1.Gate) {
	r.Helper()
	before := r.get(g)
	for range 3 {
		r.synced()
	}
	if after := r.get(g); after.ResourceVersion != before.ResourceVersion {
		r.Errorf("kustomize-controller writes the gate again\nfrom %+v\nto   %+v", before.ObjectMeta, after.ObjectMeta)
	}
}

func TestFluxStripsARequestAndItsStampWithoutTheVerbAndThenRests(t *testing.T) {
	r := newGit(t, editor, viewer)
	r.commit(`{}`)
	r.synced()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: r.Namespace}}
	r.decided(g, metav1.ConditionFalse)
	alice := r.as("alice", opener)

	r.allowed(alice, "annotate", "gate", "production", openAt+"="+now(), openWhy+"=hotfix 1234")
	r.stamped(g, openBy, "alice")
	r.decided(g, metav1.ConditionTrue)
	r.synced()
	for _, key := range []string{openAt, openWhy, openBy} {
		if value, ok := r.get(g).Annotations[key]; ok {
			t.Errorf("%s is still there: %s", key, value)
		}
	}
	r.decided(g, metav1.ConditionTrue)
	if last := g.LatestRequest(); last.RequestedBy != "alice" || last.Message != "hotfix 1234" {
		t.Errorf("lastRequest is %+v", last)
	}
	r.synced() // strips what decided asked by
	r.settled(g)

	// A client that is not kubectl keeps its annotations, and the stamp with them.
	request := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+openAt+`":"`+now()+`"}}}`))
	r.Must(alice.Client.Patch(r.Context(), r.get(g), request, client.FieldOwner("dashboard")))
	r.stamped(g, openBy, "alice")
	r.decided(g, metav1.ConditionTrue)
	r.settled(g)
	r.stamped(g, openBy, "alice")
}

// The periods that a platform team applies stay when Flux applies the others.
func TestGitAndAPlatformTeamEachOwnPeriods(t *testing.T) {
	r := newGit(t, editor, viewer)
	const nights = `{"name":"nights","start":"22:00","end":"05:00"}`
	const migration = `{"name":"migration","from":"2027-11-28T00:00:00Z","until":"2027-11-30T00:00:00Z"}`
	manifest := func(spec string) string {
		return fmt.Sprintf(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"Gate","metadata":{"name":"production","namespace":%q},"spec":{%s}}`, r.Namespace, spec)
	}
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: r.Namespace}}
	has := func(want string) {
		t.Helper()
		var names []string
		spec := r.get(g).Spec
		for _, p := range spec.OpenPeriods {
			names = append(names, p.Name)
		}
		for _, p := range spec.ClosePeriods {
			names = append(names, p.Name+" until "+stamp(p.Until.Time()))
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("has %q, want %q", got, want)
		}
	}
	r.commitManifest(manifest(`"default":"closed","openPeriods":[` + nights + `]`))
	r.synced()
	paula := r.as("paula", editor, viewer)
	apply := func(spec string) []string {
		return []string{"apply", "--server-side", "--field-manager=platform", "-f", r.file(manifest(spec))}
	}
	r.allowed(paula, apply(`"closePeriods":[`+migration+`]`)...)
	has("nights, migration until 2027-11-30T00:00:00Z")
	r.Decided(g)
	r.settled(g)
	has("nights, migration until 2027-11-30T00:00:00Z")
	if out, err := paula.kubectl(r.Context(), r.Namespace, apply(`"openPeriods":[`+strings.Replace(nights, "05:00", "06:00", 1)+`]`)...); err == nil ||
		!strings.Contains(out, `conflict with "kustomize-controller": .spec.openPeriods[name="nights"]`) {
		t.Errorf("paula changes the window of Git: %s, %v", out, err)
	}

	r.commitManifest(manifest(`"default":"closed"`))
	r.synced()
	has("migration until 2027-11-30T00:00:00Z")
	// Flux insists on what is in Git.
	r.commitManifest(manifest(`"default":"closed","openPeriods":[` + nights + `],"closePeriods":[` + strings.Replace(migration, "-30T", "-29T", 1) + `]`))
	r.synced()
	has("nights, migration until 2027-11-29T00:00:00Z")
}

func TestARequestInGitNeedsTheVerbOfWhoAppliesIt(t *testing.T) {
	r := newGit(t, editor, viewer)
	r.commit(`{}`)
	r.synced()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: r.Namespace}}
	r.decided(g, metav1.ConditionFalse)

	r.commit(`{"` + openAt + `":"` + now() + `","` + openBy + `":"alice"}`)
	ready := r.sync()
	if ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "user "+r.tenant+" may not open gate "+r.Namespace+"/production") {
		t.Errorf("Ready is %+v", ready)
	}
	r.decided(g, metav1.ConditionFalse)

	r.as(r.tenant, opener)
	r.mayBy(r.tenant, "open", "gates", v1alpha1.GroupVersion.Group)
	r.synced()
	r.stamped(g, openBy, r.tenant)
	r.decided(g, metav1.ConditionTrue)
	r.settled(g)
	r.stamped(g, openBy, r.tenant)
}

func TestAnExceptionInGitIsApprovedOutsideOfIt(t *testing.T) {
	r := newGit(t, exceptionEditor, viewer)
	g := r.guarded(1)
	alice := r.as("alice", exceptionApprover)
	commit := func(spec string, annotations map[string]string) {
		r.Helper()
		manifest := exceptionManifest("hotfix", spec, annotations)
		manifest["metadata"].(map[string]any)["namespace"] = r.Namespace
		content, err := json.Marshal(manifest)
		r.Must(err)
		r.commitManifest(string(content))
	}
	spec := opens(1)
	commit(spec, nil)
	r.synced()
	r.stampedException("hotfix", r.tenant, "")
	r.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)

	r.allowed(alice, r.approval()...)
	r.stampedException("hotfix", r.tenant, "1 alice")
	r.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
	r.synced() // strips the approval, but not its stamp
	if at, ok := r.exception("hotfix").Annotations[approveAt]; ok {
		t.Errorf("%s is still there: %s", approveAt, at)
	}
	r.stampedException("hotfix", r.tenant, "1 alice")
	r.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
	before := r.exception("hotfix").ResourceVersion
	for range 3 {
		r.synced()
	}
	if after := r.exception("hotfix").ResourceVersion; after != before {
		t.Error("kustomize-controller writes the exception again")
	}

	commit(spec, map[string]string{approveAt: r.approvalOf("hotfix"), authors: "bob", approveBy: "1 bob"})
	if ready := r.sync(); ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "user "+r.tenant+" may not approve gate exception") {
		t.Errorf("Ready is %+v", ready)
	}
	r.as(r.tenant, exceptionApprover)
	r.mayBy(r.tenant, "approve", "gateexceptions", v1alpha1.GroupVersion.Group)
	if ready := r.sync(); ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "user "+r.tenant+" wrote gate exception "+r.Namespace+"/hotfix: somebody else has to approve it") {
		t.Errorf("Ready is %+v", ready)
	}
	commit(opens(2), nil)
	r.synced()
	r.stampedException("hotfix", r.tenant, "1 alice") // void, see the generation
	r.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	r.Must(client.IgnoreNotFound(cluster.Client.Delete(r.Context(), r.exception("hotfix"))))
}
