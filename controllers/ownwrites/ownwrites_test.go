package ownwrites

import (
	"context"
	"reflect"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func gate(version string) *v1alpha1.Gate {
	return &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "production", UID: "a", ResourceVersion: version}}
}

var key = client.ObjectKeyFromObject(gate(""))

func TestVersionsOfReconciledObject(t *testing.T) {
	t.Parallel()
	v := &Versions[types.NamespacedName]{}
	check := func(behind, byOthers []string) {
		t.Helper()
		for _, version := range []string{"9", "10", "11", "12", "13", "14", "100"} {
			if got := v.IsBehind(key, version); got != slices.Contains(behind, version) {
				t.Errorf("IsBehind(%s): %t", version, got)
			}
			if got := v.IsByOthers(key, version); got != slices.Contains(byOthers, version) {
				t.Errorf("IsByOthers(%s): %t", version, got)
			}
		}
	}
	everything := []string{"9", "10", "11", "12", "13", "14", "100"}
	check(nil, everything)
	v.Reconciles(key, gate("10"))
	check([]string{"9"}, []string{"11", "12", "13", "14", "100"})
	v.Wrote(key, "11")
	v.Wrote(key, "13")
	check([]string{"9", "10", "11", "12"}, []string{"12", "14", "100"})
	v.Reconciles(key, gate("14"))
	check([]string{"9", "10", "11", "12", "13"}, []string{"100"})
	v.Evict(key)
	check(nil, everything)
}

func TestOlderReadDoesNotHideLaterWrite(t *testing.T) {
	t.Parallel()
	v := &Versions[types.NamespacedName]{}
	v.Reconciles(key, gate("10"))
	v.Wrote(key, "11")
	v.Reconciles(key, gate("10"))
	if !v.IsBehind(key, "10") {
		t.Error("version 10 counts as the latest")
	}
	v.Reconciles(key, gate("11"))
	if v.IsBehind(key, "11") {
		t.Error("version 11 counts as an old one")
	}
}

func TestVersionsOfWrittenObject(t *testing.T) {
	t.Parallel()
	v := &Versions[string]{}
	check := func(version string, behind, own bool) {
		t.Helper()
		if got := v.IsBehind("a", version); got != behind {
			t.Errorf("IsBehind(%s): %t", version, got)
		}
		if got := v.IsOwn("a", version); got != own {
			t.Errorf("IsOwn(%s): %t", version, got)
		}
	}
	check("10", false, false)
	v.Wrote("a", "10")
	v.Wrote("a", "12")
	check("10", true, false)
	check("12", false, true)
	check("13", false, false) // another client has written this version
	check("12", false, false)
	if n := len(v.objects); n > 0 {
		t.Errorf("%d objects", n)
	}
}

// evicted is a cache that records what it evicts.
type evicted []types.UID

func (e *evicted) Forget(uid types.UID) { *e = append(*e, uid) }

// lagging is a client whose reads return an older version of an object, or NotFound if that is nil.
type lagging struct {
	client.Client
	cached *v1alpha1.Gate
}

func (l *lagging) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if l.cached == nil {
		return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("gates").GroupResource(), key.Name)
	}
	l.cached.DeepCopyInto(obj.(*v1alpha1.Gate)) //nolint:forcetypeassert // there is no other
	return nil
}

func server(t *testing.T, objs ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).WithStatusSubresource(objs...).Build()
}

func TestReadIsNotOlderThanLastWrite(t *testing.T) {
	t.Parallel()
	api := server(t, gate("10"))
	cache, caches := &lagging{api, gate("10")}, &evicted{}
	c := &Client{Client: cache, Live: api, Versions: &Versions[types.NamespacedName]{}, Caches: []Cache{caches}}
	get := func() *v1alpha1.Gate {
		t.Helper()
		obj := &v1alpha1.Gate{}
		if err := c.Get(t.Context(), key, obj); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	for name, write := range map[string]func(*v1alpha1.Gate, client.Patch) error{
		"the object": func(g *v1alpha1.Gate, p client.Patch) error {
			g.Spec.Suspend = !g.Spec.Suspend
			return c.Patch(t.Context(), g, p)
		},
		"the status": func(g *v1alpha1.Gate, p client.Patch) error {
			g.Status.ObservedGeneration++
			return c.Status().Patch(t.Context(), g, p)
		},
	} {
		cache.cached = get()
		written := cache.cached.DeepCopy()
		if err := write(written, Locked(cache.cached)); err != nil {
			t.Fatal(err)
		}
		if got := get(); got.ResourceVersion != written.ResourceVersion {
			t.Errorf("%s: read version %s after writing %s", name, got.ResourceVersion, written.ResourceVersion)
		}
	}
	if len(*caches) > 0 {
		t.Errorf("evicted %q", *caches)
	}

	successor := gate("90")
	successor.UID = "b"
	cache.cached = successor
	get()
	if want := (evicted{"a"}); !reflect.DeepEqual(*caches, want) {
		t.Errorf("evicted %q after it was created again, want %q", *caches, want)
	}
	cache.cached = nil
	if err := c.Get(t.Context(), key, &v1alpha1.Gate{}); !apierrors.IsNotFound(err) {
		t.Errorf("read a deleted object: %v", err)
	}
	if want := (evicted{"a", "b"}); !reflect.DeepEqual(*caches, want) {
		t.Errorf("evicted %q after it was deleted, want %q", *caches, want)
	}
}

func TestWriteStatus(t *testing.T) {
	t.Parallel()
	unlessSuspended := func(_, latest *v1alpha1.Gate) bool { return !latest.Spec.Suspend }
	for name, tc := range map[string]struct {
		observed  int64
		unchanged func(base, latest *v1alpha1.Gate) bool
		// others changes the object between the read and the write.
		others   func(*v1alpha1.Gate)
		conflict bool
		writes   int
	}{
		"as it is":                           {observed: 1, unchanged: unlessSuspended},
		"another status":                     {observed: 2, unchanged: unlessSuspended, writes: 1},
		"others have set a label":            {observed: 2, unchanged: unlessSuspended, others: func(g *v1alpha1.Gate) { g.Labels = map[string]string{"a": "b"} }, writes: 2},
		"others have set a label, no repeat": {observed: 2, others: func(g *v1alpha1.Gate) { g.Labels = map[string]string{"a": "b"} }, conflict: true, writes: 1},
		"others have written the status":     {observed: 2, unchanged: unlessSuspended, others: func(g *v1alpha1.Gate) { g.Status.ObservedGeneration = 7 }, conflict: true, writes: 1},
		"others have suspended it":           {observed: 2, unchanged: unlessSuspended, others: func(g *v1alpha1.Gate) { g.Spec.Suspend = true }, conflict: true, writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := gate("")
			read.Status.ObservedGeneration = 1
			api := server(t, read)
			latest := func() *v1alpha1.Gate {
				g := &v1alpha1.Gate{}
				if err := api.Get(t.Context(), key, g); err != nil {
					t.Fatal(err)
				}
				return g
			}
			read = latest()
			if tc.others != nil {
				g := latest()
				tc.others(g)
				status := g.DeepCopy()
				if err := api.Update(t.Context(), g); err != nil {
					t.Fatal(err)
				}
				status.ResourceVersion = g.ResourceVersion
				if err := api.Status().Update(t.Context(), status); err != nil {
					t.Fatal(err)
				}
			}
			before, writes := latest(), 0
			w := Writer[*v1alpha1.Gate]{Base: read.DeepCopy(), Live: api, Unchanged: tc.unchanged, Client: interceptor.NewClient(api, interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					writes++
					return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
				},
			})}
			decided := read.DeepCopy()
			decided.Status.ObservedGeneration = tc.observed
			if err := w.WriteStatus(t.Context(), decided); apierrors.IsConflict(err) != tc.conflict || err != nil && !tc.conflict {
				t.Errorf("the error is %v", err)
			}
			got := latest()
			if writes != tc.writes || tc.conflict && got.ResourceVersion != before.ResourceVersion || !tc.conflict && got.Status.ObservedGeneration != tc.observed {
				t.Errorf("%d writes, version %s, was %s, status %+v", writes, got.ResourceVersion, before.ResourceVersion, got.Status)
			}
			if !tc.conflict && w.Base.ResourceVersion != got.ResourceVersion {
				t.Errorf("the base has version %s, the object %s", w.Base.ResourceVersion, got.ResourceVersion)
			}
			if !reflect.DeepEqual(got.Labels, before.Labels) {
				t.Errorf("labels %v", got.Labels)
			}
		})
	}
}

func TestPersistentConflictIsReturned(t *testing.T) {
	t.Parallel()
	api, writes := server(t, gate("")), 0
	w := Writer[*v1alpha1.Gate]{Base: gate("1"), Live: api, Unchanged: func(_, _ *v1alpha1.Gate) bool { return true }, Client: interceptor.NewClient(api, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			writes++
			return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("gates").GroupResource(), key.Name, nil)
		},
	})}
	if err := w.Write(t.Context(), func(*v1alpha1.Gate) bool { return true }); !apierrors.IsConflict(err) || writes != Retries+1 {
		t.Errorf("%d writes: %v", writes, err)
	}
	if err := w.Write(t.Context(), func(*v1alpha1.Gate) bool { return false }); err != nil || writes != Retries+1 {
		t.Errorf("%d writes: %v", writes, err)
	}
}

// Each kind has a status that the writer finds.
func TestStatusOfEachKind(t *testing.T) {
	t.Parallel()
	for _, obj := range []client.Object{
		&v1alpha1.Gate{}, &v1alpha1.GateException{}, &v1alpha1.GatedSource{}, &v1alpha1.GateReceiver{}, &v1alpha1.CalendarFeed{}, &v1alpha1.MachineCertificateRefresh{},
	} {
		if !reflect.ValueOf(statusPointer(obj)).MethodByName("DeepCopyInto").IsValid() {
			t.Errorf("%T has no status", obj)
		}
	}
}
