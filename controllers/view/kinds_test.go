package view

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Reading ten thousand objects takes long, which is not a failure.
func TestWaitForObjectsOfKind(t *testing.T) {
	for name, tc := range map[string]struct {
		fails, reads, want time.Duration
		err                error
	}{
		"it is slow":                    {-1, time.Minute, time.Minute, nil},
		"it fails at once and for good": {time.Millisecond, -1, time.Millisecond + readGrace, errNotReadable},
		"it fails once":                 {time.Millisecond, 2 * time.Second, 2 * time.Second, nil},
		"it fails after a while":        {time.Minute, -1, time.Minute + readGrace, errNotReadable},
		"it never says anything":        {-1, -1, readPatience, errNotReadable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gvk := schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
				synced := make(chan struct{})
				c := NewTargetCache(nil, nil, nil, nil)
				c.Kinds[gvk.GroupKind()] = newWatchedKind(gvk, target.Definition{}, synced)
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
				err := c.Readable(t.Context(), target.Of(NewTarget(gvk)))
				if took := time.Since(began); took != tc.want || !errors.Is(err, tc.err) {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}

func TestGatesAreFoundByDependency(t *testing.T) {
	g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{DependsOn: []v1alpha1.DependencyReference{
		{Kind: "Kustomization", Name: "staging"}, {Kind: "Deployment", Name: "web"}, {APIVersion: "helm.toolkit.fluxcd.io/v2beta1", Kind: "HelmRelease", Name: "canary", Namespace: "flagger"},
	}}}
	g.Namespace = "flux-system"
	if got, want := DependencyIndexKeys(g), []string{
		"Kustomization.kustomize.toolkit.fluxcd.io/flux-system/staging", "HelmRelease.helm.toolkit.fluxcd.io/flagger/canary",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var other client.Object = &v1alpha1.GateException{}
	if got := DependencyIndexKeys(other); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}
