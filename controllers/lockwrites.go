package controllers

import (
	"fmt"
	"iter"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// LockWrites are the writes of the GateLocks in which a Gate changes something. Each namespace
// is on its own: where a write takes long or fails, nobody is kept from going on in the others.
// It is not safe for concurrent use. A nil one is of a Gate that changes none.
type LockWrites struct {
	// unread is why no GateLock could be looked at, nil if they could.
	unread error
	// pending are the namespaces whose GateLocks are being written, failed why those of
	// others are not as they are to be.
	pending map[string]bool
	failed  map[string]error
	ended   chan lockWritten
}

// lockWritten is how the write of the GateLock of a namespace ended.
type lockWritten struct {
	namespace string
	err       error
}

// in returns why the GateLock of a namespace is not as it is to be, nil if it is.
func (w *LockWrites) in(namespace string) error {
	switch {
	case w == nil:
		return nil
	case w.unread != nil:
		return w.unread
	case w.pending[namespace]:
		return errLate
	}
	return w.failed[namespace]
}

func (w *LockWrites) isPending(namespace string) bool { return w != nil && w.pending[namespace] }

// next waits for the end of one more write and returns its namespace, false if there is none, or
// as soon as over says that nobody needs them any more.
func (w *LockWrites) next(over func() bool) (string, bool) {
	if w == nil || len(w.pending) == 0 {
		return "", false
	}
	again := time.NewTicker(standingFor)
	defer again.Stop()
	for !over() {
		select {
		case written := <-w.ended:
			delete(w.pending, written.namespace)
			if written.err != nil {
				w.failed[written.namespace] = written.err
			}
			return written.namespace, true
		case <-again.C:
		}
	}
	return "", false
}

// wait waits for the end of all writes.
func (w *LockWrites) wait(over func() bool) {
	for more := true; more; {
		_, more = w.next(over)
	}
}

// keeps returns whether a target stays as it is although the Gate lets it go: it is locked still.
func (o order) keeps(obj *target.Object) bool {
	return !o.Closed && o.locks.in(obj.GetNamespace()) != nil
}

// turns yields targets with their indexes: at once those whose GateLock is as it is to be, the
// others when the write of theirs ends. It leaves out those that stay as they are.
func (o order) turns(targets []*target.Object) iter.Seq2[int, *target.Object] {
	return func(yield func(int, *target.Object) bool) {
		later := map[string][]int{}
		for i, t := range targets {
			if namespace := t.GetNamespace(); o.locks.isPending(namespace) {
				later[namespace] = append(later[namespace], i)
			} else if !o.keeps(t) && !yield(i, t) {
				return
			}
		}
		for len(later) > 0 {
			namespace, ok := o.locks.next(o.isOver)
			if !ok {
				return
			}
			for _, i := range later[namespace] {
				if !o.keeps(targets[i]) && !yield(i, targets[i]) {
					return
				}
			}
			delete(later, namespace)
		}
	}
}

// report waits for the end of all writes, unless the order is over before, and notes in the
// outcomes of a Gate which GateLocks are not as they are to be.
func (o order) report(result *outcomes, gate client.ObjectKey) {
	w := o.locks
	w.wait(o.isOver)
	result.over = result.over || len(w.pending) > 0
	fail := func(namespace, reason string, err error) {
		result.fail(v1alpha1.GateLockKind, namespace, v1alpha1.GateLockName, reason, err.Error(),
			fmt.Errorf("%s %s/%s: %w", v1alpha1.GateLockKind, namespace, v1alpha1.GateLockName, err))
	}
	if w.unread != nil {
		fail(gate.Namespace, v1alpha1.ReadFailedReason, w.unread)
	}
	for namespace, err := range w.failed {
		fail(namespace, v1alpha1.WriteFailedReason, err)
	}
}
