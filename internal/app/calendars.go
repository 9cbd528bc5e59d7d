package app

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/receiver"
	"github.com/fluxcd/gating-controller/internal/calendarfeed"
	"github.com/fluxcd/gating-controller/internal/configmap"
)

// addCalendars adds the server for calendars if it has an address.
func addCalendars(mgr ctrl.Manager, gates cache.Cache, common runtimectrl.Metrics, opts enqueue.Options, o Options) error {
	if o.CalendarAddr == "" {
		return nil
	}
	configMaps, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("unable to create the client of calendars: %w", err)
	}
	source := &calendarfeed.Source{Cache: gates, Watch: func(key types.NamespacedName) calendarfeed.ConfigMapWatch {
		return configmap.NewWatch(configMaps, key, nil, func() {})
	}}
	table := calendarfeed.NewTable(mgr.GetAPIReader(), source)
	if err := (&receiver.CalendarReconciler{Client: mgr.GetClient(), Metrics: common, Table: table}).SetupWithManager(mgr, opts); err != nil {
		return fmt.Errorf("unable to create the controller of calendars: %w", err)
	}
	handler := calendarfeed.NewHandler(table, clock.RealClock{}, ctrl.Log.WithName("calendars"), calendarfeed.MustMakeMetrics(ctrlmetrics.Registry))
	server := calendarfeed.NewServer(o.CalendarAddr, handler, mgr.GetCache())
	server.Ready = func(ctx context.Context) error {
		// Until a replica is the leader, nothing else starts this informer.
		if _, err := gates.GetInformer(ctx, &v1alpha1.Gate{}); err != nil {
			return err
		}
		_, err := gates.GetInformer(ctx, &v1alpha1.GateException{})
		return err
	}
	return addServer(mgr, "calendars", server)
}

// allGates returns a cache that contains the Gates of all shards, because calendars and the web UI are not sharded.
func allGates(mgr ctrl.Manager, o Options) (cache.Cache, error) {
	if o.Watch.LabelSelector == "" {
		return mgr.GetCache(), nil
	}
	all, err := cache.New(mgr.GetConfig(), cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultNamespaces: namespaces(o.Watch)})
	if err != nil {
		return nil, fmt.Errorf("unable to create the cache of all gates: %w", err)
	}
	return all, mgr.Add(onEveryReplica{all})
}

// onEveryReplica is a cache that does not need leader election.
type onEveryReplica struct{ cache.Cache }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (onEveryReplica) NeedLeaderElection() bool { return false }
