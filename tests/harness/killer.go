package harness

import (
	"context"
	"strings"
	"sync"
)

// Killer is a proxy between the controller and the API server, and kills the controller at a write.
type Killer struct {
	*FaultProxy
	controller **Process
	args       []string

	mu sync.Mutex
	// paths are the path suffixes of the counted writes, and left is the number of them that may still pass.
	paths []string
	left  int
	made  bool
	// killed is closed once the controller is killed.
	killed chan struct{}
}

// StartKiller replaces a controller with one that can be killed at a write. The end of the test restores it, with the same arguments.
func (w *World) StartKiller(controller **Process, args ...string) *Killer {
	w.Helper()
	w.Must((*controller).Stop())
	proxy, err := w.StartControllerProxy(w.Context(), "killer", 1)
	w.Must(err)
	k := &Killer{FaultProxy: proxy, controller: controller, args: args}
	proxy.OnWrite(k.lets)
	k.Start(w)
	w.Cleanup(func() {
		w.Must((*controller).Stop())
		w.Must(proxy.Stop())
		var err error
		*controller, err = w.StartGatingController(context.WithoutCancel(w.Context()), args...)
		w.Must(err)
	})
	return k
}

// Start starts the controller again. It does not wait until the controller is ready.
func (k *Killer) Start(w *World) {
	w.Helper()
	var err error
	*k.controller, err = w.StartGatingControllerThrough(w.Context(), k.FaultProxy, k.args...)
	w.Must(err)
}

// KillAt kills the controller at the next write after n writes whose paths end in one of paths: before the API server receives it, or
// after the API server has made it and before the response.
func (k *Killer) KillAt(n int, made bool, paths ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left, k.made, k.paths, k.killed = n, made, paths, make(chan struct{})
}

// IsAlive returns whether the controller has not been killed since KillAt.
func (k *Killer) IsAlive() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.killed:
		return false
	default:
		return true
	}
}

// Survives returns whether the controller was not killed. It can no longer be killed after that.
func (k *Killer) Survives() bool {
	k.mu.Lock()
	k.paths = nil
	k.mu.Unlock()
	return k.IsAlive()
}

// lets counts the writes, and kills the controller at the chosen one.
func (k *Killer) lets(path string, made bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, counts := range k.paths {
		if made != k.made || !strings.HasSuffix(path, counts) {
			continue
		}
		if k.left--; k.left >= 0 {
			return true
		}
		k.paths = nil
		_ = (*k.controller).Kill() // if that fails, the test detects it
		close(k.killed)
		return false
	}
	return true
}
