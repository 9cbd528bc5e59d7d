package enqueue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// clockPeriod is how often the clocks are compared. This sends no request.
	clockPeriod = time.Second

	// clockBound is how far the clocks may drift apart before everything is enqueued. They are read within microseconds of each other,
	// and slewing affects both.
	clockBound = 20 * time.Millisecond
)

// ClockReading contains the times of two clocks at the same moment. Users can set the wall clock. Timers use the monotonic clock, which
// stops while the machine is suspended.
type ClockReading struct {
	Wall      time.Time
	Monotonic time.Duration
}

// ClockReadings returns a function that reads the clocks of the machine.
func ClockReadings() func() ClockReading {
	began := clock.RealClock{}.Now()
	return func() ClockReading {
		now := clock.RealClock{}.Now()
		return ClockReading{Wall: now.Round(0), Monotonic: now.Sub(began)} // Round drops the monotonic reading
	}
}

// ClockWatch calls functions after the wall clock was set or the machine was suspended, because running timers are wrong then.
type ClockWatch struct {
	// Read reads the clocks.
	Read func() ClockReading
	// Clock creates the ticker for the readings.
	Clock clock.WithTicker

	mu    sync.Mutex
	steps []func(context.Context)
}

// Start implements manager.Runnable.
func (c *ClockWatch) Start(ctx context.Context) error {
	ticker := c.Clock.NewTicker(clockPeriod)
	defer ticker.Stop()
	last := c.Read()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		now := c.Read()
		by := stepped(last, now)
		if by.Abs() <= clockBound {
			continue // keep last, so that small steps add up
		}
		last = now
		ctrl.LoggerFrom(ctx).Info("the clock was set or the machine was suspended, reconciling everything", "by", by.String())
		c.mu.Lock()
		steps := c.steps
		c.mu.Unlock()
		for _, step := range steps {
			step(ctx)
		}
	}
}

// stepped returns how far the wall clock has moved relative to the monotonic clock between two readings.
func stepped(before, now ClockReading) time.Duration {
	return now.Wall.Sub(before.Wall) - (now.Monotonic - before.Monotonic)
}

// Add registers a function to call after the clock was set. A nil ClockWatch never calls it.
func (c *ClockWatch) Add(step func(context.Context)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, step)
}

// Source returns a source that enqueues the requests returned by list whenever the clock was set. A nil ClockWatch enqueues none.
func (c *ClockWatch) Source(list func(context.Context) ([]reconcile.Request, error)) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		c.Add(func(ctx context.Context) {
			requests, err := list(ctx)
			if err != nil {
				// Reading the cache fails only while the process shuts down.
				ctrl.LoggerFrom(ctx).Error(err, "unable to list the objects that depend on the time")
			}
			for _, request := range requests {
				queue.Add(request)
			}
		})
		return nil
	})
}

// RequestsForAll returns requests for all cached objects of a kind. They include expired exceptions, which are valid again if the clock
// was set back.
func RequestsForAll(reader client.Reader, kind client.ObjectList) func(context.Context) ([]reconcile.Request, error) {
	return func(ctx context.Context) (requests []reconcile.Request, err error) {
		list, ok := kind.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is not a list", kind)
		}
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		return requests, meta.EachListItem(list, func(obj runtime.Object) error {
			if obj, ok := obj.(client.Object); ok {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
			}
			return nil
		})
	}
}
