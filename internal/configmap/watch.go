// Package configmap watches single ConfigMaps by name, so that a Role with resourceNames is enough.
package configmap

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// Watch is a watch of one ConfigMap.
type Watch struct {
	key      types.NamespacedName
	informer toolscache.SharedIndexInformer
	cancel   context.CancelFunc
	// failed is the error of a failed watch, nil once the watch has restarted.
	failed atomic.Pointer[error]
}

// Metadata is a trim function for NewWatch that keeps only the fields that identify a version of a
// ConfigMap.
func Metadata(c *corev1.ConfigMap) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion}}
}

// NewWatch starts watching a ConfigMap, and stores the result of trim, or the whole ConfigMap if trim is nil. It calls changed when the
// ConfigMap has changed, or when the watch has failed.
func NewWatch(c corev1client.ConfigMapsGetter, key types.NamespacedName, trim func(*corev1.ConfigMap) *corev1.ConfigMap, changed func()) *Watch {
	named := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String()
		return o
	}
	w := &Watch{key: key}
	w.informer = toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.ConfigMaps(key.Namespace).List(ctx, named(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events, err := c.ConfigMaps(key.Namespace).Watch(ctx, named(o))
			if err == nil {
				w.failed.Store(nil)
			}
			return events, err
		},
	}, &corev1.ConfigMap{}, 0, nil)
	err := w.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		if w.failed.Swap(&err) == nil {
			changed()
		}
	})
	if err == nil && trim != nil {
		err = w.informer.SetTransform(func(obj any) (any, error) {
			if configMap, ok := obj.(*corev1.ConfigMap); ok {
				return trim(configMap), nil
			}
			return obj, nil
		})
	}
	if err == nil {
		_, err = w.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
		})
	}
	if err != nil {
		panic(err) // none of these calls fails before the informer runs
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go w.informer.RunWithContext(ctx)
	return w
}

// Get returns the ConfigMap. It returns false if the ConfigMap must be read from the API server, because it does not exist, has not been
// read yet, or the watch has failed.
func (w *Watch) Get() (*corev1.ConfigMap, bool) {
	found, known := w.Latest()
	return found, known && found != nil && w.Failed() == nil
}

// Latest returns the last observed ConfigMap, nil if it does not exist. It returns false if the ConfigMap has not been read yet.
func (w *Watch) Latest() (*corev1.ConfigMap, bool) {
	if !w.informer.HasSynced() {
		return nil, false
	}
	found, _, err := w.informer.GetStore().GetByKey(w.key.String())
	if err != nil {
		return nil, false
	}
	configMap, _ := found.(*corev1.ConfigMap)
	return configMap, true
}

// Failed returns the error of a failed watch, nil if the watch works.
func (w *Watch) Failed() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Stop ends the watch.
func (w *Watch) Stop() { w.cancel() }
