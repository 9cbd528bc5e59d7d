package webauth

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/timetable"
	"github.com/fluxcd/gating-controller/internal/ui"
)

// viewer is an authenticated viewer. It sees what the API server allows.
type viewer struct {
	*Viewers
	user *user
}

// may returns whether the viewer has a verb on the objects of a namespace. An empty namespace means all namespaces. If name is set, only
// the object with that name is checked.
func (v *viewer) may(ctx context.Context, verb, group, resource, namespace, name string) (bool, error) {
	return v.Reviews.May(ctx, v.user, authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name})
}

// mayList returns the namespaces in which the viewer may list a resource of our API groups. It checks at most maxNamespaces one by one,
// and none if the viewer may list all namespaces.
func (v *viewer) mayList(ctx context.Context, resource string, namespaces []string) (map[string]bool, error) {
	allowed := map[string]bool{}
	everywhere, err := v.may(ctx, "list", api.Group, resource, "", "")
	if err != nil {
		return nil, err
	}
	results := make([]bool, len(namespaces))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxReviews)
	for i, namespace := range namespaces {
		if results[i] = everywhere; everywhere || i >= maxNamespaces {
			continue
		}
		group.Go(func() (err error) {
			results[i], err = v.may(ctx, "list", api.Group, resource, namespace, "")
			return err
		})
	}
	err = group.Wait()
	for i, namespace := range namespaces {
		if results[i] {
			allowed[namespace] = true
		}
	}
	return allowed, err
}

// namespacesIn returns the distinct namespaces of Gates, sorted.
func namespacesIn(gates []*v1alpha1.Gate) []string {
	all := map[string]bool{}
	for _, g := range gates {
		all[g.Namespace] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Gates implements ui.Reader.
func (v *viewer) Gates(ctx context.Context, namespace, name string) (*ui.Visible, error) {
	gates, err := v.gates(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var notes []string
	if name != "" {
		gates, err = v.named(ctx, gates, namespace, name)
	} else {
		gates, notes, err = v.visibleGates(ctx, gates)
	}
	if err != nil {
		return nil, err
	}
	exceptions, note, err := v.visibleExceptions(ctx, gates, namespace)
	if err != nil {
		return nil, err
	}
	if note != "" {
		notes = append(notes, note)
	}
	known, err := v.content(ctx, gates, exceptions, v.readable)
	if err != nil {
		return nil, err
	}
	known.Notes = append(known.Notes, notes...)
	return known, nil
}

// named returns the Gate with the given name, or no Gate if it does not exist. A viewer without permission gets the same error in both
// cases.
func (v *viewer) named(ctx context.Context, gates []*v1alpha1.Gate, namespace, name string) ([]*v1alpha1.Gate, error) {
	may, err := v.may(ctx, "get", api.Group, "gates", namespace, name)
	if err != nil {
		return nil, err
	}
	if !may {
		return nil, refuse(http.StatusForbidden, msgMayNotGetGate, name, namespace)
	}
	return slices.DeleteFunc(gates, func(g *v1alpha1.Gate) bool { return g.Name != name }), nil
}

// visibleGates returns the Gates that the viewer may list, with notes about Gates that are left out.
func (v *viewer) visibleGates(ctx context.Context, gates []*v1alpha1.Gate) (seen []*v1alpha1.Gate, notes []string, err error) {
	everywhere, err := v.may(ctx, "list", api.Group, "gates", "", "")
	if err != nil || everywhere {
		return gates, nil, err
	}
	namespaces := namespacesIn(gates)
	allowed, err := v.mayList(ctx, "gates", namespaces)
	if err != nil {
		return nil, nil, err
	}
	if len(allowed) == 0 {
		return nil, nil, refuse(http.StatusForbidden, msgMayNotListAny)
	}
	where := fmt.Sprintf("%d namespaces", len(allowed))
	if len(allowed) <= maxNamed {
		where = strings.Join(slices.Sorted(maps.Keys(allowed)), ", ")
	}
	notes = append(notes, msgListed+where)
	if more := len(namespaces) - maxNamespaces; more > 0 {
		notes = append(notes, fmt.Sprintf(msgMoreNamespaces, more))
	}
	return slices.DeleteFunc(gates, func(g *v1alpha1.Gate) bool { return !allowed[g.Namespace] }), notes, nil
}

// visibleExceptions returns the GateExceptions of these Gates that the viewer may list. note is set if some exceptions may be missing.
func (v *viewer) visibleExceptions(ctx context.Context, gates []*v1alpha1.Gate, namespace string) (seen []*v1alpha1.GateException, note string, err error) {
	all, err := v.exceptions(ctx, namespace)
	if err != nil || len(gates) == 0 {
		return nil, "", err
	}
	names := map[string]bool{}
	for _, g := range gates {
		names[g.Namespace+"/"+g.Name] = true
	}
	namespaces := namespacesIn(gates)
	allowed, err := v.mayList(ctx, "gateexceptions", namespaces)
	if err != nil {
		return nil, "", err
	}
	if len(allowed) < len(namespaces) {
		note = msgNoExceptions
	}
	return slices.DeleteFunc(all, func(e *v1alpha1.GateException) bool {
		return !allowed[e.Namespace] || !names[e.Namespace+"/"+e.Spec.GateRef.Name]
	}), note, nil
}

// readable checks whether the viewer may read a ConfigMap. broken is the reason if the viewer may not read it. err is set if the check
// has failed.
func (v *viewer) readable(ctx context.Context, name preview.ConfigMap) (broken, err error) {
	for _, a := range [][2]string{{"", ""}, {name.Namespace, name.Name}} {
		if may, err := v.may(ctx, "get", "", "configmaps", a[0], a[1]); may || err != nil {
			return nil, err
		}
	}
	return fmt.Errorf(msgMayNotGetConfigMap, name.Name, name.Namespace), nil
}

// content returns the content of pages, with the calendars of the Gates. A ConfigMap is treated as unreadable if readable returns broken.
// If readable is nil, all ConfigMaps can be read.
func (w *Viewers) content(ctx context.Context, gates []*v1alpha1.Gate, exceptions []*v1alpha1.GateException, readable func(context.Context, preview.ConfigMap) (broken, err error)) (*ui.Visible, error) {
	known := &ui.Visible{Set: preview.FromCluster(gates, exceptions), Gates: gates, Exceptions: exceptions}
	versions := map[string]string{}
	for _, e := range exceptions {
		versions[e.Namespace+"/"+e.Spec.GateRef.Name] += fmt.Sprintf(" %s@%s", e.UID, e.ResourceVersion)
	}
	calendars := map[preview.ConfigMap]string{}
	for _, name := range known.Set.ConfigMaps() {
		version, err := w.add(ctx, known.Set, name, readable)
		if err != nil {
			return nil, err
		}
		calendars[name] = version
	}
	known.Version = func(g *v1alpha1.Gate) string {
		return versions[g.Namespace+"/"+g.Name]
	}
	for _, g := range gates {
		of := fmt.Sprintf("%s@%s%s", g.UID, g.ResourceVersion, versions[g.Namespace+"/"+g.Name])
		for _, key := range timetable.CalendarsOf(g) {
			of += " " + calendars[preview.ConfigMap{Namespace: key.Namespace, Name: key.Name}]
		}
		versions[g.Namespace+"/"+g.Name] = of
	}
	return known, nil
}

// add adds a ConfigMap, or the reason why it cannot be read, to a set. version changes with the content or the reason.
func (w *Viewers) add(ctx context.Context, set *preview.Set, name preview.ConfigMap, readable func(context.Context, preview.ConfigMap) (broken, err error)) (version string, err error) {
	var broken error
	if readable != nil {
		if broken, err = readable(ctx, name); err != nil {
			return "", err
		}
	}
	if broken == nil {
		found, cause, err := w.configMap(ctx, name)
		if err != nil {
			return "", err
		}
		if broken = cause; broken == nil {
			set.AddConfigMap(name, &timetable.Files{Data: found.Data, BinaryData: found.BinaryData}, nil)
			return fmt.Sprintf("%s@%s", found.UID, found.ResourceVersion), nil
		}
	}
	set.AddConfigMap(name, nil, broken)
	return broken.Error(), nil
}

// Sees implements ui.Reader.
func (v *viewer) Sees(ctx context.Context, namespaces []string) (bool, error) {
	if slices.Contains(namespaces, "") {
		return true, nil
	}
	allowed, err := v.mayList(ctx, "gates", namespaces)
	return len(allowed) > 0, err
}

// Subscriptions implements ui.Reader. The path of a calendar is shown only to viewers who may list CalendarFeeds.
func (v *viewer) Subscriptions(ctx context.Context, g *v1alpha1.Gate) ([]ui.Subscription, error) {
	if !v.Calendars {
		return nil, nil
	}
	may, err := v.may(ctx, "list", api.Group, "calendarfeeds", g.Namespace, "")
	if err != nil || !may {
		return nil, err
	}
	calendars, err := v.calendars(ctx, g.Namespace)
	return ui.SubscriptionsTo(g, calendars), err
}
