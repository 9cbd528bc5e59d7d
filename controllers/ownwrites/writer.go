package ownwrites

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Retries bounds how often a write is repeated after conflicts. After that, the queue backs off.
const Retries = 5

// Raced returns whether a write failed because another client has written or deleted the object since it was read.
func Raced(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// Locked returns a patch that fails if the object has changed since it was read.
func Locked(read client.Object) client.Patch {
	return client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
}

// Object is a typed object of type T, a pointer to a struct with a field Status.
type Object[T any] interface {
	client.Object
	DeepCopy() T
}

// Writer writes one object. Each write is conditional on the version that was last read or written.
type Writer[T Object[T]] struct {
	// Client writes the object.
	Client client.Client
	// Base is the object as it was last read or written. It must not be changed.
	Base T
	// Live reads from the API server after a conflict. The write is repeated if the status has not changed and Unchanged returns true.
	// Unchanged returns whether two versions differ only in fields that the write does not depend on. If Unchanged is nil, no write is
	// repeated.
	Live      client.Reader
	Unchanged func(base, latest T) bool
}

// Write applies a change to the metadata of the object and writes it. If change returns false, it writes nothing.
func (w *Writer[T]) Write(ctx context.Context, change func(T) bool) error {
	return w.write(ctx, change, func(obj T) error {
		return w.Client.Patch(ctx, obj, Locked(w.Base), client.FieldOwner(v1alpha1.FieldManager))
	})
}

// WriteStatus writes the status of an object if it differs from the status that was last read or written. It is a single write, so that
// no client acts on a partial status.
func (w *Writer[T]) WriteStatus(ctx context.Context, decided T) error {
	if equality.Semantic.DeepEqual(statusPointer(w.Base), statusPointer(decided)) {
		return nil
	}
	return w.write(ctx, func(obj T) bool {
		reflect.ValueOf(statusPointer(decided)).MethodByName("DeepCopyInto").Call([]reflect.Value{reflect.ValueOf(statusPointer(obj))})
		return true
	}, func(obj T) error {
		return w.Client.Status().Patch(ctx, obj, Locked(w.Base), client.FieldOwner(v1alpha1.FieldManager))
	})
}

// write changes and patches a copy of the object. After a conflict, it starts over with the latest version, unless another process has
// changed the status or another field that the change depends on.
func (w *Writer[T]) write(ctx context.Context, change func(T) bool, patch func(T) error) error {
	for retry := 0; ; retry++ {
		written := w.Base.DeepCopy()
		if !change(written) {
			return nil
		}
		err := patch(written)
		if err == nil {
			w.Base = written
			return nil
		}
		if !apierrors.IsConflict(err) || retry == Retries || w.Unchanged == nil {
			return err
		}
		latest := w.Base.DeepCopy()
		reflect.ValueOf(latest).Elem().SetZero()
		if err := w.Live.Get(ctx, client.ObjectKeyFromObject(w.Base), latest); err != nil {
			return err
		}
		if latest.GetUID() != w.Base.GetUID() || !equality.Semantic.DeepEqual(statusPointer(latest), statusPointer(w.Base)) || !w.Unchanged(w.Base, latest) {
			return err
		}
		w.Base = latest
	}
}

// statusPointer returns a pointer to the status of an object.
func statusPointer(obj client.Object) any {
	return reflect.ValueOf(obj).Elem().FieldByName("Status").Addr().Interface()
}
