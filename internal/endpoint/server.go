package endpoint

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// retryInterval is how long to wait before reading the cache again.
const retryInterval = 100 * time.Millisecond

// Server serves the objects of a kind. Every replica runs one, without waiting for the leader election.
type Server struct {
	// Addr is the address to listen on.
	Addr string
	// Serve serves until the context is done.
	Serve func(context.Context, net.Listener) error
	// Objects is an empty list of the kind, Cache reads it, and IsReconciled returns whether an object has been reconciled. The server starts
	// when all objects in the cache have been reconciled, because a client that cannot connect tries again, but one that gets a 404 may not.
	// If Objects is nil, the server does not wait.
	Objects      client.ObjectList
	Cache        client.Reader
	IsReconciled func(types.NamespacedName) bool
	// Ready returns once all other prerequisites are met. It may be nil.
	Ready func(context.Context) error

	listening atomic.Bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *Server) NeedLeaderElection() bool { return false }

// Listens is a healthz.Checker. A replica that does not listen yet is not ready, so that a Service does not route to it.
func (s *Server) Listens(*http.Request) error {
	if !s.listening.Load() {
		return errors.New("nothing is served yet")
	}
	return nil
}

// Start implements manager.Runnable.
func (s *Server) Start(ctx context.Context) error {
	if err := s.await(ctx); err != nil {
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
	return s.Serve(ctx, listener)
}

// await returns when all objects that existed at the start have been reconciled or deleted. It ignores new ones, so that a user cannot keep
// a replica from becoming ready by creating objects.
func (s *Server) await(ctx context.Context) error {
	if s.Objects == nil {
		return nil
	}
	var first map[types.NamespacedName]bool
	return wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		now, err := s.present(ctx)
		if err != nil {
			return false, nil //nolint:nilerr // retried
		}
		if first == nil {
			first = maps.Clone(now)
		}
		maps.DeleteFunc(first, func(key types.NamespacedName, _ bool) bool { return s.IsReconciled(key) || !now[key] })
		return len(first) == 0, nil
	})
}

// present returns the objects in the cache that are not being deleted.
func (s *Server) present(ctx context.Context) (map[types.NamespacedName]bool, error) {
	list, ok := s.Objects.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil, errors.New("not a list")
	}
	if err := s.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	keys := map[types.NamespacedName]bool{}
	return keys, apimeta.EachListItem(list, func(item runtime.Object) error {
		obj, err := apimeta.Accessor(item)
		if err == nil && obj.GetDeletionTimestamp() == nil {
			keys[types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}] = true
		}
		return err
	})
}

// Limits are the limits of a server.
type Limits struct {
	// Connections is the maximum number of open connections. It bounds the memory for unauthenticated clients. Further connections wait.
	Connections int
	// Grace bounds the time for open requests when the process ends.
	Grace time.Duration
}

// Serve serves within limits until the context is done, and then waits for the open requests, at most for limits.Grace.
func Serve(ctx context.Context, listener net.Listener, server *http.Server, limits Limits) error {
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(netutil.LimitListener(listener, limits.Connections)) }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.Grace)
	defer cancel()
	err := server.Shutdown(grace)
	if served := <-stopped; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// Respond writes a response in plain text.
func Respond(w http.ResponseWriter, code int, text string) {
	if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text) // the client may have disconnected
}
