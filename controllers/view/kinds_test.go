package view

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
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

// If the lookup returned an error, the controller would end at its start, and nothing would be held.
func TestUnreadableSchemaAffectsOnlyItsKind(t *testing.T) {
	kinds, err := target.ParseKinds([]string{"batch/CronJob"})
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "batch", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}, meta.RESTScopeNamespace)
	for name, tc := range map[string]struct {
		refusal error
		isFault bool
	}{
		"forbidden":   {apierrors.NewForbidden(schema.GroupResource{Resource: "openapi"}, "", nil), true},
		"not found":   {apierrors.NewNotFound(schema.GroupResource{Resource: "openapi"}, ""), true},
		"unavailable": {apierrors.NewServiceUnavailable("starting"), false}, // a retry may succeed
	} {
		d := Definitions{Mapper: mapper, Document: func(context.Context, schema.GroupVersion) ([]byte, error) { return nil, tc.refusal }}
		f, err := d.FindBuiltIn(t.Context(), kinds[0])
		if strings.HasPrefix(string(f.Fault), "the schema of kind CronJob of batch cannot be read: ") != tc.isFault || (err == nil) != tc.isFault {
			t.Errorf("%s: got %v and %q", name, err, f.Fault)
		}
	}
}

// gates is a reader of Gates in memory. Lists are empty, as in the cache of another shard.
type gates struct {
	client.Reader
	objects map[string]*v1alpha1.Gate
}

func (gates) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (r gates) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	found := r.objects[key.String()]
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "gates"}, key.Name)
	}
	if into, ok := obj.(*v1alpha1.Gate); ok {
		found.DeepCopyInto(into)
	}
	return nil
}

// The terms for a Certificate include those of a Gate of another shard. A Gate that does not exist releases it.
func TestGatesOfOtherShardsCount(t *testing.T) {
	strict := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Certificates: &v1alpha1.CertificatePolicy{Strict: true}}}
	index := &GateIndex{Reader: gates{}, APIReader: gates{objects: map[string]*v1alpha1.Gate{"shop/strict": strict}}}
	www := &target.Object{Unstructured: *NewTarget(target.Certificate.WithVersion("v1"))}
	www.SetNamespace("shop")
	www.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: "shop/gone,shop/strict"})
	found, err := index.For(t.Context(), www, noon)
	if err != nil || len(found) != 2 || found[0].Effect != verdict.Open || found[1].Effect != verdict.OtherShard || !verdict.Terms(found).Strict {
		t.Errorf("got %+v, %v", found, err)
	}
}
