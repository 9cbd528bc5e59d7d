package calendarfeed

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

// NewServer returns a server for the calendars of a Handler. It starts when all CalendarFeeds in the cache have been reconciled.
func NewServer(addr string, handler *Handler, cache client.Reader) *endpoint.Server {
	return &endpoint.Server{
		Addr: addr, Serve: func(ctx context.Context, listener net.Listener) error {
			defer handler.Table.Source.Stop()
			return Serve(ctx, listener, handler)
		},
		Objects: &v1alpha1.CalendarFeedList{}, Cache: cache, IsReconciled: handler.Table.IsReconciled,
	}
}

func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		// Discard the errors of connections, because unauthenticated clients could fill the log with them.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// Serve serves a handler within the limits of this package, until the context is done.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	return endpoint.Serve(ctx, listener, newServer(handler), endpoint.Limits{Connections: maxConnections, Grace: shutdownTimeout})
}
