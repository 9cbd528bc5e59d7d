package app

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/internal/configmap"
	"github.com/fluxcd/gating-controller/internal/webauth"
)

// addPages adds the server for the web UI if it has an address.
func addPages(mgr ctrl.Manager, gates cache.Cache, o Options) error {
	if o.UIAddr == "" {
		return nil
	}
	// The web UI has its own client, so that its requests and holds do not delay each other.
	direct, err := client.New(rest.CopyConfig(mgr.GetConfig()), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("unable to create the client of the web UI: %w", err)
	}
	configMaps, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("unable to create the client of calendars: %w", err)
	}
	log, metrics := ctrl.Log.WithName("ui"), webauth.MustMakeMetrics(ctrlmetrics.Registry)
	source := &webauth.Source{Cache: gates, Watch: func(key types.NamespacedName, changed func()) webauth.ConfigMapWatch {
		return configmap.NewWatch(configMaps, key, nil, changed)
	}}
	options := webauth.Options{
		Source: source, Reviews: webauth.NewReviews(direct, clock.RealClock{}, log, metrics), Live: direct, Mapper: mgr.GetRESTMapper(), Clock: clock.RealClock{},
		Own: os.Getenv(runtimectrl.EnvRuntimeNamespace), Calendars: o.CalendarAddr != "", Anonymous: o.UIAnonymous,
	}
	if o.Watch.AllNamespaces {
		options.Namespaces = mgr.GetCache()
	}
	pages := webauth.New(options)
	server := webauth.NewServer(o.UIAddr, pages.Handler(log, metrics), func(ctx context.Context) error {
		context.AfterFunc(ctx, source.Stop)
		return source.Ready(ctx)
	})
	return addServer(mgr, "ui", server)
}
