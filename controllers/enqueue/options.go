package enqueue

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options contains the options of the controllers.
type Options struct {
	// RateLimiter returns the limiter of retries.
	RateLimiter func() workqueue.TypedRateLimiter[reconcile.Request]
	// ClockWatch reports that the clock was set. If it is nil, clock changes are ignored.
	ClockWatch *ClockWatch
}

// Controller returns the options of a controller.
func (o Options) Controller() controller.Options {
	return controller.Options{RateLimiter: o.RateLimiter()}
}
