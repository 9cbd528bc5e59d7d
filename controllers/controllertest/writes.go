package controllertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// ErrBroken is the error of a write that a test makes fail.
var ErrBroken = errors.New("the line is broken")

// Writes records the writes of a client, as "verb Kind/name". Tests can make writes fail, and run code before and after them.
type Writes struct {
	mu  sync.Mutex
	log []string
	n   int
	// Whole lists the writes whose response has the whole object instead of its metadata.
	Whole []string

	// Before is called before a write. If it returns an error, the write is not sent.
	Before func(write string) error
	// After is called after a successful write. Its error is returned to the caller.
	After func(write string) error
}

// Client returns a client whose writes are recorded.
func (w *Writes) Client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: listIndexed,
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return w.note("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return w.note("update", obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return w.note("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			verb := "patch"
			if patch.Type() == types.ApplyPatchType {
				verb = "apply"
			}
			return w.note(verb, obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return w.note("apply", obj, func() error { return c.Apply(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.note("patch-"+sub, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return w.note("apply-"+sub, obj, func() error { return c.SubResource(sub).Apply(ctx, obj, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return w.note("update-"+sub, obj, func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
	})
}

// ListsIndexed is a client whose lists support the indexes of the manager's cache.
type ListsIndexed struct{ client.WithWatch }

// List implements client.Client.
func (c ListsIndexed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return listIndexed(ctx, c.WithWatch, list, opts...)
}

// listIndexed lists Gates and exceptions by indexed fields, as the cache of the manager does.
func listIndexed(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	switch list.(type) {
	case *v1alpha1.GateList, *v1alpha1.GateExceptionList:
		if (&client.ListOptions{}).ApplyOptions(opts).FieldSelector != nil {
			return sharedCache.Cache.List(ctx, list, opts...)
		}
	}
	return c.List(ctx, list, opts...)
}

func (w *Writes) note(verb string, obj any, do func() error) error {
	kind, name := "", ""
	if named, ok := obj.(interface{ GetName() string }); ok {
		name = named.GetName()
	}
	switch obj := obj.(type) {
	case *v1alpha1.Gate:
		kind = v1alpha1.GateKind
	case *v1alpha1.GateException:
		kind = v1alpha1.GateExceptionKind
	case *v1alpha1.GateReceiver:
		kind = v1alpha1.GateReceiverKind
	case *v1alpha1.CalendarFeed:
		kind = v1alpha1.CalendarFeedKind
	case *v1alpha1.GatedSource:
		kind = v1alpha1.GatedSourceKind
	case *lockv1alpha1.GateLock:
		kind, name = lockv1alpha1.GateLockKind, obj.Namespace
	case *corev1.Secret:
		kind = "Secret"
	case *metav1.PartialObjectMetadata:
		kind = obj.Kind
	default:
		kind = obj.(interface{ GetKind() string }).GetKind() //nolint:forcetypeassert // all others are unstructured
	}
	write := fmt.Sprintf("%s %s/%s", verb, kind, name)
	w.mu.Lock()
	w.log = append(w.log, write)
	if _, whole := obj.(runtime.Unstructured); whole {
		w.Whole = append(w.Whole, write)
	}
	before, after := w.Before, w.After
	w.mu.Unlock()
	if before != nil {
		if err := before(write); err != nil {
			return err
		}
	}
	err := do()
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.n++
	w.mu.Unlock()
	if after != nil {
		return after(write)
	}
	return nil
}

// Count returns the number of writes.
func (w *Writes) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// Take returns the recorded writes that contain a substring, and clears the record.
func (w *Writes) Take(of string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := matching(w.log, of)
	w.log = nil
	return taken
}

// matching returns the entries that contain a substring.
func matching(all []string, of string) []string {
	var found []string
	for _, entry := range all {
		if strings.Contains(entry, of) {
			found = append(found, entry)
		}
	}
	return found
}

// Reset removes Before and After.
func (w *Writes) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Before, w.After = nil, nil
}

// Failing returns a hook that fails every write that contains a substring.
func Failing(of string) func(string) error {
	return func(write string) error {
		if strings.Contains(write, of) {
			return ErrBroken
		}
		return nil
	}
}

// Once returns a hook that calls do at the first write that contains a substring.
func Once(of string, do func() error) func(string) error {
	var done atomic.Bool
	return func(write string) error {
		if !strings.Contains(write, of) || done.Swap(true) {
			return nil
		}
		return do()
	}
}

// Conflict returns the error of the API server for a write on an outdated version.
func Conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "kustomizations"}, "apps", errors.New("injected"))
}

// Recorder records events as "type Kind/name reason: message".
type Recorder struct {
	mu     sync.Mutex
	Events []string
	// metadata has the metadata of the events.
	metadata []map[string]string
}

// Event implements record.EventRecorder.
func (r *Recorder) Event(obj runtime.Object, kind, reason, message string) {
	r.AnnotatedEventf(obj, nil, kind, reason, "%s", message)
}

// Eventf implements record.EventRecorder.
func (r *Recorder) Eventf(obj runtime.Object, kind, reason, format string, args ...any) {
	r.AnnotatedEventf(obj, nil, kind, reason, format, args...)
}

// AnnotatedEventf implements record.EventRecorder.
func (r *Recorder) AnnotatedEventf(obj runtime.Object, metadata map[string]string, kind, reason, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := obj.GetObjectKind().GroupVersionKind().Kind
	switch obj.(type) {
	case *v1alpha1.Gate:
		of = v1alpha1.GateKind
	case *v1alpha1.GateException:
		of = v1alpha1.GateExceptionKind
	case *v1alpha1.GatedSource:
		of = v1alpha1.GatedSourceKind
	}
	name := obj.(metav1.Object).GetName() //nolint:forcetypeassert // events are on objects
	r.Events = append(r.Events, fmt.Sprintf("%s %s/%s %s: %s", kind, of, name, reason, fmt.Sprintf(format, args...)))
	r.metadata = append(r.metadata, metadata)
}

// TakeMetadata returns the metadata of the only recorded event that contains of, and clears the record. It returns the keys with a prefix,
// without the prefix.
func (r *Recorder) TakeMetadata(t *testing.T, of, prefix string) map[string]string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []map[string]string
	for i, event := range r.Events {
		if strings.Contains(event, of) {
			found = append(found, map[string]string{})
			for key, value := range r.metadata[i] {
				if key, ok := strings.CutPrefix(key, prefix+"/"); ok {
					found[len(found)-1][key] = value
				}
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("want one event %q, got %q", of, r.Events)
	}
	r.Events, r.metadata = nil, nil
	return found[0]
}

// Take returns the recorded events that contain a substring, and clears the record.
func (r *Recorder) Take(of string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := matching(r.Events, of)
	r.Events, r.metadata = nil, nil
	return taken
}
