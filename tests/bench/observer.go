package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

var kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}

// observer observes targets and Gates by its own watches. Of targets it reads only the metadata: the annotation with the names of the Gates
// is written together with spec.suspend, which is checked at the end.
type observer struct {
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	gates map[client.ObjectKey]*v1alpha1.Gate
	// waves have not reached all of their targets.
	waves []*wave
}

// wave is a transition in progress, observed target by target.
type wave struct {
	held    bool
	pending map[client.ObjectKey]bool
	// arrivals are the times at which targets were observed in the wanted state, in order.
	arrivals []time.Time
	done     chan struct{}
}

func observe(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (*observer, error) {
	ctx, cancel := context.WithCancel(ctx)
	o := &observer{cancel: cancel, gates: map[client.ObjectKey]*v1alpha1.Gate{}}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return o, err
	}
	typed, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return o, err
	}
	first, err := objects.Resource(kustomizations).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return o, err
	}
	if err := o.follow(ctx, first.ResourceVersion, objects.Resource(kustomizations).Watch, o.target); err != nil {
		return o, err
	}
	list := &v1alpha1.GateList{}
	if err := typed.List(ctx, list); err != nil {
		return o, err
	}
	for i := range list.Items {
		o.gate(watch.Event{Type: watch.Added, Object: &list.Items[i]})
	}
	return o, o.follow(ctx, list.ResourceVersion, func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		return typed.Watch(ctx, &v1alpha1.GateList{}, &client.ListOptions{Raw: &opts})
	}, o.gate)
}

// follow passes each object that is created, changed or deleted.
func (o *observer) follow(ctx context.Context, version string, begin cache.WatchFuncWithContext, see func(watch.Event)) error {
	w, err := toolswatch.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{WatchFuncWithContext: begin})
	if err != nil {
		return err
	}
	o.running.Go(func() {
		for event := range w.ResultChan() {
			if event.Type == watch.Added || event.Type == watch.Modified || event.Type == watch.Deleted {
				see(event)
			}
		}
	})
	return nil
}

func (o *observer) stop() {
	if o != nil {
		o.cancel()
		o.running.Wait()
	}
}

func (o *observer) target(event watch.Event) {
	now := time.Now()
	meta, ok := event.Object.(*metav1.PartialObjectMetadata)
	if !ok || event.Type == watch.Deleted {
		return
	}
	held := meta.Annotations[v1alpha1.HeldByAnnotation] != ""
	key := client.ObjectKey{Namespace: meta.Namespace, Name: meta.Name}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waves = slices.DeleteFunc(o.waves, func(w *wave) bool {
		if w.held == held && w.pending[key] {
			delete(w.pending, key)
			if w.arrivals = append(w.arrivals, now); len(w.pending) == 0 {
				close(w.done)
			}
		}
		return len(w.pending) == 0
	})
}

func (o *observer) gate(event watch.Event) {
	gate, ok := event.Object.(*v1alpha1.Gate)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if event.Type == watch.Deleted {
		delete(o.gates, client.ObjectKeyFromObject(gate))
	} else {
		o.gates[client.ObjectKeyFromObject(gate)] = gate
	}
}

// expect begins a wave. No target may have the wanted state already.
func (o *observer) expect(targets []client.ObjectKey, held bool) *wave {
	w := &wave{held: held, pending: map[client.ObjectKey]bool{}, done: make(chan struct{})}
	for _, key := range targets {
		w.pending[key] = true
	}
	if len(targets) == 0 {
		close(w.done)
		return w
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waves = append(o.waves, w)
	return w
}

// wait waits until all targets have the wanted state.
func (o *observer) wait(ctx context.Context, w *wave) error {
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(patience):
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Errorf("%d of %d targets have not reached the wanted state after %s", len(w.pending), len(w.pending)+len(w.arrivals), patience)
}

// isOver returns whether all targets have the wanted state.
func (w *wave) isOver() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// every waits until all Gates meet a condition according to the watch.
func (o *observer) every(ctx context.Context, gates []client.ObjectKey, what string, is func(*v1alpha1.Gate) bool) error {
	return o.until(ctx, gates, what, func(gate *v1alpha1.Gate) bool { return gate != nil && is(gate) })
}

// gone waits until none of the Gates exists.
func (o *observer) gone(ctx context.Context, gates []client.ObjectKey) error {
	return o.until(ctx, gates, "gone", func(gate *v1alpha1.Gate) bool { return gate == nil })
}

// until waits until all Gates meet a condition. A missing Gate is nil.
func (o *observer) until(ctx context.Context, gates []client.ObjectKey, what string, is func(*v1alpha1.Gate) bool) error {
	deadline := time.Now().Add(patience)
	for {
		missing := 0
		var one client.ObjectKey
		o.mu.Lock()
		for _, key := range gates {
			if !is(o.gates[key]) {
				missing, one = missing+1, key
			}
		}
		o.mu.Unlock()
		if missing == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d gates, such as %s, are not %s after %s", missing, one, what, patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
