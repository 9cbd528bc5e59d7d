package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// patience is for what has to happen at some time, also on a busy machine.
const patience = 15 * time.Minute

// bench is a cluster with what the scenarios need in it.
type bench struct {
	options
	begin   time.Time
	cluster *harness.ControlPlane
	// client has all permissions and no limit of its own.
	client client.Client
	config *rest.Config

	groups   map[string][]client.ObjectKey
	observer *observer
	gating   *controller
}

func (b *bench) say(format string, args ...any) {
	fmt.Printf("[%6.1fs] "+format+"\n", append([]any{time.Since(b.begin).Seconds()}, args...)...)
}

func (b *bench) start(ctx context.Context) (err error) {
	b.say("Starting etcd and kube-apiserver, building the gating-controller")
	b.groups = map[string][]client.ObjectKey{}
	if b.cluster, err = harness.StartControlPlane(harness.CRDs...); err != nil {
		return err
	}
	b.config = unlimited(b.cluster.Config)
	if b.client, err = client.New(b.config, client.Options{Scheme: b.cluster.Client.Scheme()}); err != nil {
		return err
	}
	if err := b.cluster.Install(ctx); err != nil {
		return err
	}
	return nil
}

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1
	return config
}

func (b *bench) stop() error {
	if b.cluster == nil {
		return nil
	}
	return errors.Join(b.stopController(), b.cluster.Stop())
}

// controller is the gating-controller as a process.
type controller struct {
	*harness.Process
	metrics string
}

// startController starts observing and the controller with its default flags, those of the command
// line and others.
func (b *bench) startController(ctx context.Context, args ...string) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	args = append(append([]string{"--metrics-addr=" + address}, b.controllerArgs...), args...)
	p, err := b.cluster.StartGatingController(ctx, args...)
	if err != nil {
		return err
	}
	b.gating = &controller{Process: p, metrics: "http://" + address}
	b.observer, err = observe(ctx, b.config, b.client.Scheme())
	return err
}

func (b *bench) stopController() error {
	if b.gating == nil {
		return nil
	}
	b.observer.stop()
	err := b.gating.Stop()
	b.observer, b.gating = nil, nil
	return err
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// cpu returns how much processor time the controller and the API server have used.
func (b *bench) cpu(ctx context.Context) (ours, server time.Duration, err error) {
	const name = "process_cpu_seconds_total"
	measures, err := b.gating.measures(ctx, name)
	if err != nil {
		return 0, 0, err
	}
	transport, err := rest.HTTPClientFor(b.config)
	if err != nil {
		return 0, 0, err
	}
	families, err := scrape(ctx, transport, strings.TrimSuffix(b.config.Host, "/")+"/metrics", name)
	if err != nil {
		return 0, 0, err
	}
	return seconds(measures[name]), seconds(families[name].GetMetric()[0].GetCounter().GetValue()), nil
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// profile stores a CPU profile of the controller from an instant on, if asked for. It
// ends with the returned function.
func (b *bench) profile(ctx context.Context, due time.Time, closed bool) func() {
	if !b.pprof {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(time.Until(due))
		raw, err := download(ctx, http.DefaultClient, b.gating.metrics+"/debug/pprof/profile?seconds=10")
		if err != nil {
			b.say("no profile: %v", err)
			return
		}
		path := filepath.Join(os.TempDir(), fmt.Sprintf("bench-%s-%d.pprof", edgeName(closed), due.Unix()))
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			b.say("no profile: %v", err)
			return
		}
		b.say("profile of 10s from when it was due: %s", path)
	}()
	return func() { <-done }
}

// readGates returns Gates as they are.
func (b *bench) readGates(ctx context.Context, keys []client.ObjectKey) (map[client.ObjectKey]*v1alpha1.Gate, error) {
	list := &v1alpha1.GateList{}
	if err := b.client.List(ctx, list); err != nil {
		return nil, err
	}
	found := map[client.ObjectKey]*v1alpha1.Gate{}
	for i := range list.Items {
		if key := client.ObjectKeyFromObject(&list.Items[i]); slices.Contains(keys, key) {
			found[key] = &list.Items[i]
		}
	}
	return found, nil
}
