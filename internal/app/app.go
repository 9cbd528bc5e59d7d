// Package app wires the controller. It turns options into a running manager.
package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	runtimeclient "github.com/fluxcd/pkg/runtime/client"
	runtimectrl "github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/fluxcd/pkg/runtime/metrics"
	"github.com/fluxcd/pkg/runtime/pprof"
	"github.com/fluxcd/pkg/runtime/probes"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/controllers/calendars"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/exception"
	gatecontroller "github.com/fluxcd/gating-controller/controllers/gate"
	"github.com/fluxcd/gating-controller/controllers/machine"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/version"
)

// shutdownTimeout bounds the shutdown. It leaves time to respond to accepted webhooks, and is shorter than the grace period in
// config/manager.
const shutdownTimeout = 11 * time.Second

// Run starts the controller and blocks until the context is done.
func Run(ctx context.Context, o Options) error {
	logger.SetLogger(logger.NewLogger(o.Log))
	lowerMemoryLimit()
	log := ctrl.Log.WithName("setup")

	if err := tz.Use(o.ZoneInfo); err != nil { // before the first zone is loaded
		return fmt.Errorf("--zoneinfo: %w", err)
	}
	if o.UIAnonymous && o.UIAddr == "" {
		return errors.New("--ui-anonymous needs --ui-addr: without it, there is no web UI")
	}
	if err := watchable(o.Watch); err != nil {
		return err
	}
	kinds, err := target.ParseKinds(o.SuspendKinds)
	if err != nil {
		return fmt.Errorf("--suspend-kinds: %w", err)
	}
	target.SetKinds(kinds...) // before the kinds are used
	if err := o.IntervalJitter.SetGlobalJitter(nil); err != nil {
		return fmt.Errorf("unable to set global jitter: %w", err)
	}
	shard, err := runtimectrl.GetWatchSelector(o.Watch)
	if err != nil {
		return fmt.Errorf("unable to configure the watch label selector: %w", err)
	}
	serverClock := &gatecontroller.ServerClock{Clock: clock.RealClock{}}
	mgr, err := newManager(o, shard, serverClock)
	if err != nil {
		return err
	}
	probes.SetupChecks(mgr, log)
	if err := addControllers(ctx, mgr, o, shard, serverClock); err != nil {
		return err
	}
	server, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	if err := mgr.Add(kubernetesCheck{log: log, server: server}); err != nil {
		return err
	}
	if err := ctrlmetrics.Registry.Register(buildInfo()); err != nil {
		return fmt.Errorf("unable to register the build info: %w", err)
	}
	log.Info("starting manager", "version", version.Release(), "timeZoneData", tz.Version())
	return mgr.Start(ctx)
}

// lowerMemoryLimit lowers the memory limit of the Go runtime by a tenth if GOMEMLIMIT sets one. config/manager sets it to the memory limit
// of the Pod, but the Go runtime does not manage all of that memory.
func lowerMemoryLimit() {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
}

func addControllers(ctx context.Context, mgr ctrl.Manager, o Options, shard labels.Selector, serverClock *gatecontroller.ServerClock) error {
	recorder, err := newEventRecorder(ctx, mgr, o.EventsAddr)
	if err != nil {
		return err
	}
	common := runtimectrl.NewMetrics(mgr, metrics.MustMakeRecorder(), v1alpha1.GateFinalizer)
	steps := &enqueue.ClockWatch{Read: enqueue.ClockReadings(), Clock: clock.RealClock{}}
	if err := mgr.Add(steps); err != nil {
		return err
	}
	opts := enqueue.Options{
		ClockWatch:  steps,
		RateLimiter: func() workqueue.TypedRateLimiter[reconcile.Request] { return runtimectrl.GetRateLimiter(o.RateLimiter) },
	}
	askTime, err := serverTime(mgr)
	if err != nil {
		return err
	}
	calendars := &calendars.Reader{}
	if err := (&controllers.Gating{
		Calendars:     calendars,
		Client:        mgr.GetClient(),
		EventRecorder: recorder,
		Metrics:       common,
		APIReader:     mgr.GetAPIReader(),
		Clock:         clock.RealClock{},
		ServerTime:    askTime,
		ServerClock:   serverClock,
		Stamped:       gatecontroller.StampedBy(mgr.GetAPIReader(), gatecontroller.ApprovalPolicy),
		Reach:         view.Reach{AllowCrossNamespaceRefs: o.AllowCrossNamespaceRefs, Own: os.Getenv(runtimectrl.EnvRuntimeNamespace), Namespaces: namespaces(o.Watch)},
		Sharded:       o.Watch.LabelSelector != "",
		Shard:         shard,
		StampsSources: gatecontroller.StampedBy(mgr.GetAPIReader(), gatecontroller.GatedSourceStamp),
		WritesAtOnce:  writesPerReconcile * o.Concurrent,
		GateMetrics:   events.MustMakeMetrics(ctrlmetrics.Registry),
	}).SetupWithManager(ctx, mgr, opts); err != nil {
		return fmt.Errorf("unable to create the controllers of gates and targets: %w", err)
	}
	if err := (&exception.Reconciler{
		Calendars:     calendars,
		Client:        mgr.GetClient(),
		EventRecorder: recorder,
		Metrics:       common,
		APIReader:     mgr.GetAPIReader(),
		Clock:         clock.RealClock{},
		ServerTime:    askTime,
		Stamped:       gatecontroller.StampedBy(mgr.GetAPIReader(), gatecontroller.ExceptionStamp),
	}).SetupWithManager(mgr, opts); err != nil {
		return fmt.Errorf("unable to create the controller of exceptions: %w", err)
	}
	machines := &machine.Reconciler{Client: mgr.GetClient(), EventRecorder: recorder, Metrics: common, APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Shard: shard}
	if err := errors.Join(machines.SetupWithManager(mgr, namespaces(o.Watch), opts.RateLimiter()), addReceivers(mgr, recorder, common, opts, o)); err != nil {
		return err
	}
	if o.CalendarAddr == "" && o.UIAddr == "" {
		return nil
	}
	gates, err := allGates(mgr, o)
	if err != nil {
		return err
	}
	if err := addCalendars(mgr, gates, common, opts, o); err != nil {
		return err
	}
	return addPages(mgr, gates, o)
}

// Scheme returns a scheme with all types that the controller reads or writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, errors.Join(apiextensionsv1.AddToScheme(scheme), lockv1alpha1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

func newManager(o Options, shard labels.Selector, serverClock *gatecontroller.ServerClock) (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	metrics := metricsserver.Options{BindAddress: o.MetricsAddr}
	if o.Pprof {
		metrics.ExtraHandlers = pprof.GetHandlers()
	}
	server := runtimeclient.GetConfigOrDie(o.Client)
	server.Wrap(serverClock.Wrap)
	mgr, err := ctrl.NewManager(server, ctrl.Options{
		Scheme:                        scheme,
		HealthProbeBindAddress:        o.HealthAddr,
		LeaderElection:                o.LeaderElection.Enable,
		LeaderElectionReleaseOnCancel: o.LeaderElection.ReleaseOnCancel,
		LeaseDuration:                 &o.LeaderElection.LeaseDuration,
		RenewDeadline:                 &o.LeaderElection.RenewDeadline,
		RetryPeriod:                   &o.LeaderElection.RetryPeriod,
		LeaderElectionID:              leaderElectionID(o.Watch),
		LeaderElectionNamespace:       os.Getenv(runtimectrl.EnvRuntimeNamespace),
		LeaderElectionLabels:          map[string]string{v1alpha1.TimeZoneDataLabel: tz.Version()}, // for kubectl gate
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		Logger:                        ctrl.Log,
		Cache:                         cacheOptions(o.Watch, shard),
		Metrics:                       metrics,
		Controller: config.Controller{
			MaxConcurrentReconciles: o.Concurrent, RecoverPanic: ptr.To(true),
			UsePriorityQueue: ptr.To(false), // it can deadlock if items are added during shutdown
		},
	})
	if err != nil {
		return nil, fmt.Errorf("unable to create manager: %w", err)
	}
	return mgr, nil
}

// cacheOptions returns options for a cache that contains only the Gates of this shard. Exceptions and targets are not sharded, because
// they may lack the labels of their Gates.
func cacheOptions(watch runtimectrl.WatchOptions, selector labels.Selector) cache.Options {
	return cache.Options{
		DefaultNamespaces: namespaces(watch),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Gate{}:    {Label: selector},
			&corev1.Namespace{}: {Transform: view.TrimNamespaces},
		},
	}
}

// watchable returns an error if the namespace to watch is unknown, because the cache treats an empty name as all namespaces.
func watchable(watch runtimectrl.WatchOptions) error {
	if !watch.AllNamespaces && os.Getenv(runtimectrl.EnvRuntimeNamespace) == "" {
		return fmt.Errorf("--watch-all-namespaces=false watches the namespace in the environment variable %s, which is empty", runtimectrl.EnvRuntimeNamespace)
	}
	return nil
}

// namespaces returns the namespaces to watch, nil for all.
func namespaces(watch runtimectrl.WatchOptions) map[string]cache.Config {
	if watch.AllNamespaces {
		return nil
	}
	return map[string]cache.Config{os.Getenv(runtimectrl.EnvRuntimeNamespace): {}}
}

func leaderElectionID(watch runtimectrl.WatchOptions) string {
	id := v1alpha1.FieldManager + "-leader-election"
	if watch.LabelSelector != "" {
		id = leaderelection.GenerateID(id, watch.LabelSelector)
	}
	return id
}
