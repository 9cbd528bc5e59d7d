package receivers

import (
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"sync/atomic"

	"golang.org/x/net/netutil"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Server serves webhooks. Every replica has one: none waits to be the leader.
type Server struct {
	// Addr to listen on.
	Addr string
	// Handler of all requests.
	Handler http.Handler
	// Table and Receivers say when to begin: once all receivers in the cache were looked
	// at. A sender that finds nobody listening tries again. One that gets a 404 may not.
	Table     *Table
	Receivers client.Reader
	// Ready returns once the Handler has everything else that it needs. Nil if it needs
	// nothing.
	Ready func(context.Context) error

	listening atomic.Bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *Server) NeedLeaderElection() bool { return false }

// Listens is a healthz.Checker. A replica that does not listen yet is not ready, so
// that a Service sends it nothing.
func (s *Server) Listens(*http.Request) error {
	if !s.listening.Load() {
		return errors.New("webhooks are not taken yet")
	}
	return nil
}

// Start implements manager.Runnable.
func (s *Server) Start(ctx context.Context) error {
	if err := s.awaitReceivers(ctx); err != nil {
		return nil //nolint:nilerr // the process ends before there was anything to serve
	}
	if s.Ready != nil {
		if err := s.Ready(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	s.listening.Store(true)
	return Serve(ctx, listener, s.Handler)
}

// awaitReceivers returns once all receivers that exist at first were looked at. Somebody
// who keeps creating new ones must not keep a replica from being ready.
func (s *Server) awaitReceivers(ctx context.Context) error {
	var first map[types.NamespacedName]bool
	return wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		now, err := s.receivers(ctx)
		if err != nil {
			return false, nil //nolint:nilerr // asked again
		}
		if first == nil {
			first = maps.Clone(now)
		}
		maps.DeleteFunc(first, func(key types.NamespacedName, _ bool) bool { return s.Table.looked(key) || !now[key] })
		return len(first) == 0, nil
	})
}

// receivers returns those in the cache that are not being deleted.
func (s *Server) receivers(ctx context.Context) (map[types.NamespacedName]bool, error) {
	list := &v1alpha1.GateReceiverList{}
	if err := s.Receivers.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	keys := map[types.NamespacedName]bool{}
	for i := range list.Items {
		if obj := &list.Items[i]; obj.DeletionTimestamp.IsZero() {
			keys[client.ObjectKeyFromObject(obj)] = true
		}
	}
	return keys, nil
}

func newServer(handler http.Handler, p pace) *http.Server {
	return &http.Server{
		Handler:           p.keep(handler),
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		// It logs only about the connections of strangers.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// Serve serves a handler within the limits of this package, until the context is done
// and the requests that are being answered then are.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := newServer(handler, usualPace)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(netutil.LimitListener(listener, maxConnections)) }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(grace)
	if served := <-stopped; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
