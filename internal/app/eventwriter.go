package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	kuberecorder "k8s.io/client-go/tools/record"
	recordutil "k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// eventRetry is the backoff while the API server is unavailable, and eventPatience is how long to retry. It is used through DelayFunc,
// because functions that take a wait.Backoff stop when the delay reaches its cap.
var eventRetry = wait.Backoff{Duration: time.Second, Factor: 2, Cap: time.Minute, Steps: 15, Jitter: 0.1}

const eventPatience = 10 * time.Minute

// eventWriter is a record.EventRecorder that returns after the event has been written, or cannot be written. The recorder of client-go
// drops events after a burst of a thousand, but a Gate with ten thousand targets may emit more. Repeated events are combined as in
// client-go.
type eventWriter struct {
	recordEvent

	scheme     *runtime.Scheme
	sink       kuberecorder.EventSink
	correlator *kuberecorder.EventCorrelator
	clock      clock.PassiveClock
	// component is the component that emits the events.
	component string
	// retry calls try until it succeeds, fails permanently, or takes too long.
	retry func(try func(context.Context) (bool, error)) error
}

// newEventWriter returns an eventWriter that gives up when the context is done.
func newEventWriter(ctx context.Context, scheme *runtime.Scheme, sink kuberecorder.EventSink, component string) *eventWriter {
	now := clock.RealClock{}
	w := &eventWriter{
		scheme: scheme, sink: sink, correlator: kuberecorder.NewEventCorrelator(now), clock: now, component: component,
		retry: func(try func(context.Context) (bool, error)) error {
			ctx, cancel := context.WithTimeout(ctx, eventPatience)
			defer cancel()
			return eventRetry.DelayFunc().Until(ctx, true, true, try)
		},
	}
	w.recordEvent = w.record
	return w
}

func (w *eventWriter) record(object runtime.Object, annotations map[string]string, eventtype, reason, message string) {
	if err := w.write(object, annotations, eventtype, reason, message); err != nil {
		ctrl.Log.WithName("events").Error(err, "Event not recorded", "reason", reason)
	}
}

func (w *eventWriter) write(object runtime.Object, annotations map[string]string, eventtype, reason, message string) error {
	ref, err := reference.GetReference(w.scheme, object)
	if err != nil {
		return err
	}
	now := metav1.NewTime(w.clock.Now())
	namespace := ref.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	result, err := w.correlator.EventCorrelate(&corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: recordutil.GenerateEventName(ref.Name, now.UnixNano()), Namespace: namespace, Annotations: annotations},
		InvolvedObject: *ref, Reason: reason, Message: message, Type: eventtype,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: w.component}, ReportingController: w.component,
	})
	if err != nil || result.Skip {
		return err
	}
	return w.retry(func(context.Context) (bool, error) { return w.put(result) })
}

// put writes an event. It returns false if the write must be retried, and an error if a retry cannot help.
func (w *eventWriter) put(result *kuberecorder.EventCorrelateResult) (bool, error) {
	event := result.Event
	write := func() (*corev1.Event, error) {
		if event.Count > 1 {
			if written, err := w.sink.Patch(event, result.Patch); !recordutil.IsKeyNotFoundError(err) {
				return written, err
			}
		}
		event.ResourceVersion = "" // the event does not exist yet, or no longer exists
		return w.sink.Create(event)
	}
	written, err := write()
	if err == nil {
		w.correlator.UpdateState(written)
		return true, nil
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) && !apierrors.IsTooManyRequests(err) && status.ErrStatus.Code < http.StatusInternalServerError {
		return false, err
	}
	return false, nil
}
