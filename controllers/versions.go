package controllers

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// foreignDelay is when an object is looked at whose status somebody else wrote. Two who
// disagree would else write as fast as they can.
const foreignDelay = time.Second

// versions knows what the status of each object of a kind rests on. A reconciliation that
// finds its status as it is to be writes nothing. But the cache may be behind by seconds,
// in which case the API server has another status: that which was written last, or what the
// process wrote that was in charge before. Nobody would ever mend it. The zero value is
// ready for use.
type versions struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]objectVersions
}

// objectVersions are resource versions of one object.
type objectVersions struct {
	// base is what it was reconciled on last.
	base string
	// own are those that were written since.
	own []string
}

// reconciles notes the version that an object is reconciled on from now on.
func (v *versions) reconciles(obj client.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.objects == nil {
		v.objects = map[types.NamespacedName]objectVersions{}
	}
	key, base := client.ObjectKeyFromObject(obj), obj.GetResourceVersion()
	own := slices.DeleteFunc(v.objects[key].own, func(own string) bool { return !older(base, own) })
	v.objects[key] = objectVersions{base: base, own: own}
}

func (v *versions) wrote(obj client.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.objects[client.ObjectKeyFromObject(obj)]; ok {
		known.own = append(known.own, obj.GetResourceVersion())
		v.objects[client.ObjectKeyFromObject(obj)] = known
	}
}

func (v *versions) forget(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.objects, key)
}

// behind returns whether an object is older than what was read or written of it before.
func (v *versions) behind(obj client.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.objects[client.ObjectKeyFromObject(obj)]
	return ok && older(obj.GetResourceVersion(), append([]string{known.base}, known.own...)...)
}

// foreign returns whether somebody else wrote an object since it was reconciled last.
func (v *versions) foreign(obj client.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, version := v.objects[client.ObjectKeyFromObject(obj)], obj.GetResourceVersion()
	return version != known.base && !older(version, known.base) && !slices.Contains(known.own, version)
}

// older returns whether a resource version is older than one of others.
func older(version string, than ...string) bool {
	return slices.ContainsFunc(than, func(other string) bool {
		order, err := resourceversion.CompareResourceVersion(version, other)
		return err == nil && order < 0
	})
}

// handler asks for a reconciliation of what got its status from somebody else.
func (v *versions) handler() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if v.foreign(e.ObjectNew) && !apiequality.Semantic.DeepEqual(statusOf(e.ObjectOld), statusOf(e.ObjectNew)) {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}, foreignDelay)
		}
	}}
}

func statusOf(obj client.Object) any {
	switch obj := obj.(type) {
	case *v1alpha1.Gate:
		return obj.Status
	case *v1alpha1.GateException:
		return obj.Status
	}
	return nil
}

// ownWrites is a client for the objects whose versions are known: what it reads is never
// older than what it wrote.
type ownWrites struct {
	client.Client
	live     client.Reader
	versions *versions
}

// Get implements client.Client. It asks the API server if the cache is behind.
func (c ownWrites) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, opts...)
	switch {
	case apierrors.IsNotFound(err):
		c.versions.forget(key)
	case err == nil && c.versions.behind(obj):
		reflect.ValueOf(obj).Elem().SetZero() // what the answer lacks would stay
		return c.live.Get(ctx, key, obj, opts...)
	}
	return err
}

// Patch implements client.Client.
func (c ownWrites) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	err := c.Client.Patch(ctx, obj, patch, opts...)
	if err == nil {
		c.versions.wrote(obj)
	}
	return err
}

// Status implements client.Client.
func (c ownWrites) Status() client.SubResourceWriter {
	return ownStatus{c.Client.Status(), c.versions}
}

// ownStatus is the client of the status.
type ownStatus struct {
	client.SubResourceWriter
	versions *versions
}

// Patch implements client.SubResourceWriter.
func (c ownStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	err := c.SubResourceWriter.Patch(ctx, obj, patch, opts...)
	if err == nil {
		c.versions.wrote(obj)
	}
	return err
}
