package certificates

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// Two hundred Certificates wait for the same opening. Their renewals begin at the pace of the Gate, ten a second.
func TestRenewalsOfManyCertificatesAreSpread(t *testing.T) {
	const (
		count, perSecond = 200, 10
		due              = 30 * time.Second
	)
	w := newWorld(t)
	g := w.gate(v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Release: &v1alpha1.ReleasePolicy{PerMinute: 60 * perSecond},
	}, nil)
	w.EditGate(g, func(g *v1alpha1.Gate) { g.Spec.Targets[0].Name = v1alpha1.AnyName })
	var group errgroup.Group
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error {
			key := client.ObjectKey{Namespace: w.Namespace, Name: fmt.Sprintf("app-%d", i)}
			return cluster.Client.Create(w.Context(), harness.NewCertificate(key, time.Hour, due))
		})
	}
	w.Must(group.Wait())
	w.Must(harness.Eventually(w.Context(), 4*timeout, "all certificates are held", func() error {
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g))
		if targets := g.Status.Targets; targets == nil || targets.Held != count+1 { // including the root
			return fmt.Errorf("%+v", targets)
		}
		return nil
	}))
	// From now on, only the Gate delays their renewals.
	before, held := w.revisions(), time.Now()
	w.Throughout(time.Until(held.Add(due)), "no certificate is renewed", func() error {
		if now := w.revisions(); !maps.Equal(now, before) {
			return fmt.Errorf("the revisions were %v and are %v", before, now)
		}
		return nil
	})
	seen := w.watchRenewals()
	w.open(g)
	var begun, most int
	var took time.Duration
	w.Must(harness.Eventually(w.Context(), 2*timeout, "all renewals have begun", func() error {
		if begun, most, took = seen(); begun < count {
			return fmt.Errorf("%d have begun", begun)
		}
		return nil
	}))
	if most > 4*perSecond {
		t.Errorf("up to %d renewals began in a second", most)
	}
	if least := time.Duration(count/perSecond-5) * time.Second; took < least {
		t.Errorf("the renewals began within %s, want at least %s", took, least)
	}
	t.Logf("%d renewals began in %s, up to %d in a second", begun, took.Round(time.Second), most)
	w.Must(harness.Eventually(w.Context(), timeout, "the status reports that all are released", func() error {
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g))
		if r := g.Status.Release; r == nil || r.Released != r.Total || r.NextAt != nil {
			return fmt.Errorf("the status has %+v", r)
		}
		return nil
	}))
	// They are due again every half minute, which would delay cert-manager in other tests.
	all := harness.Object("cert-manager.io/v1", "Certificate", client.ObjectKey{})
	w.Must(harness.Eventually(w.Context(), 2*timeout, "all certificates are deleted, which may take longer than a request", func() error {
		err := cluster.Client.DeleteAllOf(w.Context(), all, client.InNamespace(w.Namespace))
		if left := len(w.list()); left > 0 {
			return fmt.Errorf("%d are left: %w", left, err)
		}
		return nil
	}))
}

func (w *world) list() []unstructured.Unstructured {
	w.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("cert-manager.io/v1")
	list.SetKind("CertificateList")
	w.Must(cluster.Client.List(w.Context(), list, client.InNamespace(w.Namespace)))
	return list.Items
}

func (w *world) revisions() map[string]int64 {
	w.Helper()
	revisions := map[string]int64{}
	for _, obj := range w.list() {
		revisions[obj.GetName()], _, _ = unstructured.NestedInt64(obj.Object, "status", "revision")
	}
	return revisions
}

// watchRenewals watches the Certificates of the namespace. The returned function returns how many renewals have begun since, the largest
// number in one second, and the time from the first to the last.
func (w *world) watchRenewals() func() (begun, most int, took time.Duration) {
	w.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("cert-manager.io/v1")
	list.SetKind("CertificateList")
	watch, err := cluster.Client.Watch(w.Context(), list, client.InNamespace(w.Namespace))
	w.Must(err)
	w.Cleanup(watch.Stop)
	began := map[string]time.Time{}
	var mu sync.Mutex
	go func() {
		for event := range watch.ResultChan() {
			obj, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			mu.Lock()
			if status, _ := harness.Condition(obj, "Issuing"); status == metav1.ConditionTrue && began[obj.GetName()].IsZero() {
				began[obj.GetName()] = time.Now()
			}
			mu.Unlock()
		}
	}()
	return func() (begun, most int, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		times := slices.SortedFunc(maps.Values(began), time.Time.Compare)
		first := 0
		for last, t := range times {
			for t.Sub(times[first]) >= time.Second {
				first++
			}
			most = max(most, last-first+1)
		}
		if len(times) > 0 {
			took = times[len(times)-1].Sub(times[0])
		}
		return len(times), most, took
	}
}
