package see

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/ui"
	"github.com/fluxcd/gating-controller/internal/validate"
)

// NewUICommand returns the command ui.
func NewUICommand(k *kube.Factory) *cobra.Command {
	port := 0
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show Gates in a browser: their state, and scheduled and waiting changes",
		Long: `Show Gates in a browser: their state, and scheduled and waiting changes.

The web UI is served on this machine until you interrupt the command. It uses your kubeconfig, so it shows only objects that you may see. It changes
nothing, but shows the commands for changes. The address contains a secret, so that other users of this machine cannot open it.`,
		Example: `  # It prints the address to open
  kubectl gate ui

  # Always at the same port
  kubectl gate ui --port 8123`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().IntVar(&port, "port", 0, "The port on 127.0.0.1, 0 for any free port.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runUI(cmd.Context(), k, port) }
	return cmd
}

// runUI serves the web UI until the user interrupts it.
func runUI(ctx context.Context, k *kube.Factory, port int) error {
	now, err := k.Now()
	if err != nil {
		return err
	}
	c, err := k.Cluster()
	if err != nil {
		return err
	}
	if _, err := c.Gates(ctx, kube.Scope{}); err != nil && !apierrors.IsForbidden(err) {
		return err // report the error here instead of on each page
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		return fmt.Errorf("cannot serve the web UI: %w; choose another --port", err)
	}
	secret := "/" + strings.ToLower(rand.Text()) + "/"
	pages := ui.New(ui.Options{
		Viewers: &uiReader{factory: k, cluster: c, kinds: make(chan struct{}, 1)}, Clock: k.Clock, Zone: now.Location(), Alone: true, Command: k.Program, Namespace: c.Namespace,
		Validate: validate.Object, Log: log.New(k.ErrOut, "", 0),
	})
	server := &http.Server{
		Handler:           requireSecret(secret, pages),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(k.ErrOut, "", 0),
	}
	fmt.Fprintf(k.Out, "http://%s%s\n", listener.Addr(), secret)
	k.Warn("do not share this address: the pages have your permissions. Press Ctrl+C to stop")
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(netutil.LimitListener(listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// maxConnections bounds the number of connections. A browser opens six, and one more for each live page.
const maxConnections = 256

// requireSecret serves requests whose path starts with the secret and whose host is a loopback address. Checking the host prevents DNS
// rebinding.
func requireSecret(secret string, next http.Handler) http.Handler {
	stripped := http.StripPrefix(strings.TrimSuffix(secret, "/"), next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.Path[:min(len(secret), len(r.URL.Path))]
		if subtle.ConstantTimeCompare([]byte(given), []byte(secret)) != 1 || !isLoopback(r.Host) {
			http.Error(w, "Open the address that kubectl gate ui has printed.", http.StatusForbidden)
			return
		}
		stripped.ServeHTTP(w, r)
	})
}

// isLoopback returns whether a host, with or without a port, is a loopback address or localhost.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
