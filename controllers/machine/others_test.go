package machine

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func request(w *world) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.Namespace}}
}

func TestRequestByAnotherManagerIsUnchanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs, ours := w.machine("a", 2*day), w.machine("b", 3*day)
	w.annotateAs("kubectl-annotate", theirs, map[string]any{requestAnnotation: "90d"})
	w.gate("nights", opened)
	obj := w.refreshes("nodes")
	keep := func(when string) {
		t.Helper()
		w.reconcile()
		if request, recorded := w.requested(theirs); request != "90d" || recorded {
			t.Errorf("%s: got %q, recorded %t", when, request, recorded)
		}
		w.expectRequested(machines{ours})
	}
	keep("at first")
	w.annotateAs("manager", theirs, map[string]any{statusAnnotation: "failed"})
	w.in(2 * time.Hour)
	keep("after it failed")
	w.expectStatus(obj, "due 2", stopped)
	w.gate("nights", closed)
	keep("once the gate is closed")
	w.gate("nights", opened)
	w.provider(theirs, works)
	w.provider(theirs, works)
	w.reconcile()
	w.expectRequested(machines{theirs, ours}, "b")

	// A user who changes the request takes it over.
	w.annotateAs("kubectl-annotate", ours, map[string]any{requestAnnotation: "5y"})
	w.reconcile()
	if request, recorded := w.requested(ours); request != "5y" || recorded {
		t.Errorf("got %q, recorded %t", request, recorded)
	}
	w.Must(cluster.Client.Delete(w.Context(), obj))
	w.reconcile()
	if request, _ := w.requested(ours); request != "5y" {
		t.Errorf("got %q", request)
	}

	// A request whose record was removed is withdrawn.
	last := w.machine("c", day)
	obj = w.refreshes("again")
	w.annotateAs("kubectl-annotate", ours, map[string]any{requestAnnotation: nil, expiryAnnotation: start.Add(90 * day).Format(time.RFC3339)})
	w.reconcile()
	w.expectRequested(machines{last}, "c")
	w.Must(cluster.Client.Delete(w.Context(), obj))
	w.annotateAs("kubectl-edit", last, map[string]any{v1alpha1.RefreshAnnotation: nil})
	w.reconcile()
	w.expectQuiet(last)
}

// Each of two MachineCertificateRefreshes ends only its own refreshes, and begins none in a cluster while the other one refreshes a Machine
// there.
func TestTwoRefreshesOfOneCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	both := machines{w.machine("a", 2*day), w.machine("b", 3*day)}
	w.gate("nights", opened)
	w.gate("closed", closed)
	one := w.refreshes("one")
	two := w.refreshes("two", func(s *v1alpha1.MachineCertificateRefreshSpec) { s.GateRefs[0].Name = "closed" })
	w.reconcile()
	w.expectRequested(both, "a")
	w.expectStatus(one, "due 2, refreshing a", ready)
	w.expectStatus(two, "due 2", ready)
	w.gate("nights", closed)
	w.gate("closed", opened)
	w.reconcile()
	w.expectRequested(both, "a")
	w.expectStatus(one, "due 2", ready)
	w.expectStatus(two, "due 2, refreshing a", ready)
	w.gate("nights", opened)
	w.reconcile()
	w.expectRequested(both, "a")

	// A process of another shard leaves them alone.
	w.gate("nights", closed)
	w.gate("closed", closed)
	w.Shard = labels.SelectorFromSet(labels.Set{"shard": "1"})
	w.reconcile()
	w.expectRequested(both, "a")
	w.Shard = nil
	w.reconcile()
	w.expectRequested(both)
}

// Nothing begins, and nothing is withdrawn, unless everything was read.
func TestNoMachineIsWrittenUnlessAllReadsSucceed(t *testing.T) {
	for kind, funcs := range map[string]interceptor.Funcs{
		"Machine": {List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*metav1.PartialObjectMetadataList); ok {
				return errBroken
			}
			return c.List(ctx, list, opts...)
		}},
		"Gate": {Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*v1alpha1.Gate); ok {
				return errBroken
			}
			return c.Get(ctx, key, obj, opts...)
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.machine("a", day)
			w.gate("nights", opened)
			obj := w.refreshes("nodes")
			w.APIReader = interceptor.NewClient(cluster.Client, funcs)
			for range 2 {
				if _, err := w.try(); err == nil {
					t.Error("no error")
				}
			}
			w.expectRequested(machines{m})
			w.Read(obj)
			if reason := conditions.GetReason(obj, meta.ReadyCondition); reason != v1alpha1.ReadFailedReason {
				t.Errorf("reason %s", reason)
			}
			broken := w.APIReader
			w.APIReader = cluster.Client
			w.reconcile()
			w.expectRequested(machines{m}, "a")
			w.APIReader = broken
			_, _ = w.try()
			w.expectRequested(machines{m}, "a")
		})
	}
}

// A request to a Machine cannot be undone once the provider has begun, so changes after the Machines were read still count.
func TestChangeAfterReadOfMachinesCounts(t *testing.T) {
	for name, change := range map[string]func(*world, *v1alpha1.MachineCertificateRefresh){
		"the gate closes": func(w *world, _ *v1alpha1.MachineCertificateRefresh) { w.gate("nights", closed) },
		"the selector changes": func(w *world, obj *v1alpha1.MachineCertificateRefresh) {
			w.Edit(obj, func() { obj.Spec.Selector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"a": "b"}} })
		},
		"it is deleted": func(w *world, obj *v1alpha1.MachineCertificateRefresh) {
			w.Must(cluster.Client.Delete(w.Context(), obj))
		},
		"the machine loses its label": func(w *world, _ *v1alpha1.MachineCertificateRefresh) {
			w.Must(cluster.Client.Patch(w.Context(), w.bare("a"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"fleet":null}}}`))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.machine("a", 2*day, "fleet")
			w.gate("nights", opened)
			obj := w.refreshes("nodes", func(s *v1alpha1.MachineCertificateRefreshSpec) {
				s.Selector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"fleet": ""}}
			})
			changed := false
			w.APIReader = interceptor.NewClient(cluster.Client, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					err := c.List(ctx, list, opts...)
					if _, ok := list.(*metav1.PartialObjectMetadataList); ok && !changed {
						changed = true
						change(w, obj)
					}
					return err
				},
			})
			w.reconcile()
			if writes := w.take(" Machine/a"); len(writes) > 0 && name != "the machine loses its label" || !changed { // that write conflicts
				t.Errorf("changed %t, writes %q", changed, writes)
			}
			w.expectQuiet(m)
		})
	}
}
