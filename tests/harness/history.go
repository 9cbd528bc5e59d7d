package harness

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// History has all versions of objects since it was started, in the order in which they were stored. A watch reports every version.
type History struct {
	mu       sync.Mutex
	versions []*unstructured.Unstructured
}

// Record starts the History of the objects of a kind in the namespace.
func (w *World) Record(kind schema.GroupVersionKind) *History {
	w.Helper()
	h := &History{}
	w.Follow(kind, func(version *unstructured.Unstructured) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.versions = append(h.versions, version)
	})
	return h
}

// Follow calls a function with each new version of the objects of a kind in the namespace, in the order in which they are stored, until the
// test ends.
func (w *World) Follow(kind schema.GroupVersionKind, do func(*unstructured.Unstructured)) {
	w.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	w.Must(w.Client.List(w.Context(), list, client.InNamespace(w.Namespace)))
	watcher, err := watchtools.NewRetryWatcherWithContext(w.Context(), list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return w.Client.Watch(ctx, list.DeepCopy(), client.InNamespace(w.Namespace), &client.ListOptions{Raw: &options})
		},
	})
	w.Must(err)
	go func() {
		for event := range watcher.ResultChan() {
			if u, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Bookmark {
				do(u)
			}
		}
	}()
	w.Cleanup(watcher.Stop)
}

// All returns the versions so far.
func (h *History) All() []*unstructured.Unstructured {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*unstructured.Unstructured{}, h.versions...)
}
