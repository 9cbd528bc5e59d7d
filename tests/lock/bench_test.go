package lock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// clients is the number of clients that create objects concurrently.
	clients = 8
	// creates is the number of creates per measurement.
	creates = 200
	// turns is the number of pairs of measurements, one without the policies and one with them. They are short, and the median of their
	// ratios counts, so that other load on the machine affects both.
	turns = 15
)

// BenchmarkCreate measures how many objects per second an API server creates with the lock and some closed gates in the namespace. The
// baseline is an API server without the policies, measured alternately: of-no-policy is 1 if the lock costs nothing.
func BenchmarkCreate(b *testing.B) {
	bare, err := harness.StartControlPlane(harness.CRDs...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := bare.Stop(); err != nil {
			b.Error(err)
		}
	})
	for _, gates := range []int{1, 100, 1000, 10000} {
		for _, governed := range []bool{true, false} {
			b.Run(fmt.Sprintf("gates=%d/governed=%t", gates, governed), func(b *testing.B) {
				w := newWorld(b)
				w.lock(many(w, gates))
				locked := load{w, cluster, w.Namespace, gates, governed, governed}
				free := load{w, bare, "default", gates, governed, false}
				locked.create()
				free.create()
				var with, without time.Duration
				var ratios []float64
				b.ResetTimer()
				for range b.N {
					for range turns {
						first, second := free.create(), locked.create()
						without, with = without+first, with+second
						ratios = append(ratios, first.Seconds()/second.Seconds())
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

// many returns the lock of closed gates. Half of them govern by name, and half by labels.
func many(w *world, gates int) lockv1alpha1.GateLockSpec {
	spec := lockv1alpha1.GateLockSpec{}
	for i := range gates {
		ref := v1alpha1.TargetReference{Kind: "Kustomization", Name: fmt.Sprintf("target-%d", i)}
		if i%2 == 0 {
			ref.Name, ref.MatchLabels = "*", map[string]string{"app": strconv.Itoa(i)}
		}
		lock.Put(&spec, w.gate(fmt.Sprintf("gate-%d", i)), lock.NewPart(true, ref))
	}
	return spec
}

// load describes the objects to create on an API server.
type load struct {
	*world
	on        *harness.ControlPlane
	namespace string
	// gates is the number of closed gates. If governed is set, each object is governed by one.
	gates    int
	governed bool
	// held is true if the objects must be held: a policy that is not in force would cost nothing.
	held bool
}

var serial atomic.Int64

// create returns how long the clients take to create the objects.
func (l load) create() time.Duration {
	l.Helper()
	work := make(chan int, creates)
	for i := range creates {
		work <- i
	}
	close(work)
	config := rest.CopyConfig(l.on.Config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: l.on.Client.Scheme(), Mapper: l.on.Client.RESTMapper()})
	l.Must(err)
	errs := make(chan error, clients)
	begin := time.Now()
	for range clients {
		go func() { errs <- l.work(c, work) }()
	}
	for range clients {
		l.Must(<-errs)
	}
	return time.Since(begin)
}

func (l load) work(c client.Client, work <-chan int) error {
	for i := range work {
		obj := l.inGit(fmt.Sprintf("created-%d", serial.Add(1)))
		obj.SetNamespace(l.Namespace)
		labels := map[string]string{"tier": "critical", "app": "none"}
		if l.governed {
			labels["app"] = strconv.Itoa(i % l.gates / 2 * 2)
		}
		obj.SetLabels(labels)
		if err := c.Create(context.Background(), obj); err != nil {
			return err
		}
		if harness.Suspended(obj) != l.held {
			return fmt.Errorf("%s: suspended is %t", obj.GetName(), harness.Suspended(obj))
		}
	}
	return nil
}
