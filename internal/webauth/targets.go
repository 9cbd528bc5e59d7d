package webauth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/ui"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// line is a target, with the resources that a viewer needs permission to read.
type line struct {
	ui.Target
	resource schema.GroupResource
	// source is the resource of the source of a held target, empty if the target has none.
	source schema.GroupResource
}

// readTargets adds the targets of a Gate, of all kinds, to a snapshot, except free targets.
func (w *Viewers) readTargets(ctx context.Context, g *v1alpha1.Gate, taken *snapshot) error {
	namespaces := []string{g.Namespace}
	for _, ref := range g.Spec.Targets {
		if ref.Namespace != "" && !slices.Contains(namespaces, ref.Namespace) {
			namespaces = append(namespaces, ref.Namespace)
		}
	}
	if slices.ContainsFunc(g.Spec.Targets, func(ref v1alpha1.TargetReference) bool { return ref.SpansNamespaces() }) {
		namespaces = []string{metav1.NamespaceAll}
	}
	known := explain.Cluster{Gates: []*v1alpha1.Gate{g}, Namespaces: []string{}, Labels: w.labels(ctx), Own: w.Own, Now: w.Clock.Now()}
	reach := verdict.Scope{Own: known.Own, Labels: known.Labels}
	sources := &sources{Viewers: w, known: map[explain.Ref]*unstructured.Unstructured{}}
	for _, adapter := range target.All() {
		mapping, err := w.Mapper.RESTMapping(adapter.GroupKind())
		if meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return err
		}
		for _, namespace := range namespaces {
			if err := w.each(ctx, mapping, namespace, func(obj *unstructured.Unstructured) (more bool) {
				if !reach.Governs(g, obj) && !slices.Contains(verdict.HeldBy(obj), g.Namespace+"/"+g.Name) {
					return true
				}
				if len(taken.lines) >= maxRows {
					taken.notes = append(taken.notes, fmt.Sprintf(msgMoreTargets, maxRows))
					return false
				}
				e := explain.Explain(obj, known)
				state, listed := explain.StateTo(e)
				if listed {
					taken.lines = append(taken.lines, sources.newLine(ctx, obj, state, mapping, known.Now))
				}
				return true
			}); err != nil {
				taken.notes = append(taken.notes, fmt.Sprintf(msgKindUnread, mapping.Resource.GroupResource(), forViewers(err)))
			}
		}
	}
	slices.SortStableFunc(taken.lines, func(a, b line) int { return rank(b) - rank(a) })
	return ctx.Err()
}

// forViewers replaces a Forbidden error, because it would reveal the account and the permissions of the controller.
func forViewers(err error) error {
	if apierrors.IsForbidden(err) {
		return errors.New(msgControllerMayNot)
	}
	return err
}

// rank determines the order of targets in the list. Targets with a higher rank come first.
func rank(l line) int {
	switch {
	case l.State == string(explain.Held) && l.IsFresh():
		return 2
	case l.State == string(explain.Held):
		return 1
	}
	return 0
}

// each lists the objects of a kind in a namespace in chunks, and calls do for each object until do returns false.
func (w *Viewers) each(ctx context.Context, kind *meta.RESTMapping, namespace string, do func(*unstructured.Unstructured) bool) error {
	opts := &client.ListOptions{Namespace: namespace, Limit: 500}
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersionKind.GroupVersion().WithKind(kind.GroupVersionKind.Kind + "List"))
		if err := w.Live.List(ctx, list, opts); err != nil {
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) { // the kind has just been removed
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

// sources reads the sources of objects, each once.
type sources struct {
	*Viewers
	known map[explain.Ref]*unstructured.Unstructured
}

// newLine returns the line for an object in a state.
func (s *sources) newLine(ctx context.Context, obj *unstructured.Unstructured, state explain.State, mapping *meta.RESTMapping, now time.Time) line {
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

// get returns a source and its resource. The source is nil if it cannot be read, or if maxSources sources have been read.
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
	taken, err := v.snapshots.get(ctx, g.UID, v.user.name(), func(ctx context.Context, taken *snapshot) error { return v.readTargets(ctx, g, taken) })
	if errors.Is(err, errNoSlot) {
		return nil, []string{err.Error()}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	hidden := map[string]bool{}
	for _, l := range taken.lines {
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
	notes = slices.Clone(taken.notes)
	if len(hidden) > 0 {
		notes = append(notes, fmt.Sprintf(msgMayNotList,
			strings.Join(slices.Sorted(maps.Keys(hidden)), ", ")))
	}
	return targets, notes, nil
}

// mayRead returns whether the viewer has a verb on an object, through a permission for all namespaces, for the namespace of the object,
// or for the object itself if name is set.
func (v *viewer) mayRead(ctx context.Context, verb string, resource schema.GroupResource, namespace, name string) (bool, error) {
	for _, a := range [][2]string{{"", ""}, {namespace, name}} {
		if may, err := v.may(ctx, verb, resource.Group, resource.Resource, a[0], a[1]); may || err != nil {
			return may, err
		}
	}
	return false, nil
}
