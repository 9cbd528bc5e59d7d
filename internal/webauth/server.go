package webauth

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/fluxcd/gating-controller/internal/endpoint"
)

// NewServer returns a server of the web UI. It starts serving once ready returns.
func NewServer(addr string, handler http.Handler, ready func(context.Context) error) *endpoint.Server {
	return &endpoint.Server{Addr: addr, Ready: ready, Serve: func(ctx context.Context, listener net.Listener) error {
		return Serve(ctx, listener, handler)
	}}
}

// Serve serves a handler within the limits of this package, until the context is done. Then it ends live pages.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	return endpoint.Serve(ctx, listener, &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
		// the server would only log connections without a valid token
		ErrorLog: log.New(io.Discard, "", 0),
	}, endpoint.Limits{Connections: maxConnections, Grace: shutdownTimeout})
}
