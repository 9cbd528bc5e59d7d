package controllers

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/internal/target"
)

// settledTarget is a Kustomization that a Gate holds, and of which nothing is left to
// write.
func settledTarget(name, gate string) *target.Object {
	obj := inGit("apps", name, nil)
	obj.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: gate})
	obj.Object["spec"].(map[string]any)["suspend"] = true //nolint:forcetypeassert // see inGit
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: obj.GetAPIVersion(), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + v1alpha1.HeldByAnnotation + `":{}}},"f:spec":{"f:suspend":{}}}`),
	}})
	at := metav1.NewTime(start)
	obj.SetConditions([]metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ReconciliationSucceeded", Message: "Applied revision: main@sha1:1f0a", LastTransitionTime: at},
		{Type: "Healthy", Status: metav1.ConditionTrue, Reason: "HealthCheckSucceeded", Message: "Health check passed in 12s", LastTransitionTime: at},
		{Type: v1alpha1.ApprovedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.GateClosedReason, Message: waiting([]string{gate}), LastTransitionTime: at},
	})
	return obj
}

// BenchmarkSettled is what a target costs of which nothing is to be written, in each
// reconciliation of its Gate.
func BenchmarkSettled(b *testing.B) {
	const n = 1000
	targets := make([]*target.Object, n)
	for i := range targets {
		targets[i] = settledTarget(fmt.Sprint(i), "apps/production")
	}
	r := &GateReconciler{}
	want := order{now: start, Want: target.Want{Gate: "apps/production", Closed: true}}
	for b.Loop() {
		if result := r.settleAll(context.Background(), targets, want); result.held != n || result.err() != nil {
			b.Fatalf("%d held, %v", result.held, result.err())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/target")
}

// listed answers each List with the same metadata, at no cost.
type listed struct {
	client.Client
	items []metav1.PartialObjectMetadata
}

func (l *listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*metav1.PartialObjectMetadataList).Items = l.items //nolint:forcetypeassert // there is no other
	return nil
}

// BenchmarkLocks is what the lock costs each reconciliation of a Gate that changes
// nothing: a look at the GateLock of each namespace, whose number it grows with.
func BenchmarkLocks(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("%d_namespaces", n), func(b *testing.B) {
			cache, books := &listed{}, map[string]*book{}
			for i := range n {
				name := fmt.Sprintf("apps-%04d", i)
				at := metav1.ObjectMeta{Namespace: name, Name: v1alpha1.GateLockName, ResourceVersion: fmt.Sprint(1000 + i)}
				cache.items = append(cache.items, metav1.PartialObjectMetadata{ObjectMeta: at})
				books[name] = newBook()
				books[name].learn(&v1alpha1.GateLock{ObjectMeta: at}, map[string]lock.Share{})
			}
			l := &Locks{Client: cache, installed: true, books: books}
			for b.Loop() {
				if w := l.Put(context.Background(), "apps-0000/production", nil); w.unread != nil || len(w.pending) > 0 {
					b.Fatal(w.unread, w.pending)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/namespace")
		})
	}
}
