package controllers

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
	ctrl "sigs.k8s.io/controller-runtime"
)

// configMapWatches returns what watches one ConfigMap each, by its name: a Role with resourceNames is enough.
func configMapWatches(mgr ctrl.Manager) (func(types.NamespacedName, func()) configMapWatch, error) {
	c, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	return func(key types.NamespacedName, changed func()) configMapWatch { return newSingleWatch(c, key, changed) }, nil
}

// singleWatch is a configMapWatch.
type singleWatch struct {
	key      types.NamespacedName
	informer toolscache.SharedIndexInformer
	cancel   context.CancelFunc
	// broken says that the watch has failed, and has not begun again.
	broken atomic.Bool
}

func newSingleWatch(c corev1client.ConfigMapsGetter, key types.NamespacedName, changed func()) *singleWatch {
	named := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String()
		return o
	}
	w := &singleWatch{key: key}
	w.informer = toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.ConfigMaps(key.Namespace).List(ctx, named(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events, err := c.ConfigMaps(key.Namespace).Watch(ctx, named(o))
			if err == nil {
				w.broken.Store(false)
			}
			return events, err
		},
	}, &corev1.ConfigMap{}, 0, nil)
	// Neither fails before the informer runs.
	failed(w.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		if !w.broken.Swap(true) {
			changed()
		}
	}))
	_, err := w.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	failed(err)
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go w.informer.RunWithContext(ctx)
	return w
}

func (w *singleWatch) get() (*corev1.ConfigMap, bool) {
	if !w.informer.HasSynced() || w.broken.Load() {
		return nil, false
	}
	found, ok, err := w.informer.GetStore().GetByKey(w.key.String())
	if err != nil || !ok {
		return nil, false
	}
	configMap, ok := found.(*corev1.ConfigMap)
	return configMap, ok
}

func (w *singleWatch) stop() { w.cancel() }
