package app

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	kuberecorder "k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/receiver"
	"github.com/fluxcd/gating-controller/internal/endpoint"
	"github.com/fluxcd/gating-controller/receivers"
)

// addReceivers adds the servers for webhooks and for Flagger, unless they have no address.
func addReceivers(mgr ctrl.Manager, recorder kuberecorder.EventRecorder, common runtimectrl.Metrics, opts enqueue.Options, o Options) error {
	if o.ReceiverAddr == "" && o.FlaggerAddr == "" {
		return nil
	}
	// Receivers have their own client, so that webhooks and holds do not delay each other.
	direct, err := client.New(rest.CopyConfig(mgr.GetConfig()), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("unable to create the client of receivers: %w", err)
	}
	table := receivers.NewTable(direct)
	if err := (&receiver.Webhooks{
		Client: mgr.GetClient(), Metrics: common, Table: table,
	}).SetupWithManager(mgr, opts); err != nil {
		return fmt.Errorf("unable to create the controller of receivers: %w", err)
	}
	gates, counted := receivers.NewGates(direct), receivers.MustMakeMetrics(ctrlmetrics.Registry)
	gates.Events = recorder
	if o.ReceiverAddr != "" {
		handler := receivers.NewHandler(table, gates, clock.RealClock{}, ctrl.Log.WithName("receivers"), counted)
		if err := addServer(mgr, "webhooks", receivers.NewServer(o.ReceiverAddr, handler, table, mgr.GetCache())); err != nil {
			return err
		}
	}
	if o.FlaggerAddr == "" {
		return nil
	}
	flagger := &receivers.Flagger{
		Handler: receivers.NewHandler(table, gates, clock.RealClock{}, ctrl.Log.WithName("flagger"), counted),
		Gates:   mgr.GetCache(), AllowCrossNamespaceRefs: o.AllowCrossNamespaceRefs,
	}
	server := receivers.NewServer(o.FlaggerAddr, flagger, table, mgr.GetCache())
	server.Ready = func(ctx context.Context) error {
		// Until a replica is the leader, nothing else starts this informer.
		_, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.Gate{})
		return err
	}
	return addServer(mgr, "flagger", server)
}

// addServer adds a server that must be listening before a replica is ready.
func addServer(mgr ctrl.Manager, name string, server *endpoint.Server) error {
	if err := mgr.AddReadyzCheck(name, server.Listens); err != nil {
		return err
	}
	return mgr.Add(server)
}
