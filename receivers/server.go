package receivers

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/endpoint"
)

// NewServer returns a server for the receivers in a Table. The cache contains all GateReceivers.
func NewServer(addr string, handler http.Handler, table *Table, cache client.Reader) *endpoint.Server {
	return &endpoint.Server{
		Addr: addr, Serve: func(ctx context.Context, listener net.Listener) error { return Serve(ctx, listener, handler) },
		Objects: &v1alpha1.GateReceiverList{}, Cache: cache, IsReconciled: table.IsReconciled,
	}
}

func newServer(handler http.Handler, p bodyRate) *http.Server {
	return &http.Server{
		Handler:           p.keep(handler),
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		// Discard the errors of connections, because unverified senders could fill the log with them.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// Serve serves a handler within the limits of this package, until the context is done and the open requests are finished.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	return endpoint.Serve(ctx, listener, newServer(handler, defaultBodyRate), endpoint.Limits{Connections: maxConnections, Grace: shutdownTimeout})
}
