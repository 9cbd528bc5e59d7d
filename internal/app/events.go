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

// eventAction is the action in posted events, which is required by the event API of Flux.
const eventAction = "Gating"

// newEventRecorder returns a recorder of Kubernetes events that also posts them to Flux's events receiver, if it has an address. Both
// have their own queues, so that neither delays the other.
func newEventRecorder(ctx context.Context, mgr ctrl.Manager, receiver string) (kuberecorder.EventRecorder, error) {
	client, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("unable to create the client of events: %w", err)
	}
	queued := func(address string, to ...events.RecorderOption) (*eventQueue, error) {
		// Kubernetes events also go through the Flux recorder, so that they have the same annotations as posted events.
		recorder, err := events.NewRecorder(ctrl.Log, address, v1alpha1.FieldManager, append(to, events.WithScheme(mgr.GetScheme()))...)
		if err != nil {
			return nil, fmt.Errorf("unable to create event recorder: %w", err)
		}
		queue := newEventQueue(recordEvent(func(object runtime.Object, annotations map[string]string, eventtype, reason, message string) {
			recorder.AnnotatedEventf(object, nil, annotations, eventtype, reason, eventAction, "%s", message)
		}))
		return queue, mgr.Add(queue)
	}
	writer := newEventWriter(ctx, mgr.GetScheme(), &corev1client.EventSinkImpl{Interface: client.Events("")}, v1alpha1.FieldManager)
	kubernetes, err := queued("", events.WithLegacyEventRecorder(writer))
	if err != nil || receiver == "" {
		return kubernetes, err
	}
	posted, err := queued(receiver)
	return toAll(kubernetes, posted), err
}

// recordEvent implements record.EventRecorder with a function.
type recordEvent func(object runtime.Object, annotations map[string]string, eventtype, reason, message string)

// Event implements record.EventRecorder.
func (r recordEvent) Event(object runtime.Object, eventtype, reason, message string) {
	r(object, nil, eventtype, reason, message)
}

// Eventf implements record.EventRecorder.
func (r recordEvent) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r(object, nil, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (r recordEvent) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	r(object, annotations, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// toAll returns a recorder that passes each event to all recorders.
func toAll(recorders ...kuberecorder.EventRecorder) recordEvent {
	return func(object runtime.Object, annotations map[string]string, eventtype, reason, message string) {
		for _, recorder := range recorders {
			recorder.AnnotatedEventf(object, annotations, eventtype, reason, "%s", message)
		}
	}
}

// maxQueuedEvents bounds the memory for events that wait for a receiver. It is enough for one event per target of a Gate with ten
// thousand targets.
const maxQueuedEvents = 16384

// eventQueue records events in the background. The Flux recorder posts synchronously and retries for many seconds, and neither an
// unavailable notification-controller nor a busy API server may delay holds.
type eventQueue struct {
	recordEvent

	recorder kuberecorder.EventRecorder
	events   chan func()
}

func newEventQueue(recorder kuberecorder.EventRecorder) *eventQueue {
	q := &eventQueue{recorder: recorder, events: make(chan func(), maxQueuedEvents)}
	q.recordEvent = q.add
	return q
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. It returns false, because every replica accepts webhooks, and emits
// events about refused webhooks.
func (q *eventQueue) NeedLeaderElection() bool { return false }

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

func (q *eventQueue) add(object runtime.Object, annotations map[string]string, eventtype, reason, message string) {
	// The caller may change the object afterwards.
	object = object.DeepCopyObject()
	select {
	case q.events <- func() { q.recorder.AnnotatedEventf(object, annotations, eventtype, reason, "%s", message) }:
	default:
		ctrl.Log.WithName("events").Info("Event dropped, the receiver does not keep up", "reason", reason)
	}
}
