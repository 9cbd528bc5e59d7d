// Command certmanager runs the controllers of cert-manager that issue certificates from self-signed and CA issuers, or its
// validating webadmission. The main packages of cert-manager are modules that cannot be had.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"golang.org/x/sync/errgroup"

	// Windows of renewal have time zones; cert-manager's image has the data.
	_ "time/tzdata"

	// Controllers and kinds of issuers register themselves.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/ingresses"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

// workers of each controller, as in cert-manager's own default.
const workers = 5

func main() {
	// What is not a flag is cert-manager's own default.
	opts := controller.ContextOptions{
		IngressShimOptions: controller.IngressShimOptions{
			DefaultIssuerKind: "Issuer", DefaultIssuerGroup: "cert-manager.io",
			DefaultAutoCertificateAnnotations: []string{"kubernetes.io/tls-acme"},
		},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	}
	var health string
	var admission webhook
	// Imported packages have flags of their own, --kubeconfig among them.
	flag.CommandLine = flag.NewFlagSet("cert-manager", flag.ExitOnError)
	qps := flag.Float64("kube-api-qps", 500, "requests a second to an API server that does not limit them itself")
	flag.IntVar(&opts.KubernetesAPIBurst, "kube-api-burst", 1000, "burst of requests to such an API server")
	flag.StringVar(&opts.Kubeconfig, "kubeconfig", "", "path of a kubeconfig")
	flag.StringVar(&opts.ClusterResourceNamespace, "cluster-resource-namespace", "kube-system", "namespace of the secrets of ClusterIssuers")
	flag.StringVar(&health, "health-addr", "127.0.0.1:9440", "address of /readyz")
	flag.StringVar(&admission.addr, "webhook-addr", "", "serve the webhook at this address, and no controller")
	flag.StringVar(&admission.caFile, "webhook-ca-file", "", "file to write the webhook's CA certificate to")
	flag.Parse()
	opts.KubernetesAPIQPS = float32(*qps)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if admission.addr != "" {
		admission.run(ctx, opts.Kubeconfig, health)
	}
	if err := runControllers(ctx, opts, health); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

// runControllers runs all controllers that are registered until ctx is done.
func runControllers(ctx context.Context, opts controller.ContextOptions, health string) error {
	group, ctx := errgroup.WithContext(ctx)
	factory, err := controller.NewContextFactory(ctx, opts)
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	for name, build := range controller.Known() {
		built, err := build(factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintln(os.Stderr, "cert-manager: starting", name)
		group.Go(func() error { return built.Run(workers, ctx) })
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	group.Go(func() error {
		shared.SharedInformerFactory.WaitForCacheSync(ctx.Done())
		shared.KubeSharedInformerFactory.WaitForCacheSync(ctx.Done())
		return serveReady(ctx, health)
	})
	return group.Wait()
}

// serveReady answers that all is ready until ctx is done.
func serveReady(ctx context.Context, addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	return serve(ctx, listener, mux)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
