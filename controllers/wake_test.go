package controllers_test

import (
	"context"
	"testing"

	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Usually the event of the target enqueues it earlier.
func TestTargetIsRequeuedWhileKindIsRead(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	w.Targets = notRead{w.Targets}
	w.Queues.Targets(queue.Change, target.KeyOf(app))
	w.Must(w.ReconcileEnqueued())
	if after := w.RequeueAfter[target.KeyOf(app)]; after != view.CacheDelay {
		t.Errorf("it is looked at again after %s", after)
	}
}

// notRead is a cache whose objects are being read.
type notRead struct{ view.TargetReader }

// Get implements TargetReader.
func (notRead) Get(context.Context, target.Key) (*target.Object, error) { return nil, view.ErrNotRead }
