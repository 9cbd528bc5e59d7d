package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

// eventsOnly is a fake API server that has only events.
type eventsOnly struct {
	record.EventSink
	created, patched []*corev1.Event
	// answers are the results of the next writes, nil for success.
	answers []error
}

func (s *eventsOnly) answer() error {
	if len(s.answers) == 0 {
		return nil
	}
	err := s.answers[0]
	s.answers = s.answers[1:]
	return err
}

func (s *eventsOnly) Create(event *corev1.Event) (*corev1.Event, error) {
	if err := s.answer(); err != nil {
		return nil, err
	}
	s.created = append(s.created, event)
	return event, nil
}

func (s *eventsOnly) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) {
	if err := s.answer(); err != nil {
		return nil, err
	}
	s.patched = append(s.patched, event)
	return event, nil
}

// newRealWriter returns a writer that waits between its tries.
func newRealWriter(ctx context.Context, sink record.EventSink) *eventWriter {
	return newEventWriter(ctx, clientgoscheme.Scheme, sink, "gating-controller")
}

// newTestWriter returns a writer that tries a few times without a pause.
func newTestWriter(sink record.EventSink) *eventWriter {
	w := newRealWriter(context.Background(), sink)
	w.retry = func(try func(context.Context) (bool, error)) error {
		for range 4 {
			if done, err := try(context.Background()); done || err != nil {
				return err
			}
		}
		return errors.New("no more tries")
	}
	return w
}

func configMap(name string) *corev1.ConfigMap {
	object := &corev1.ConfigMap{}
	object.Namespace, object.Name = "apps", name
	return object
}

func TestNoEventOfTenThousandIsLost(t *testing.T) {
	sink := &eventsOnly{}
	w := newTestWriter(sink)
	for i := range 10000 {
		w.AnnotatedEventf(configMap(fmt.Sprint(i)), map[string]string{"gate": "a"}, corev1.EventTypeNormal, "GateClosed", "closed by %s", "a")
	}
	if len(sink.created) != 10000 {
		t.Fatalf("%d events", len(sink.created))
	}
	e := sink.created[9999]
	if e.InvolvedObject.Name != "9999" || e.InvolvedObject.Kind != "ConfigMap" || e.Namespace != "apps" || e.Message != "closed by a" ||
		e.Reason != "GateClosed" || e.Source.Component != "gating-controller" || e.Annotations["gate"] != "a" || e.Count != 1 {
		t.Errorf("%+v", e)
	}
}

func TestRepeatedEventIsCounted(t *testing.T) {
	sink := &eventsOnly{}
	w := newTestWriter(sink)
	for range 3 {
		w.Event(configMap("a"), corev1.EventTypeWarning, "HeldAgain", "resumed")
	}
	if len(sink.created) != 1 || len(sink.patched) != 2 || sink.patched[1].Count != 3 {
		t.Fatalf("created %v, patched %v", sink.created, sink.patched)
	}
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, "a")
	sink.answers = []error{gone}
	w.Event(configMap("a"), corev1.EventTypeWarning, "HeldAgain", "resumed")
	if len(sink.created) != 2 || sink.created[1].Count != 4 {
		t.Errorf("one that is gone is not made again: %v", sink.created)
	}
}

func TestEventIsRetriedOnTransientErrors(t *testing.T) {
	events := schema.GroupResource{Resource: "events"}
	for name, tc := range map[string]struct {
		answers []error
		written int
		left    int
	}{
		"the server is away":          {[]error{errors.New("connection refused"), errors.New("EOF")}, 1, 0},
		"the server is busy":          {[]error{apierrors.NewTooManyRequests("later", 1), apierrors.NewInternalError(errors.New("etcd"))}, 1, 0},
		"it is refused":               {[]error{apierrors.NewForbidden(events, "a", errors.New("no")), nil}, 0, 1},
		"the namespace goes":          {[]error{apierrors.NewInvalid(schema.GroupKind{Kind: "Event"}, "a", nil), nil}, 0, 1},
		"the server is away for long": {slices.Repeat([]error{errors.New("connection refused")}, 9), 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			sink := &eventsOnly{answers: tc.answers}
			newTestWriter(sink).Eventf(configMap("a"), corev1.EventTypeNormal, "GateOpened", "100%%")
			if len(sink.created) != tc.written || len(sink.answers) != tc.left {
				t.Errorf("%d written, %d answers left", len(sink.created), len(sink.answers))
			}
		})
	}
}

// The failures last for about seven minutes in one case, and for more than ten in the other.
func TestEventRetryIsBounded(t *testing.T) {
	for failures, written := range map[int]int{12: 1, 40: 0} {
		synctest.Test(t, func(t *testing.T) {
			sink := &eventsOnly{answers: slices.Repeat([]error{errors.New("connection refused")}, failures)}
			newRealWriter(t.Context(), sink).Event(configMap("a"), corev1.EventTypeNormal, "GateOpened", "opened")
			if len(sink.created) != written {
				t.Errorf("after %d failures %d written", failures, len(sink.created))
			}
		})
	}
}

func TestEventRetryEndsWithProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		sink := &eventsOnly{answers: slices.Repeat([]error{errors.New("connection refused")}, 40)}
		newRealWriter(ctx, sink).Event(configMap("a"), corev1.EventTypeNormal, "GateOpened", "opened")
		if len(sink.answers) != 37 {
			t.Errorf("%d answers left", len(sink.answers))
		}
	})
}

func TestEachRecorderHasOneQueue(t *testing.T) {
	stuck := &stuckRecorder{letGo: make(chan struct{}), got: make(chan string, 1)}
	sink := &eventsOnly{}
	slow, fast := newEventQueue(stuck), newEventQueue(newTestWriter(sink))
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 2)
	go func() { stopped <- slow.Start(ctx) }()
	toAll(slow, fast).Eventf(configMap("a"), corev1.EventTypeNormal, "GateOpened", "%s", "opened")
	toAll(slow, fast).Event(configMap("b"), corev1.EventTypeNormal, "GateOpened", "100%")
	go func() { stopped <- fast.Start(ctx) }()
	for len(fast.events) > 0 { // the other queue is still blocked
		if ctx.Err() != nil {
			t.Fatal("not written")
		}
	}
	close(stuck.letGo)
	<-stuck.got
	cancel()
	if err := errors.Join(<-stopped, <-stopped); err != nil {
		t.Error(err)
	}
	if len(sink.created) == 0 || sink.created[0].Message != "opened" {
		t.Errorf("%v", sink.created)
	}
}
