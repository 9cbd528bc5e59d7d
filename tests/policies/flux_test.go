package policies

import (
	"context"
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

// git is a tenant's repository with Gates. kustomize-controller applies it as a service account of the tenant.
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
	// Another instance would also reconcile the Kustomizations of other tests.
	flux, err := cluster.StartKustomizeController(context.WithoutCancel(t.Context()))
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

// commit replaces the content of the repository with a closed Gate with annotations.
func (r *git) commit(annotations map[string]string) {
	r.Helper()
	r.commitManifest(gateFile("production", annotations))
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
		"interval": "1h", "prune": true, "path": "./", "serviceAccountName": "tenant", "targetNamespace": r.Namespace,
		"sourceRef": map[string]any{"kind": "ExternalArtifact", "name": "gates"},
	}
	r.Create(obj)
	r.Cleanup(func() { // otherwise another kustomize-controller would request the deleted artifact
		ctx := context.Background()
		r.Must(cluster.Client.Delete(ctx, obj))
		r.Must(harness.Eventually(ctx, harness.Patience, "the Kustomization is deleted", func() error {
			if err := cluster.Client.Get(ctx, key, obj); !apierrors.IsNotFound(err) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}))
	})
}

// sync makes kustomize-controller apply the repository, and returns the condition Ready.
func (r *git) sync() *metav1.Condition {
	r.Helper()
	token := time.Now().Format(time.RFC3339Nano)
	obj := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", client.ObjectKey{Namespace: r.Namespace, Name: "gates"})
	r.Annotate(obj, "reconcile.fluxcd.io/requestedAt", token)
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

// synced calls sync and expects success.
func (r *git) synced() {
	r.Helper()
	if ready := r.sync(); ready == nil || ready.Status != metav1.ConditionTrue {
		r.Fatalf("Ready is %+v", ready)
	}
}

// failed calls sync and expects a failure for a cause.
func (r *git) failed(cause string) {
	r.Helper()
	if ready := r.sync(); ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message+"\n", strings.TrimSpace(cause)) {
		r.Errorf("Ready is %+v, want failure %s", ready, cause)
	}
}

// settled checks that kustomize-controller has nothing to correct.
func (r *git) settled(g *v1alpha1.Gate) {
	r.Helper()
	before := r.get(g).ObjectMeta
	for range 2 {
		r.synced()
	}
	r.is("the gate after kustomize-controller", r.get(g).ObjectMeta, before)
}

func TestFluxStripsRequestAndStampOnce(t *testing.T) {
	r := newGit(t, editor, viewer)
	r.commit(nil)
	r.synced()
	g := r.ReadGate("production")
	r.decided(g, metav1.ConditionFalse)
	alice := r.as("alice", opener)

	r.allowed(alice, "annotate", "gate", "production", openAt+"="+now(), openWhy+"=hotfix 1234")
	r.stamped(g, openBy, "alice")
	r.decided(g, metav1.ConditionTrue)
	r.synced()
	for _, key := range []string{openAt, openWhy, openBy} {
		r.stamped(g, key, "")
	}
	r.decided(g, metav1.ConditionTrue)
	r.requested(g, "alice", "hotfix 1234", v1alpha1.SourceAnnotation)
	r.synced() // strips the annotations of the handled request
	r.settled(g)

	// The record of accepted webhooks stays, even if Git has the annotation.
	for _, annotations := range []map[string]string{{"a": "b"}, {deliveries: "forged"}, nil} {
		r.received(g, deliveries+"="+strings.Repeat("one ", len(annotations)+1))
		taken := r.get(g).Annotations[deliveries]
		r.commit(annotations)
		r.synced()
		r.is("deliveries", r.get(g).Annotations[deliveries], taken)
		r.decided(g, metav1.ConditionTrue)
		r.synced()
		r.settled(g)
	}

	// A client other than kubectl keeps its annotations, and the stamp with them.
	request := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+openAt+`":"`+now()+`"}}}`))
	r.Must(alice.Client.Patch(r.Context(), r.get(g), request, client.FieldOwner("dashboard")))
	r.stamped(g, openBy, "alice")
	r.decided(g, metav1.ConditionTrue)
	r.settled(g)
	r.stamped(g, openBy, "alice")
}

func TestRequestInGitNeedsVerbOfApplier(t *testing.T) {
	r := newGit(t, editor, viewer)
	r.commit(nil)
	r.synced()
	g := r.ReadGate("production")
	r.decided(g, metav1.ConditionFalse)

	r.commit(map[string]string{openAt: now(), openBy: "alice"})
	r.failed("user " + r.tenant + " may not open gate " + r.Namespace + "/production")
	r.decided(g, metav1.ConditionFalse)

	r.as(r.tenant, opener)
	r.mayBy(r.tenant, "open", "gates", v1alpha1.GroupVersion.Group)
	r.synced()
	r.stamped(g, openBy, r.tenant)
	r.decided(g, metav1.ConditionTrue)
	r.settled(g)
	r.stamped(g, openBy, r.tenant)
}

func TestExceptionInGitIsApprovedInCluster(t *testing.T) {
	r := newGit(t, exceptionEditor, viewer)
	g := r.guarded(1)
	alice := r.as("alice", exceptionApprover)
	commit := func(spec string, annotations map[string]string) {
		r.Helper()
		r.commitManifest(exceptionFile("hotfix", spec, annotations))
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
	r.is("the approval", r.exception("hotfix").Annotations[approveAt], "")
	r.stampedException("hotfix", r.tenant, "1 alice")
	r.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
	before := r.exception("hotfix").ResourceVersion
	r.synced()
	r.synced()
	r.is("the version of the exception", r.exception("hotfix").ResourceVersion, before)

	commit(spec, map[string]string{approveAt: r.approvalOf("hotfix"), authors: "bob", approveBy: "1 bob"})
	r.failed("user " + r.tenant + " may not approve gate exception")
	r.as(r.tenant, exceptionApprover)
	r.mayBy(r.tenant, "approve", "gateexceptions", v1alpha1.GroupVersion.Group)
	r.failed("user " + r.tenant + " wrote gate exception " + r.Namespace + "/hotfix: another user must approve it")
	commit(opens(2), nil)
	r.synced()
	r.stampedException("hotfix", r.tenant, "1 alice") // outdated, because its generation is another one
	r.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	r.Must(client.IgnoreNotFound(cluster.Client.Delete(r.Context(), r.exception("hotfix"))))
}
