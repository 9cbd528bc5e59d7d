package webauth

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// ConfigMapWatch is a watch of one ConfigMap.
type ConfigMapWatch interface {
	// Latest returns the last observed ConfigMap, nil if it does not exist. It returns false if the ConfigMap has not been read yet.
	Latest() (*corev1.ConfigMap, bool)
	// Failed returns the error of a broken watch, nil if the watch works.
	Failed() error
	// Stop ends the watch.
	Stop()
}

// Source reads the content of pages from caches.
type Source struct {
	// Cache contains all Gates, GateExceptions and, if they are served, CalendarFeeds.
	Cache cache.Cache
	// Watch starts watching a ConfigMap that contains calendars of Gates. It calls a function after each change.
	Watch func(key types.NamespacedName, changed func()) ConfigMapWatch

	mu      sync.Mutex
	watches map[preview.ConfigMap]ConfigMapWatch
	// listeners are notified of changes of ConfigMaps.
	listeners map[*listener]bool
}

// listener is called after changes of ConfigMaps.
type listener struct{ changed func(namespace string) }

// Ready returns once Gates and exceptions have been read.
func (s *Source) Ready(ctx context.Context) error {
	for _, obj := range []client.Object{&v1alpha1.Gate{}, &v1alpha1.GateException{}} {
		if _, err := s.Cache.GetInformer(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// gates returns the Gates of a namespace, or of all namespaces if namespace is empty, sorted by namespace and name.
func (s *Source) gates(ctx context.Context, namespace string) ([]*v1alpha1.Gate, error) {
	list := &v1alpha1.GateList{}
	if err := s.Cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	gates := make([]*v1alpha1.Gate, len(list.Items))
	for i := range list.Items {
		gates[i] = &list.Items[i]
	}
	slices.SortFunc(gates, func(a, b *v1alpha1.Gate) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	if namespace == "" {
		s.evict(preview.FromCluster(gates, nil).ConfigMaps())
	}
	return gates, nil
}

// exceptions returns the GateExceptions of a namespace, or of all namespaces if namespace is empty, sorted by namespace and name.
func (s *Source) exceptions(ctx context.Context, namespace string) ([]*v1alpha1.GateException, error) {
	list := &v1alpha1.GateExceptionList{}
	if err := s.Cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	exceptions := make([]*v1alpha1.GateException, len(list.Items))
	for i := range list.Items {
		exceptions[i] = &list.Items[i]
	}
	slices.SortFunc(exceptions, func(a, b *v1alpha1.GateException) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return exceptions, nil
}

// calendars returns the CalendarFeeds of a namespace.
func (s *Source) calendars(ctx context.Context, namespace string) ([]v1alpha1.CalendarFeed, error) {
	list := &v1alpha1.CalendarFeedList{}
	err := s.Cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// configMap returns a ConfigMap. If the ConfigMap does not exist, or the controller is not permitted to read it, broken is the reason to
// show to the viewer. err is set if it was not read in time.
func (s *Source) configMap(ctx context.Context, name preview.ConfigMap) (found *corev1.ConfigMap, broken, err error) {
	watch := s.watch(name)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := wait.PollUntilContextCancel(ctx, readInterval, true, func(context.Context) (known bool, _ error) {
		if apierrors.IsForbidden(watch.Failed()) {
			broken = errors.New(msgConfigMapForbidden)
			return true, nil
		}
		found, known = watch.Latest()
		return known, nil
	}); err != nil {
		return nil, nil, refuse(http.StatusServiceUnavailable, msgCalendarUnread)
	}
	if found == nil && broken == nil {
		broken = errors.New(msgConfigMapMissing)
	}
	return found, broken, nil
}

func (s *Source) watch(name preview.ConfigMap) ConfigMapWatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches == nil {
		s.watches = map[preview.ConfigMap]ConfigMapWatch{}
	}
	if s.watches[name] == nil {
		s.watches[name] = s.Watch(types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, func() { s.notify(name.Namespace) })
	}
	return s.watches[name]
}

// evict stops watching ConfigMaps that are not in needed.
func (s *Source) evict(needed []preview.ConfigMap) {
	var unused []ConfigMapWatch
	s.mu.Lock()
	for name, watch := range s.watches {
		if !slices.Contains(needed, name) {
			delete(s.watches, name)
			unused = append(unused, watch)
		}
	}
	s.mu.Unlock()
	for _, watch := range unused {
		watch.Stop()
	}
}

// notify notifies all listeners that a ConfigMap in the namespace has changed.
func (s *Source) notify(namespace string) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.listeners))
	s.mu.Unlock()
	for _, l := range all {
		l.changed(namespace)
	}
}

// Changes calls a function after each change of a Gate, an exception or a calendar, until the context ends.
func (s *Source) Changes(ctx context.Context, changed func(namespace string)) error {
	defer s.listen(changed)()
	notify := func(obj any) {
		if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if obj, ok := obj.(client.Object); ok {
			changed(obj.GetNamespace())
		}
	}
	for _, kind := range []client.Object{&v1alpha1.Gate{}, &v1alpha1.GateException{}} {
		informer, err := s.Cache.GetInformer(ctx, kind)
		if err != nil {
			return err
		}
		handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, isInInitialList bool) {
				if !isInInitialList {
					notify(obj)
				}
			},
			UpdateFunc: func(before, after any) {
				a, ok1 := before.(client.Object)
				b, ok2 := after.(client.Object)
				if !ok1 || !ok2 || a.GetResourceVersion() != b.GetResourceVersion() {
					notify(after)
				}
			},
			DeleteFunc: notify,
		})
		if err != nil {
			return err
		}
		defer informer.RemoveEventHandler(handler) //nolint:errcheck // it is there, or the cache has stopped
	}
	<-ctx.Done()
	return nil
}

// listen calls a function after each change of a ConfigMap, until end is called.
func (s *Source) listen(changed func(namespace string)) (end func()) {
	l := &listener{changed}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners == nil {
		s.listeners = map[*listener]bool{}
	}
	s.listeners[l] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, l)
	}
}

// Stop ends all watches.
func (s *Source) Stop() { s.evict(nil) }
