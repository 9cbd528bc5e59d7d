package webauth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/budget"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/ui"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// looks are the targets of Gates as they were seen last, for all viewers.
type looks struct {
	// turn is whose Gate is looked at, budget how often any is.
	turn   *semaphore.Weighted
	budget *budget.Budget

	mu   sync.Mutex
	seen map[types.UID]*look
}

func newLooks() *looks {
	return &looks{turn: semaphore.NewWeighted(1), budget: budget.New(lookShare, lookBurst), seen: map[types.UID]*look{}}
}

// look is what was seen of a Gate.
type look struct {
	lines []line
	notes []string
	until time.Time
}

// errLooks is for a Gate that others leave no time for.
var errLooks = errors.New("others look at so many gates that the targets of this one cannot be read now: load the page again in a moment")

// line is a target with what somebody has to be allowed to see of it.
type line struct {
	ui.Target
	resource schema.GroupResource
	// source is that of the revision that waits, empty if there is none.
	source schema.GroupResource
}

// targetsOf returns the targets of a Gate that are not free, as they were seen a moment ago.
func (w *Wall) targetsOf(ctx context.Context, g *v1alpha1.Gate) (*look, error) {
	if known := w.looks.get(g.UID, w.Clock.Now()); known != nil {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if err := w.looks.turn.Acquire(ctx, 1); err != nil {
		return nil, errLooks
	}
	defer w.looks.turn.Release(1)
	if known := w.looks.get(g.UID, w.Clock.Now()); known != nil {
		return known, nil
	}
	if err := w.looks.wait(ctx); err != nil {
		return nil, errLooks
	}
	begin, seen := w.Clock.Now(), &look{}
	err := w.look(ctx, g, seen)
	now := w.Clock.Now()
	took := now.Sub(begin)
	if w.looks.budget.Took(took); err != nil {
		return nil, err
	}
	seen.until = now.Add(max(lookInterval, time.Duration(float64(took)/lookShare)))
	w.looks.put(g.UID, seen, now)
	return seen, nil
}

// wait waits until a Gate may be looked at.
func (l *looks) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	return l.budget.Wait(ctx)
}

func (l *looks) get(gate types.UID, now time.Time) *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.seen[gate]; known != nil && now.Before(known.until) {
		return known
	}
	return nil
}

func (l *looks) put(gate types.UID, seen *look, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.seen, func(_ types.UID, known *look) bool { return !now.Before(known.until) })
	if len(l.seen) >= maxLooks { // it is looked at again when somebody asks
		delete(l.seen, slices.MinFunc(slices.Collect(maps.Keys(l.seen)), func(a, b types.UID) int { return l.seen[a].until.Compare(l.seen[b].until) }))
	}
	l.seen[gate] = seen
}

// look looks at the objects of all kinds that a Gate may govern.
func (w *Wall) look(ctx context.Context, g *v1alpha1.Gate, seen *look) error {
	namespaces := []string{g.Namespace}
	for _, ref := range g.Spec.Targets {
		if ref.Namespace != "" && !slices.Contains(namespaces, ref.Namespace) {
			namespaces = append(namespaces, ref.Namespace)
		}
	}
	if slices.ContainsFunc(g.Spec.Targets, func(ref v1alpha1.TargetReference) bool { return ref.SpansNamespaces() }) {
		namespaces = []string{metav1.NamespaceAll}
	}
	known := explain.Known{Gates: []*v1alpha1.Gate{g}, Namespaces: []string{}, Labels: w.labels(ctx), Own: w.Own, Now: w.Clock.Now()}
	reach := verdict.Scope{Own: known.Own, Labels: known.Labels}
	sources := &sources{Wall: w, known: map[explain.Ref]*unstructured.Unstructured{}}
	for _, adapter := range target.All() {
		mapping, err := w.Mapper.RESTMapping(adapter.GroupKind())
		if meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return err
		}
		for _, namespace := range namespaces {
			if err := w.each(ctx, mapping, namespace, func(obj *unstructured.Unstructured) (goOn bool) {
				if !reach.Governs(g, obj) && !slices.Contains(verdict.HeldBy(obj), g.Namespace+"/"+g.Name) {
					return true
				}
				if len(seen.lines) >= maxLooked {
					seen.notes = append(seen.notes, fmt.Sprintf("there are more targets than %d: the others are only counted", maxLooked))
					return false
				}
				e := explain.Explain(obj, known)
				state, listed := explain.StateTo(e)
				if listed {
					seen.lines = append(seen.lines, sources.lineOf(ctx, obj, state, mapping, known.Now))
				}
				return true
			}); err != nil {
				seen.notes = append(seen.notes, fmt.Sprintf("%s cannot be read: %s", mapping.Resource.GroupResource(), forViewers(err)))
			}
		}
	}
	slices.SortStableFunc(seen.lines, func(a, b line) int { return rank(b) - rank(a) })
	return ctx.Err()
}

// forViewers is an error as a viewer may see it: the API server names the controller and its rights.
func forViewers(err error) error {
	if apierrors.IsForbidden(err) {
		return errors.New("the controller may not")
	}
	return err
}

// rank is higher for what a list has first.
func rank(l line) int {
	switch {
	case l.State == string(explain.Held) && l.IsFresh():
		return 2
	case l.State == string(explain.Held):
		return 1
	}
	return 0
}

// each calls a function with each object of a kind in a namespace, a page at a time, until it returns false.
func (w *Wall) each(ctx context.Context, kind *meta.RESTMapping, namespace string, do func(*unstructured.Unstructured) bool) error {
	opts := &client.ListOptions{Namespace: namespace, Limit: 500}
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersionKind.GroupVersion().WithKind(kind.GroupVersionKind.Kind + "List"))
		if err := w.Live.List(ctx, list, opts); err != nil {
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) { // it was there a moment ago
				return nil
			}
			return err
		}
		for i := range list.Items {
			if !do(&list.Items[i]) {
				return nil
			}
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return nil
		}
	}
}

// sources are those of objects, each read once.
type sources struct {
	*Wall
	known map[explain.Ref]*unstructured.Unstructured
}

// lineOf says what an object is and what waits behind it.
func (s *sources) lineOf(ctx context.Context, obj *unstructured.Unstructured, state explain.State, mapping *meta.RESTMapping, now time.Time) line {
	l := line{resource: mapping.Resource.GroupResource()}
	var source *unstructured.Unstructured
	if ref, ok := explain.SourceOf(obj); ok && state.IsHeld() {
		source, l.source = s.get(ctx, ref)
	}
	if state.IsHeld() && explain.IsHeld(obj) {
		state = explain.Held
	}
	l.Target = ui.Target{Waiting: explain.Wait(obj, source, now), State: string(state)}
	return l
}

// get returns a source, nil if it cannot be had, and its resource.
func (s *sources) get(ctx context.Context, ref explain.Ref) (*unstructured.Unstructured, schema.GroupResource) {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	mapping, err := s.Mapper.RESTMapping(schema.GroupKind{Group: group, Kind: ref.Kind})
	if err != nil {
		return nil, schema.GroupResource{}
	}
	resource := mapping.Resource.GroupResource()
	if source, ok := s.known[ref]; ok || len(s.known) >= maxSources {
		return source, resource
	}
	source := &unstructured.Unstructured{}
	source.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := s.Live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, source); err != nil {
		source = nil
	}
	s.known[ref] = source
	return source, resource
}

// Targets implements ui.Reader.
func (v *viewer) Targets(ctx context.Context, g *v1alpha1.Gate) (targets []ui.Target, notes []string, err error) {
	seen, err := v.targetsOf(ctx, g)
	if errors.Is(err, errLooks) {
		return nil, []string{err.Error()}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	hidden := map[string]bool{}
	for _, l := range seen.lines {
		may, err := v.mayRead(ctx, "list", l.resource, l.Waiting.Target.Namespace, "")
		if err != nil {
			return nil, nil, err
		}
		if !may {
			hidden[l.resource.String()] = true
			continue
		}
		t := l.Target
		if ref := t.Source; ref != nil && !l.source.Empty() {
			if may, err = v.mayRead(ctx, "get", l.source, ref.Namespace, ref.Name); err != nil {
				return nil, nil, err
			}
			if !may && t.Reason != explain.Passes {
				t.Reason, t.Waits, t.Since = explain.SourceUnknown, "", nil
			}
		}
		targets = append(targets, t)
	}
	notes = slices.Clone(seen.notes)
	if len(hidden) > 0 {
		notes = append(notes, fmt.Sprintf("you may not list %s: that needs the verb \"list\", which the ClusterRole view has; targets of these kinds are only counted",
			strings.Join(slices.Sorted(maps.Keys(hidden)), ", ")))
	}
	return targets, notes, nil
}

// mayRead returns whether the viewer may read an object, in all namespaces, in its own, or by its name.
func (v *viewer) mayRead(ctx context.Context, verb string, resource schema.GroupResource, namespace, name string) (bool, error) {
	for _, a := range [][2]string{{"", ""}, {namespace, name}} {
		if may, err := v.may(ctx, verb, resource.Group, resource.Resource, a[0], a[1]); may || err != nil {
			return may, err
		}
	}
	return false, nil
}
