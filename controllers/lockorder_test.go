package controllers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
)

// turns is an API server on which each request for a GateLock waits twice: before it is done, and
// with its answer. The lists of Locks do not wait.
type turns struct {
	client.Client
	mu      sync.Mutex
	waiting []*turn
	// writes are what was done of "production": what its share was then.
	writes []string
	// shown is the version of the GateLock that the cache has, the newest one if empty.
	shown string
}

// turn is a request that waits.
type turn struct {
	what string
	goOn chan error
}

func (s *turns) wait(what string) error {
	t := &turn{what, make(chan error)}
	s.mu.Lock()
	s.waiting = append(s.waiting, t)
	s.mu.Unlock()
	return <-t.goOn
}

func (s *turns) request(what string, do func() error) error {
	if err := s.wait(what); err != nil {
		return err
	}
	err := do()
	if lost := s.wait("answer to " + what); lost != nil {
		return lost
	}
	return err
}

func (s *turns) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	get := func() error { return s.Client.Get(ctx, key, obj, opts...) }
	if _, ok := obj.(*v1alpha1.GateLock); !ok {
		return get()
	}
	return s.request("get", get)
}

func (s *turns) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return s.request("update", func() error {
		err := s.Client.Update(ctx, obj, opts...)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.writes = append(s.writes, stateIn(obj.(*v1alpha1.GateLock)))
		}
		return err
	})
}

func (s *turns) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := s.Client.List(ctx, list, opts...)
	if cached, ok := list.(*metav1.PartialObjectMetadataList); ok && s.shown != "" {
		for i := range cached.Items {
			cached.Items[i].ResourceVersion = s.shown
		}
	}
	return err
}

// stateIn returns the state of "production" in a GateLock.
func stateIn(obj *v1alpha1.GateLock) string {
	share, has := lock.Read(&obj.Spec)["apps/production"]
	if !has {
		return "none"
	}
	return map[bool]string{true: "locked", false: "unlocked"}[share.Locked]
}

// ordered is a namespace "apps" with a GateLock in which "production" is locked.
type ordered struct {
	*testing.T
	*turns
	*Locks
	// opening is an order that another one is to follow.
	opening *LockWrites
}

func definitionOfLocks() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: gateLocks}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Storage: true}}
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	return crd
}

func newOrdered(t *testing.T) *ordered {
	t.Helper()
	obj := &v1alpha1.GateLock{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: v1alpha1.GateLockName}}
	lock.Put(&obj.Spec, "apps/production", lock.NewShare(true))
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &turns{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(definitionOfLocks(), obj).Build()}
	o := &ordered{T: t, turns: s, Locks: &Locks{Client: s, APIReader: s}}
	t.Cleanup(o.rest)
	o.sync()
	o.orders("production", "locked") // lists
	return o
}

func (o *ordered) sync() {
	o.Helper()
	if changed, err := o.Sync(o.Context()); err != nil || !changed {
		o.Fatalf("it changed is %t, %v", changed, err)
	}
}

// orders has a Gate change its share, and all go on until they wait.
func (o *ordered) orders(gate, state string) *LockWrites {
	shares := map[string]lock.Share{}
	if state != "none" {
		shares["apps"] = lock.NewShare(state == "locked")
	}
	writes := o.Put(o.Context(), "apps/"+gate, shares)
	synctest.Wait()
	return writes
}

func (o *ordered) now() *v1alpha1.GateLock {
	o.Helper()
	obj := &v1alpha1.GateLock{}
	if err := o.turns.Client.Get(o.Context(), client.ObjectKey{Namespace: "apps", Name: v1alpha1.GateLockName}, obj); err != nil {
		o.Fatal(err)
	}
	return obj
}

// anotherShard writes the GateLock.
func (o *ordered) anotherShard() {
	o.Helper()
	obj := o.now()
	lock.Put(&obj.Spec, "apps/theirs", lock.NewShare(!obj.Spec.Gates["apps/theirs"]))
	if err := o.turns.Client.Update(o.Context(), obj); err != nil {
		o.Fatal(err)
	}
}

// goOn has the request at an index go on, and all others until they wait.
func (o *ordered) goOn(i int, err error) {
	t := o.waiting[i]
	o.waiting = slices.Delete(o.waiting, i, i+1)
	t.goOn <- err
	synctest.Wait()
}

// lets has the first request that waits go on. It is what is expected.
func (o *ordered) lets(what ...string) {
	o.Helper()
	for _, what := range what {
		if len(o.waiting) == 0 || o.waiting[0].what != what {
			o.Fatalf("%d requests wait, the first one is not %s", len(o.waiting), what)
		}
		o.goOn(0, nil)
	}
}

// rest has all requests go on until there are none.
func (o *ordered) rest() {
	for len(o.waiting) > 0 {
		o.goOn(0, nil)
	}
}

// fails returns whether a change fails in the end.
func (o *ordered) fails(writes *LockWrites) bool {
	writes.wait(func() bool { return false })
	return writes.in("apps") != nil
}

func TestAChangeOfALockThatIsOutOfDateIsNotMade(t *testing.T) {
	for name, tc := range map[string]struct {
		// opens has the order to open under way, meanwhile what happens once it is to be closed.
		opens, meanwhile func(o *ordered)
		// writes are what happens to the share.
		writes []string
	}{
		"its answer to a read is slow": {opens: func(o *ordered) {
			o.anotherShard()
			o.opening = o.orders("production", "unlocked")
			o.lets("get")
		}, meanwhile: func(o *ordered) {
			o.goOn(1, nil)
			o.goOn(1, nil) // the newer one has read that there is nothing to do
		}},
		"its read is slow, and another Gate has read the lock": {opens: func(o *ordered) {
			o.anotherShard()
			o.orders("other", "none")
			o.opening = o.orders("production", "unlocked")
			o.goOn(1, nil)
			o.goOn(0, nil)
			o.goOn(1, nil) // the book is known, so that the newer one reads nothing
		}},
		"it waits behind a write": {opens: func(o *ordered) {
			o.orders("other", "locked")
			o.opening = o.orders("production", "unlocked")
		}, writes: []string{"locked"}},
		"its write is done": {opens: func(o *ordered) {
			o.opening = o.orders("production", "unlocked")
			o.lets("update")
		}, writes: []string{"unlocked", "locked"}},
		"its write is under way": {opens: func(o *ordered) {
			o.opening = o.orders("production", "unlocked")
		}, writes: []string{"unlocked", "locked"}},
		"its write is under way, and comes too late": {opens: func(o *ordered) {
			o.opening = o.orders("production", "unlocked")
			o.anotherShard()
		}},
		"its write fails": {opens: func(o *ordered) {
			o.opening = o.orders("production", "unlocked")
		}, meanwhile: func(o *ordered) { o.goOn(0, errors.New("broken")) }},
		"its write is done, and the answer is lost": {opens: func(o *ordered) {
			o.opening = o.orders("production", "unlocked")
			o.lets("update")
		}, meanwhile: func(o *ordered) { o.goOn(0, errors.New("broken")) }, writes: []string{"unlocked", "locked"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOrdered(t)
				tc.opens(o)
				closing := o.orders("production", "locked")
				if tc.meanwhile != nil {
					tc.meanwhile(o)
				}
				o.rest()
				if o.fails(closing) {
					t.Errorf("the newest change: %v", closing.in("apps"))
				}
				if !o.fails(o.opening) {
					t.Error("who ordered the change that is out of date is told that it is made")
				}
				if got := stateIn(o.now()); got != "locked" || !slices.Equal(o.writes, tc.writes) {
					t.Errorf("it is %s at last, after %v, want locked after %v", got, o.writes, tc.writes)
				}
			})
		})
	}
}

// What is under way when GateLocks are removed knows nothing of what is ordered once they are back.
func TestAChangeOfALockIsNotMadeOnceLocksWereInstalledAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrdered(t)
		o.orders("other", "locked") // its write is stuck
		o.orders("production", "unlocked")
		if err := o.Delete(t.Context(), definitionOfLocks()); err != nil {
			t.Fatal(err)
		}
		o.sync()
		if err := o.Create(t.Context(), definitionOfLocks()); err != nil {
			t.Fatal(err)
		}
		o.sync()
		o.orders("production", "locked")
		o.rest()
		if got := stateIn(o.now()); got != "locked" {
			t.Errorf("it is %s at last", got)
		}
	})
}

// Whatever is slow, fails or is lost, and whoever else writes: the last order counts.
func TestTheLastOrderOfAGateIsWhatItsLockHas(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { lastOrderCounts(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func lastOrderCounts(t *testing.T, random *rand.Rand) {
	o := newOrdered(t)
	last, want := map[string]*LockWrites{}, map[string]string{}
	for range 40 {
		switch step := random.IntN(10); {
		case step < 3:
			gate := []string{"production", "other"}[random.IntN(2)]
			want[gate] = []string{"locked", "unlocked", "none"}[random.IntN(3)]
			last[gate] = o.orders(gate, want[gate])
		case step == 3:
			o.anotherShard()
		case step == 4:
			o.shown = o.now().ResourceVersion
		case step == 5:
			time.Sleep(lockPatience)
		case len(o.waiting) > 0:
			var err error
			if random.IntN(6) == 0 {
				err = errors.New("broken")
			}
			o.goOn(random.IntN(len(o.waiting)), err)
		}
	}
	o.rest()
	for gate, writes := range last {
		for try := 0; o.fails(writes); try++ { // a Gate tries again, and waits for nothing after what was late
			if writes = o.orders(gate, want[gate]); try == 3 {
				t.Fatalf("%s: %v", gate, writes.in("apps"))
			}
			o.rest()
		}
	}
	shares := lock.Read(&o.now().Spec)
	for gate, want := range want {
		share, has := shares["apps/"+gate]
		if has != (want != "none") || share.Locked != (want == "locked") {
			t.Errorf("%s is to be %s: it has a share is %t, %+v", gate, want, has, share)
		}
	}
}
