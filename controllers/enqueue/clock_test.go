package enqueue

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// clocks has a wall clock and a monotonic clock that only the test moves, and a queue that receives the requests.
type clocks struct {
	*testing.T
	now    ClockReading
	ticker *clocktesting.FakeClock
	read   chan struct{}
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newClocks(t *testing.T, list func(context.Context) ([]reconcile.Request, error)) *clocks {
	t.Helper()
	c := &clocks{
		T: t, now: ClockReading{Wall: start}, ticker: clocktesting.NewFakeClock(start), read: make(chan struct{}),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
	}
	watch := &ClockWatch{Clock: c.ticker, Read: func() ClockReading {
		<-c.read
		return c.now
	}}
	if err := watch.Source(list).Start(t.Context(), c.queue); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- watch.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		c.queue.ShutDown()
	})
	c.read <- struct{}{} // the first reading
	return c
}

// tick moves both clocks and waits for two readings. After the second one, the first has been handled completely.
func (c *clocks) tick(wall, monotonic time.Duration) {
	c.Helper()
	c.now = ClockReading{Wall: c.now.Wall.Add(wall), Monotonic: c.now.Monotonic + monotonic}
	for range 2 {
		c.ticker.Step(clockPeriod)
		select {
		case c.read <- struct{}{}:
		case <-time.After(10 * time.Second):
			c.Fatal("the clocks are not read")
		}
	}
}

// taken returns the number of requests since the last call.
func (c *clocks) taken() int {
	n := c.queue.Len()
	for range n {
		item, _ := c.queue.Get()
		c.queue.Done(item)
	}
	return n
}

func TestSetClockEnqueuesEverything(t *testing.T) {
	scheme, err := harness.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "production"}},
		&v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "production"}},
		&v1alpha1.GateException{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "holiday"}},
	).Build()
	for name, of := range map[string]struct {
		list func(context.Context) ([]reconcile.Request, error)
		n    int
	}{"gates": {RequestsForAll(reader, &v1alpha1.GateList{}), 2}, "exceptions": {RequestsForAll(reader, &v1alpha1.GateExceptionList{}), 1}} {
		t.Run(name, func(t *testing.T) {
			c := newClocks(t, of.list)
			for _, step := range []struct {
				what            string
				wall, monotonic time.Duration
				want            int
			}{
				{"time goes by", time.Second, time.Second, 0},
				{"the process had no processor for a minute", time.Minute, time.Minute, 0},
				{"the machine was suspended", 8 * time.Hour, time.Second, of.n},
				{"time goes by after that", time.Second, time.Second, 0},
				{"the clock is set back", -time.Hour, time.Second, of.n},
				{"the clock is set forwards", 2 * time.Second, time.Second, of.n},
				{"the clock is slewed", time.Second + time.Millisecond, time.Second + time.Millisecond, 0},
				{"the clock is set a little", time.Second + 15*time.Millisecond, time.Second, 0},
				{"and once more", time.Second + 15*time.Millisecond, time.Second, of.n},
				{"time goes by at last", time.Second, time.Second, 0},
			} {
				c.tick(step.wall, step.monotonic)
				if got := c.taken(); got != step.want {
					t.Errorf("%s: %d are looked at, want %d", step.what, got, step.want)
				}
			}
		})
	}
}

func TestWallAndMonotonicClockAgree(t *testing.T) {
	read := ClockReadings()
	before := read()
	time.Sleep(2 * time.Millisecond)
	now := read()
	if now.Monotonic <= before.Monotonic || !now.Wall.After(before.Wall) || now.Wall != now.Wall.Round(0) {
		t.Errorf("from %+v to %+v", before, now)
	}
}
