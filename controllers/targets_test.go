package controllers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/crds"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Ten thousand objects take their time, which is not a failure.
func TestHowLongToWaitForTheObjectsOfAKind(t *testing.T) {
	for name, tc := range map[string]struct {
		fails, reads, want time.Duration
		err                error
	}{
		"it is slow":                    {-1, time.Minute, time.Minute, nil},
		"it fails at once and for good": {time.Millisecond, -1, time.Millisecond + view.ReadGrace, view.ErrNotReadable},
		"it fails once":                 {time.Millisecond, 2 * time.Second, 2 * time.Second, nil},
		"it fails after a while":        {time.Minute, -1, time.Minute + view.ReadGrace, view.ErrNotReadable},
		"it never says anything":        {-1, -1, view.ReadPatience, view.ErrNotReadable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gvk := schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
				synced := make(chan struct{})
				c := view.NewTargetCache(nil, nil, nil, nil)
				c.Kinds[gvk.GroupKind()] = view.NewWatchedKind(gvk, target.Definition{}, synced)
				if tc.fails >= 0 {
					time.AfterFunc(tc.fails, func() { c.Failed(gvk.GroupKind()) })
				}
				if tc.reads >= 0 {
					time.AfterFunc(tc.reads, func() { close(synced) })
				}
				time.AfterFunc(0, func() { c.Failed(schema.GroupKind{Group: "source.toolkit.fluxcd.io", Kind: "Bucket"}) })
				began := time.Now()
				read := make(chan struct{})
				c.WhenRead(gvk.GroupKind(), func() { close(read) })
				<-read
				err := c.Readable(t.Context(), target.Of(view.NewTarget(gvk)))
				if took := time.Since(began); took != tc.want || !errors.Is(err, tc.err) {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}

func TestTheVersionToWatchIsOneThatIsServed(t *testing.T) {
	const served, stored = true, true
	version := func(name string, served, stored bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: served, Storage: stored}
	}
	for name, tc := range map[string]struct {
		established apiextensionsv1.ConditionStatus
		versions    []apiextensionsv1.CustomResourceDefinitionVersion
		before      string
		want        string
	}{
		"that of storage": {"True", []apiextensionsv1.CustomResourceDefinitionVersion{
			version("v1", served, false), version("v2", served, stored), version("v3", served, false)}, "", "v2"},
		"the one before, although storage has moved on": {"True", []apiextensionsv1.CustomResourceDefinitionVersion{
			version("v1", served, false), version("v2", served, stored)}, "v1", "v1"},
		"another if the one before is gone": {"True", []apiextensionsv1.CustomResourceDefinitionVersion{
			version("v1", false, false), version("v2", served, stored)}, "v1", "v2"},
		"any if that of storage is not served": {"True", []apiextensionsv1.CustomResourceDefinitionVersion{
			version("v1", served, false), version("v2", false, stored)}, "", "v1"},
		"none if none is served":        {"True", []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false, stored)}, "", ""},
		"none before it is established": {"False", []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", served, stored)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Spec.Versions = tc.versions
			crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: tc.established}}
			if got := crds.ServedVersion(crd, tc.before); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

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
