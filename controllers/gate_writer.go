package controllers

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// gateWriter writes a Gate, each time on what was read or written before. The status is one write: nobody acts on a part of it.
type gateWriter struct {
	client.Client
	// live reads from the API server.
	live client.Reader
	// base is the Gate as it was read or written last.
	base *v1alpha1.Gate
}

// status writes the status of a Gate, unless it is what was read or written last.
func (w *gateWriter) status(ctx context.Context, obj *v1alpha1.Gate) error {
	if equality.Semantic.DeepEqual(w.base.Status, obj.Status) {
		return nil
	}
	return w.write(ctx, func(written *v1alpha1.Gate, patch client.Patch) error {
		obj.Status.DeepCopyInto(&written.Status)
		return w.Status().Patch(ctx, written, patch, client.FieldOwner(v1alpha1.FieldManager))
	})
}

// suspended writes the status of a suspended Gate.
func (w *gateWriter) suspended(ctx context.Context, obj *v1alpha1.Gate, now time.Time) error {
	suspended := *obj
	suspended.Status = gate.SuspendedStatus(obj, now)
	return w.status(ctx, &suspended)
}

// finalize writes whether a Gate has our finalizer.
func (w *gateWriter) finalize(ctx context.Context, has bool) error {
	return w.write(ctx, func(written *v1alpha1.Gate, patch client.Patch) error {
		written.Finalizers = slices.DeleteFunc(written.Finalizers, func(f string) bool { return f == v1alpha1.GateFinalizer })
		if has {
			written.Finalizers = append(written.Finalizers, v1alpha1.GateFinalizer)
		}
		return w.Patch(ctx, written, patch, client.FieldOwner(v1alpha1.FieldManager))
	})
}

// removeLines removes the unhandled requests from the annotations of a Gate that it had when it was decided. The status must have been
// written: until then a crash must not lose them.
func (w *gateWriter) removeLines(ctx context.Context, decided *v1alpha1.Gate) error {
	if !ledger.RemoveLines(w.base.DeepCopy(), decided) {
		return nil
	}
	return w.write(ctx, func(written *v1alpha1.Gate, patch client.Patch) error {
		ledger.RemoveLines(written, decided)
		return w.Patch(ctx, written, patch, client.FieldOwner(v1alpha1.FieldManager))
	})
}

// write makes a write, and tries again if somebody has changed something else of the Gate than what is decided here.
func (w *gateWriter) write(ctx context.Context, patch func(*v1alpha1.Gate, client.Patch) error) error {
	for retry := 0; ; retry++ {
		written := w.base.DeepCopy()
		err := patch(written, locked(w.base))
		if err == nil {
			w.base = written
			return nil
		}
		if !apierrors.IsConflict(err) || retry == conflictRetries {
			return err
		}
		latest := &v1alpha1.Gate{}
		if err := w.live.Get(ctx, client.ObjectKeyFromObject(w.base), latest); err != nil {
			return err
		}
		if latest.UID != w.base.UID || latest.Spec.Suspend != w.base.Spec.Suspend || !equality.Semantic.DeepEqual(latest.Status, w.base.Status) {
			return err // another process is at it
		}
		w.base = latest
	}
}
