package controllers

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
)

var errNotListed = errors.New("the connection is broken")

func TestInformerReportsUnlistableKind(t *testing.T) {
	t.Parallel()
	kind := schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}
	failed := make(chan schema.GroupKind, 1)
	unreadable := &toolscache.ListWatch{
		ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, errNotListed },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, errNotListed },
	}
	informer := newInformer(func(kind schema.GroupKind) {
		select {
		case failed <- kind:
		default:
		}
	})(unreadable, view.NewTarget(kind.WithVersion("v1")), 0, toolscache.Indexers{})
	go informer.RunWithContext(t.Context())
	select {
	case got := <-failed:
		if got != kind {
			t.Errorf("%s has failed, want %s", got, kind)
		}
	case <-time.After(10 * time.Second):
		t.Error("no kind has failed")
	}
}

func TestConcurrentCloseRequestIsHandled(t *testing.T) {
	with := func(annotations map[string]string) *v1alpha1.Gate {
		return &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	before := map[string]string{v1alpha1.CloseRequestedAtAnnotation: "2026-11-23T12:00:00Z", v1alpha1.CloseRequestedByAnnotation: "jane"}
	if (requestChanged{}).Update(event.UpdateEvent{ObjectOld: with(before), ObjectNew: with(before)}) {
		t.Error("no change is looked at")
	}
	for _, name := range []string{
		v1alpha1.OpenRequestedAtAnnotation, v1alpha1.CloseRequestedAtAnnotation, v1alpha1.CloseRequestedByAnnotation, v1alpha1.CloseReceivedAnnotation,
	} {
		after := maps.Clone(before)
		after[name] = "another"
		if !(requestChanged{}).Update(event.UpdateEvent{ObjectOld: with(before), ObjectNew: with(after)}) {
			t.Errorf("a change of %s is not looked at", name)
		}
	}
}
