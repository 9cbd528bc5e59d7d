package app

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	kuberecorder "k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/events"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// newEventRecorder returns a recorder of Kubernetes events that also posts them to the
// events receiver of Flux if it has an address. Each of the two has a queue of its own:
// what is told to one does not wait for the other.
func newEventRecorder(ctx context.Context, mgr ctrl.Manager, receiver string) (kuberecorder.EventRecorder, error) {
	client, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("unable to create the client of events: %w", err)
	}
	writer := newEventWriter(ctx, mgr.GetScheme(), &corev1client.EventSinkImpl{Interface: client.Events("")}, v1alpha1.FieldManager)
	recorders := eventRecorders{}
	for _, to := range []struct {
		address string
		events  kuberecorder.EventRecorder
	}{{"", writer}, {receiver, noEvents{}}} {
		if to.address == "" && len(recorders) > 0 {
			continue
		}
		// What Flux adds to an event is the same for both.
		recorder, err := events.NewRecorderForScheme(mgr.GetScheme(), to.events, ctrl.Log, to.address, v1alpha1.FieldManager)
		if err != nil {
			return nil, fmt.Errorf("unable to create event recorder: %w", err)
		}
		queue := newEventQueue(recorder)
		if err := mgr.Add(queue); err != nil {
			return nil, err
		}
		recorders = append(recorders, queue)
	}
	return recorders, nil
}

// eventRecorders record each event with all of them.
type eventRecorders []kuberecorder.EventRecorder

// Event implements record.EventRecorder.
func (r eventRecorders) Event(object runtime.Object, eventtype, reason, message string) {
	r.AnnotatedEventf(object, nil, eventtype, reason, "%s", message)
}

// Eventf implements record.EventRecorder.
func (r eventRecorders) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.AnnotatedEventf(object, nil, eventtype, reason, messageFmt, args...)
}

// AnnotatedEventf implements record.EventRecorder.
func (r eventRecorders) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	for _, recorder := range r {
		recorder.AnnotatedEventf(object, annotations, eventtype, reason, messageFmt, args...)
	}
}

// noEvents records nothing.
type noEvents struct{ kuberecorder.EventRecorder }

// AnnotatedEventf implements record.EventRecorder.
func (noEvents) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {}

// maxQueuedEvents bounds the memory of events that wait for a receiver: one per
// target of a Gate with ten thousand.
const maxQueuedEvents = 16384

// eventQueue records events in the background. The recorder of Flux posts to
// the receiver in line and retries for many seconds, and no target shall be held
// later because notification-controller is away, or the API server busy.
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
