package app

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// stuckRecorder blocks until it is released.
type stuckRecorder struct {
	record.EventRecorder
	letGo chan struct{}
	got   chan string
}

func (r *stuckRecorder) AnnotatedEventf(object runtime.Object, _ map[string]string, _, reason, format string, args ...any) {
	<-r.letGo
	r.got <- fmt.Sprintf("%s %s %s", object.(*corev1.ConfigMap).Name, reason, fmt.Sprintf(format, args...))
}

func TestStuckEventReceiverDelaysNoOther(t *testing.T) {
	recorder := &stuckRecorder{letGo: make(chan struct{}), got: make(chan string, maxQueuedEvents+2)}
	queue := newEventQueue(recorder)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- queue.Start(ctx) }()

	object := &corev1.ConfigMap{}
	object.Name = "before"
	queue.Eventf(object, corev1.EventTypeNormal, "First", "%d%%", 100)
	object.Name = "after"
	for range maxQueuedEvents + 100 {
		queue.Event(object, corev1.EventTypeNormal, "More", "100%")
	}
	close(recorder.letGo)
	if got := <-recorder.got; got != "before First 100%" {
		t.Errorf("the event is about the object as it was, got %q", got)
	}
	if got := <-recorder.got; got != "after More 100%" {
		t.Errorf("a message is not a format, got %q", got)
	}
	cancel()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
