package gate

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// gateWriter writes a Gate.
type gateWriter struct {
	ownwrites.Writer[*v1alpha1.Gate]
}

// newGateWriter returns a writer for a Gate. After a conflict, it repeats the write unless the Gate was suspended or resumed in the
// meantime.
func newGateWriter(gates *ownwrites.Client, read *v1alpha1.Gate) *gateWriter {
	return &gateWriter{ownwrites.Writer[*v1alpha1.Gate]{
		Client: gates, Base: read, Live: gates.Live,
		Unchanged: func(base, latest *v1alpha1.Gate) bool { return base.Spec.Suspend == latest.Spec.Suspend },
	}}
}

// suspended writes the status of a suspended Gate.
func (w *gateWriter) suspended(ctx context.Context, obj *v1alpha1.Gate, now time.Time) error {
	suspended := *obj
	suspended.Status = gate.SuspendedStatus(obj, now)
	return w.WriteStatus(ctx, &suspended)
}

// addFinalizer adds our finalizer to a Gate that lacks it.
func (w *gateWriter) addFinalizer(ctx context.Context) error {
	return w.Write(ctx, func(g *v1alpha1.Gate) bool { return controllerutil.AddFinalizer(g, v1alpha1.GateFinalizer) })
}

// removeFinalizer removes our finalizer from a Gate.
func (w *gateWriter) removeFinalizer(ctx context.Context) error {
	return w.Write(ctx, func(g *v1alpha1.Gate) bool { return controllerutil.RemoveFinalizer(g, v1alpha1.GateFinalizer) })
}

// removeLines removes the handled requests from the annotation v1alpha1.UnhandledAnnotation of a Gate. Call it after the status has been
// written, so that no request is lost in a crash.
func (w *gateWriter) removeLines(ctx context.Context, decided *v1alpha1.Gate) error {
	return w.Write(ctx, func(g *v1alpha1.Gate) bool { return ledger.RemoveLines(g, decided) })
}
