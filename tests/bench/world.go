package bench

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

// patience is the timeout for changes that must happen, also on a busy machine.
const patience = 15 * time.Minute

// bench is a cluster with the objects of the scenarios.
type bench struct {
	begin   time.Time
	cluster *harness.ControlPlane
	// client has all permissions and no rate limit.
	client client.Client
	config *rest.Config
	// http sends requests other than those for objects to the API server, whose URL is server.
	http   *http.Client
	server string

	// groups has the created targets by group.
	groups map[string][]client.ObjectKey
	// closed has the Gates that one benchmark leaves closed for another.
	closed *fleet
	// slow counts how often the machine was not ready in time.
	slow int

	observer *observer
	gating   *controller
}

func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%6.1fs] "+format+"\n", append([]any{time.Since(b.begin).Seconds()}, args...)...)
}

func (b *bench) start(ctx context.Context) (err error) {
	b.begin, b.groups = time.Now(), map[string][]client.ObjectKey{}
	b.logf("starting etcd and kube-apiserver, building the gating-controller")
	if err := os.Setenv("GOGC", "100"); err != nil { // the default, which the harness would replace
		return err
	}
	if b.cluster, err = harness.StartControlPlane(harness.CRDs...); err != nil {
		return err
	}
	b.config = unlimited(b.cluster.Config)
	b.server = strings.TrimSuffix(b.config.Host, "/")
	if b.http, err = rest.HTTPClientFor(b.config); err != nil {
		return err
	}
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

// controller is a process of the gating-controller.
type controller struct {
	*harness.Process
	metrics string
	// requested is when its start was requested, ready when it was observed to be ready.
	requested, ready time.Time
}

// startController starts the observer, and then the controller with its default flags, the flags of the command line, and args. Its Gates
// hold targets of other namespaces.
func (b *bench) startController(ctx context.Context, args ...string) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	args = append(append([]string{"--metrics-addr=" + address, "--enable-pprof", "--no-cross-namespace-refs=false"}, strings.Fields(*controllerArgs)...), args...)
	requested := time.Now()
	p, err := b.cluster.StartGatingController(ctx, args...)
	if err != nil {
		return err
	}
	b.gating = &controller{Process: p, metrics: "http://" + address, requested: requested, ready: time.Now()}
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

// keepLog copies the log of the controller, which is deleted soon.
func (b *bench) keepLog() error {
	if b.gating == nil {
		return nil
	}
	content, err := os.ReadFile(b.gating.Log)
	if err != nil {
		return err
	}
	path := filepath.Join(os.TempDir(), "bench-gating-controller.log")
	b.logf("the log of the controller is in %s", path)
	return os.WriteFile(path, content, 0o600) //nolint:gosec // the test chooses the path
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// usage is the use of resources so far: requests of all clients, processor time, and reconciliations of the controller.
type usage struct {
	calls calls
	// conflicts are the calls that were refused because of a conflict.
	conflicts          calls
	latencies          latencies
	controller, server time.Duration
	reconciles         float64
}

func (u usage) since(before usage) usage {
	return usage{u.calls.since(before.calls), u.conflicts.since(before.conflicts), u.latencies.since(before.latencies), u.controller - before.controller, u.server - before.server, u.reconciles - before.reconciles}
}

// accepted returns the writes without those that were refused because of a conflict.
func (u usage) accepted() calls {
	accepted := u.calls.writes()
	for call, n := range u.conflicts.writes() {
		accepted[call] -= n
	}
	return accepted
}

const processorTime = "process_cpu_seconds_total"

// usage returns the usage so far, without the controller if that is stopped.
func (b *bench) usage(ctx context.Context) (u usage, err error) {
	if b.gating != nil {
		ours, err := b.gating.measures(ctx, processorTime, reconciliations)
		if err != nil {
			return u, err
		}
		u.controller, u.reconciles = seconds(ours[processorTime]), ours[reconciliations]
	}
	server, err := scrape(ctx, b.http, b.server+"/metrics", processorTime)
	if err != nil {
		return u, err
	}
	u.server = seconds(sum(server[processorTime]))
	if u.latencies, err = b.latencies(ctx); err != nil {
		return u, err
	}
	u.calls, u.conflicts, err = b.counted(ctx)
	return u, err
}

// quietUsage waits until there are no more writes.
func (b *bench) quietUsage(ctx context.Context) (usage, error) {
	if _, err := b.quiet(ctx); err != nil {
		return usage{}, err
	}
	return b.usage(ctx)
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// readGates returns the current Gates.
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
