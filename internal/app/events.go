package app

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	kuberecorder "k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
)

// maxQueuedEvents bounds the memory of events that wait for a receiver: one per
// target of a Gate with ten thousand.
const maxQueuedEvents = 16384

// eventQueue records events in the background. The recorder of Flux posts to
// the receiver in line and retries for many seconds, and no target shall be held
// later because notification-controller is away.
type eventQueue struct {
	recorder kuberecorder.EventRecorder
	events   chan func()
}

func newEventQueue(recorder kuberecorder.EventRecorder) *eventQueue {
	return &eventQueue{recorder: recorder, events: make(chan func(), maxQueuedEvents)}
}

// Start implements manager.Runnable.
func (q *eventQueue) Start(ctx context.Context) error {
	for {
		select {
		case record := <-q.events:
			record()
		case <-ctx.Done():
			return nil
		}
	}
}

// Event implements record.EventRecorder.
func (q *eventQueue) Event(object runtime.Object, eventtype, reason, message string) {
	q.AnnotatedEventf(object, nil, eventtype, reason, "%s", message)
}

// Eventf implements record.EventRecorder.
func (q *eventQueue) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	q.AnnotatedEventf(object, nil, eventtype, reason, messageFmt, args...)
}

// AnnotatedEventf implements record.EventRecorder.
func (q *eventQueue) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	// The caller goes on changing the object.
	object = object.DeepCopyObject()
	select {
	case q.events <- func() { q.recorder.AnnotatedEventf(object, annotations, eventtype, reason, messageFmt, args...) }:
	default:
		ctrl.Log.WithName("events").Info("Event dropped, the receiver does not keep up", "reason", reason)
	}
}
