package lock

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// clients that create objects at the same time.
	clients = 8
	// creates by which one measurement is taken after some to warm up: the API
	// server compiles policies anew whenever a binding changes.
	creates = 400
	warmUp  = 200
	// turns in which the one without the policy and the one with it are taken; the
	// median of their ratios counts.
	turns = 5
)

// BenchmarkCreate measures how many objects a second the API server creates with
// some closed gates in the namespace, as a part of what it creates without the
// policy in the same run: of-no-policy is 1 if the lock costs nothing.
func BenchmarkCreate(b *testing.B) {
	for _, gates := range []int{1, 100, 1000, 10000} {
		for _, governed := range []bool{true, false} {
			name := fmt.Sprintf("gates=%d/governed=%t", gates, governed)
			b.Run(name, func(b *testing.B) {
				w := newWorld(b)
				w.lock(many(w, gates))
				var with, without time.Duration
				var ratios []float64
				b.ResetTimer()
				for range b.N {
					for range turns {
						bare := measure(b, w, gates, governed, false)
						locked := measure(b, w, gates, governed, true)
						without, with = without+bare, with+locked
						ratios = append(ratios, bare.Seconds()/locked.Seconds())
					}
				}
				n := float64(len(ratios) * creates)
				slices.Sort(ratios)
				b.ReportMetric(n/with.Seconds(), "creates/s")
				b.ReportMetric(n/without.Seconds(), "creates-without/s")
				b.ReportMetric(ratios[len(ratios)/2], "of-no-policy")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// many returns the lock of closed gates, half of which govern by name and half
// by labels.
func many(w *world, gates int) v1alpha1.GateLockSpec {
	spec := v1alpha1.GateLockSpec{}
	for i := range gates {
		ref := v1alpha1.TargetReference{Kind: "Kustomization", Name: fmt.Sprintf("target-%d", i)}
		if i%2 == 0 {
			ref.Name, ref.MatchLabels = "*", map[string]string{"app": strconv.Itoa(i)}
		}
		lock.Put(&spec, w.gate(fmt.Sprintf("gate-%d", i)), lock.NewShare(true, ref))
	}
	return spec
}

var serial atomic.Int64

// measure returns how long creating objects takes, after making sure that the
// policy is in force or not.
func measure(b *testing.B, w *world, gates int, governed, policy bool) time.Duration {
	b.Helper()
	bound(b, w, policy)
	create(b, w, warmUp, gates, governed, policy)
	begin := time.Now()
	create(b, w, creates, gates, governed, policy)
	return time.Since(begin)
}

// create creates a number of objects by several clients.
func create(b *testing.B, w *world, number, gates int, governed, policy bool) {
	b.Helper()
	work := make(chan int, number)
	for i := range number {
		work <- i
	}
	close(work)
	errs := make(chan error, clients)
	for range clients {
		config := rest.CopyConfig(cluster.Config)
		config.QPS = -1
		c, err := client.New(config, client.Options{Scheme: cluster.Client.Scheme(), Mapper: cluster.Client.RESTMapper()})
		w.must(err)
		go func() {
			for i := range work {
				obj := w.inGit(fmt.Sprintf("created-%d", serial.Add(1)))
				obj.SetLabels(map[string]string{"tier": "critical", "app": "none"})
				if governed {
					obj.SetLabels(map[string]string{"tier": "critical", "app": strconv.Itoa(i % gates / 2 * 2)})
				}
				if err := c.Create(context.Background(), obj); err != nil {
					errs <- err
					return
				}
				if suspended(obj) != (governed && policy) {
					errs <- fmt.Errorf("%s: suspended is %t", obj.GetName(), suspended(obj))
					return
				}
			}
			errs <- nil
		}()
	}
	for range clients {
		w.must(<-errs)
	}
}

// bound binds the policy that holds or removes its binding, and waits until
// that is in force.
func bound(b *testing.B, w *world, policy bool) {
	b.Helper()
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "gate-hold"}}
	if policy {
		_, err := cluster.Kubectl(w.ctx, "apply", "-k", filepath.Join(harness.Root(), "config", "lock"))
		w.must(err)
	} else {
		w.must(client.IgnoreNotFound(cluster.Client.Delete(w.ctx, binding)))
	}
	w.must(harness.Eventually(w.ctx, timeout, "the binding is in force", func() error {
		probe := w.inGit("probe")
		probe.SetLabels(map[string]string{"app": "0"})
		if err := cluster.Client.Create(w.ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if suspended(probe) != policy {
			return fmt.Errorf("suspended is %t", suspended(probe))
		}
		return nil
	}))
}
