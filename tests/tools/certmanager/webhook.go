package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/cert-manager/cert-manager/pkg/webhook/admission"
	"github.com/cert-manager/cert-manager/pkg/webhook/server"
	certmanagertest "github.com/cert-manager/cert-manager/test/webhook"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/cert"
)

// webhook is where cert-manager's webhook is served, at /validate and /mutate.
type webhook struct {
	addr   string
	caFile string
}

// run serves the webhook until ctx is done and ends the process.
//
// cert-manager puts its webhook together in an internal package, which opens to others through a helper for tests alone. So this
// is a test, which takes the parts and leaves before the helper serves them on all interfaces and under a port of its choice.
func (w webhook) run(ctx context.Context, kubeconfig, health string) {
	test := func(t *testing.T) {
		certmanagertest.StartWebhookServer(t, []string{"--kubeconfig=" + kubeconfig}, func(s *server.Server) {
			if err := w.serve(ctx, s, health); err != nil {
				t.Fatal(err)
			}
			t.SkipNow()
		})
	}
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "webhook", F: test}}, nil, nil)
}

func (w webhook) serve(ctx context.Context, s *server.Server, health string) error {
	host, _, err := net.SplitHostPort(w.addr)
	if err != nil {
		return err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(w.caFile, certificate, 0o600); err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", w.addr, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/validate", admission.NewCustomValidationWebhook(s.ResourceScheme, s.ValidationWebhook))
	mux.Handle("/mutate", admission.NewCustomMutationWebhook(s.MutationWebhook))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serve(ctx, listener, mux) })
	group.Go(func() error { return serveReady(ctx, health) })
	return group.Wait()
}
