package webauth

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/timetable"
	"github.com/fluxcd/gating-controller/internal/ui"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Why implements ui.Reader.
func (v *viewer) Why(ctx context.Context, kind, namespace, name string) (*explain.Explanation, error) {
	mapping, err := v.kind(kind)
	if err != nil {
		return nil, err
	}
	resource := mapping.Resource.GroupResource()
	may, err := v.mayRead(ctx, "get", resource, namespace, name)
	if err != nil {
		return nil, err
	}
	if !may {
		return nil, refuse(http.StatusForbidden, msgMayNotGet, resource, name, namespace)
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := v.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj); apierrors.IsNotFound(err) {
		return nil, ui.Missing{Cause: fmt.Errorf(msgMissing, mapping.GroupVersionKind.Kind, name, namespace)}
	} else if err != nil {
		return nil, refuse(http.StatusBadGateway, msgUnread, resource, name, namespace, forViewers(err))
	}
	known, notes, err := v.governing(ctx, obj)
	if err != nil {
		return nil, err
	}
	e := explain.Explain(obj, *known)
	if e.State.IsHeld() {
		if e.Waiting, err = v.waiting(ctx, obj, known); err != nil {
			return nil, err
		}
	}
	e.Notes = append(e.Notes, notes...)
	return &e, nil
}

// kind returns the mapping of a supported kind, by the name of the kind. It returns ui.Missing if the kind is unknown.
func (w *Viewers) kind(name string) (*meta.RESTMapping, error) {
	for _, adapter := range target.All() {
		if adapter.GroupKind().Kind != name {
			continue
		}
		mapping, err := w.Mapper.RESTMapping(adapter.GroupKind())
		if err == nil || !meta.IsNoMatchError(err) {
			return mapping, err
		}
	}
	return nil, ui.Missing{Cause: fmt.Errorf(msgUnknownKind, name)}
}

// governing returns the Gates that govern an object and that the viewer may see, with a note if other Gates may be missing.
func (v *viewer) governing(ctx context.Context, obj *unstructured.Unstructured) (known *explain.Cluster, notes []string, err error) {
	known = &explain.Cluster{Labels: v.labels(ctx), Own: v.Own, Now: v.Clock.Now(), Command: command}
	all, err := v.gates(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	reach, names := verdict.Scope{Own: known.Own, Labels: known.Labels}, verdict.NamesOn(obj)
	absent := slices.Clone(names)
	known.Gates = slices.DeleteFunc(all, func(g *v1alpha1.Gate) bool {
		name := g.Namespace + "/" + g.Name
		absent = slices.DeleteFunc(absent, func(other string) bool { return other == name })
		return !reach.Governs(g, obj) && !slices.Contains(names, name)
	})
	everywhere, err := v.may(ctx, "list", api.Group, "gates", "", "")
	if err != nil {
		return nil, nil, err
	}
	if !everywhere {
		if known.Namespaces, err = v.hide(ctx, known, obj, absent); err != nil {
			return nil, nil, err
		}
		notes = append(notes, msgHidden)
	}
	seen, err := v.content(ctx, known.Gates, nil, v.readable)
	if err != nil {
		return nil, nil, err
	}
	known.Calendars = timetable.Calendars{}
	for _, g := range known.Gates {
		maps.Copy(known.Calendars, seen.Set.Calendars(g, preview.Range{From: known.Now, Until: known.Now}))
	}
	return known, notes, nil
}

// hide removes the Gates that the viewer may not see from known, and returns the namespaces whose Gates the viewer may list. absent are
// the names of Gates in the annotations of the object that do not exist.
func (v *viewer) hide(ctx context.Context, known *explain.Cluster, obj *unstructured.Unstructured, absent []string) ([]string, error) {
	namespaces := append(namespacesIn(known.Gates), obj.GetNamespace())
	for _, name := range absent {
		namespace, _, _ := strings.Cut(name, "/")
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)
	allowed, err := v.mayList(ctx, "gates", slices.Compact(namespaces))
	known.Gates = slices.DeleteFunc(known.Gates, func(g *v1alpha1.Gate) bool { return !allowed[g.Namespace] })
	return append([]string{}, slices.Sorted(maps.Keys(allowed))...), err
}

// waiting returns the update of an object that waits for its release. Without permission to read the source, the update is unknown.
func (v *viewer) waiting(ctx context.Context, obj *unstructured.Unstructured, known *explain.Cluster) (*explain.Waiting, error) {
	var source *unstructured.Unstructured
	if ref, ok := explain.SourceOf(obj); ok {
		found, resource := (&sources{Viewers: v.Viewers, known: map[explain.Ref]*unstructured.Unstructured{}}).get(ctx, ref)
		may, err := v.mayRead(ctx, "get", resource, ref.Namespace, ref.Name)
		if err != nil {
			return nil, err
		}
		if may {
			source = found
		}
	}
	waits := explain.Wait(obj, source, known.Now)
	return &waits, nil
}
