// The demo shows the main job of the gating-controller with the real etcd, kube-apiserver, kubectl and kustomize-controller, and verifies
// what it shows. It exits 0 only if every observation held.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/harness"
)

func main() {
	keep := flag.Bool("keep", false, "Stay up after the demo until Ctrl-C.")
	assets := flag.String("assets", "", "The folder of etcd, kube-apiserver and kubectl. The default is that of tests/tools/build.sh.")
	flag.Parse()
	if *assets != "" {
		harness.UseAssets(*assets)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, *keep)
	stop()
	switch {
	case err == nil:
		fmt.Println("\nThe demo is over: every observation held.")
	case errors.Is(err, context.Canceled):
		fmt.Println("\nInterrupted, everything is stopped.")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "\nThe demo FAILED:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, keep bool) (err error) {
	d := &demo{begin: time.Now()}
	defer func() {
		if stopErr := d.stop(); ctx.Err() == nil { // otherwise the user has stopped the demo, perhaps while the controllers were busy
			err = errors.Join(err, stopErr)
		}
	}()
	if err := d.start(ctx); err != nil {
		return err
	}
	for _, step := range d.steps() {
		d.headline(step.title)
		if err := step.run(ctx); err != nil {
			d.showLogs()
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	if keep {
		fmt.Printf("\nEvery observation held. The cluster stays up until Ctrl-C. The page for all, with names, states and times, is at:\n\n  http://%s/\n\n"+
			"To play with the cluster, and to see all in a browser:\n\n  export KUBECONFIG=%s\n  export PATH=%s:%s:$PATH\n  kubectl gate status production\n  kubectl gate ui\n",
			d.page, d.cluster.Kubeconfig, filepath.Dir(plugin()), harness.Assets())
		<-ctx.Done()
	}
	return nil
}

// demo is a cluster with the objects of the demo.
type demo struct {
	begin     time.Time
	cluster   *harness.ControlPlane
	artifacts *harness.ArtifactServer
	flux      *harness.Process
	gating    *harness.Process
	// page is the address of the controller's web UI.
	page string
}

func (d *demo) start(ctx context.Context) (err error) {
	d.headline("Starting etcd, kube-apiserver, kustomize-controller and gating-controller")
	if d.cluster, err = harness.StartControlPlane("kustomize-controller", "source-controller"); err != nil {
		return err
	}
	d.artifacts = harness.StartArtifactServer()
	d.printf("kube-apiserver is up at %s", d.cluster.Config.Host)
	if err := d.cluster.Install(ctx); err != nil {
		return err
	}
	if d.flux, err = d.cluster.StartKustomizeController(ctx); err != nil {
		return err
	}
	d.printf("kustomize-controller is ready")
	d.page = harness.FreeAddress()
	if d.gating, err = d.cluster.StartGatingController(ctx, "--ui-addr="+d.page, "--ui-anonymous"); err != nil {
		return err
	}
	d.printf("gating-controller is ready")
	return nil
}

func (d *demo) stop() error {
	if d.cluster == nil {
		return nil
	}
	err := errors.Join(d.gating.Stop(), d.flux.Stop())
	if d.artifacts != nil {
		d.artifacts.Stop()
	}
	return errors.Join(err, d.cluster.Stop())
}

// showLogs prints the end of the controllers' logs, which are deleted soon.
func (d *demo) showLogs() {
	for _, process := range []*harness.Process{d.gating, d.flux} {
		content, err := os.ReadFile(process.Log)
		if err != nil {
			continue
		}
		fmt.Fprintf(os.Stderr, "\n--- %s\n%s", process.Log, content[max(0, len(content)-4000):])
	}
}

func (d *demo) headline(text string) {
	fmt.Printf("\n[%5.1fs] %s\n", time.Since(d.begin).Seconds(), text)
}

func (d *demo) printf(format string, args ...any) {
	fmt.Printf("         "+format+"\n", args...)
}

// client returns the client of the cluster administrator.
func (d *demo) client() client.Client { return d.cluster.Client }
