package controllers

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/fluxcd/gating-controller/controllers/view"
)

func TestAnInformerReportsTheKindThatCannotBeListed(t *testing.T) {
	t.Parallel()
	kind := schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}
	failed := make(chan schema.GroupKind, 1)
	unreadable := &toolscache.ListWatch{
		ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, errBroken },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, errBroken },
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
