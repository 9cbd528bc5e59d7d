package calendarfeed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/timetable"
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

// Source reads the objects of calendars from caches.
type Source struct {
	// Cache contains all Gates and GateExceptions.
	Cache client.Reader
	// Watch starts watching a ConfigMap that contains calendars of Gates.
	Watch func(key types.NamespacedName) ConfigMapWatch

	mu       sync.Mutex
	followed map[types.NamespacedName]*followed
}

// followed is a watched ConfigMap.
type followed struct {
	ConfigMapWatch
	// by lists the CalendarFeeds whose Gates refer to the ConfigMap.
	by map[types.NamespacedName]bool
}

// contents contains all objects of a calendar.
type contents struct {
	gates      []*v1alpha1.Gate
	exceptions []*v1alpha1.GateException
	configMaps map[preview.ConfigMap]configMap
	// absent lists the referenced Gates that do not exist. lacks is a message about other Gates that are missing from the calendar, empty if
	// there are none.
	absent []string
	lacks  string
}

// configMap is the last observed state of a ConfigMap. object is nil if err is set.
type configMap struct {
	object *corev1.ConfigMap
	err    error
}

// read returns the objects of a calendar. It returns an error if some of them have not been read yet.
func (s *Source) read(ctx context.Context, e *entry) (*contents, error) {
	c := &contents{}
	if err := s.readGates(ctx, e, c); err != nil {
		return nil, err
	}
	list := &v1alpha1.GateExceptionList{}
	if err := s.Cache.List(ctx, list, client.InNamespace(e.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range list.Items {
		x := &list.Items[i]
		if slices.ContainsFunc(c.gates, func(g *v1alpha1.Gate) bool { return gate.IsOf(g, x) }) {
			c.exceptions = append(c.exceptions, x)
		}
	}
	slices.SortFunc(c.exceptions, func(a, b *v1alpha1.GateException) int { return strings.Compare(a.Name, b.Name) })
	var err error
	c.configMaps, err = s.readConfigMaps(ctx, e.key, c.set().ConfigMaps())
	return c, err
}

// readGates reads the Gates of a calendar into c, in the order of their names.
func (s *Source) readGates(ctx context.Context, e *entry, c *contents) error {
	options := []client.ListOption{client.InNamespace(e.key.Namespace), client.UnsafeDisableDeepCopy}
	if e.selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: e.selector})
	}
	list := &v1alpha1.GateList{}
	if err := s.Cache.List(ctx, list, options...); err != nil {
		return err
	}
	named := map[string]bool{}
	for _, ref := range e.obj.Spec.GateRefs {
		named[ref.Name] = true
	}
	for i := range list.Items {
		if g := &list.Items[i]; e.selector != nil || named[g.Name] {
			c.gates = append(c.gates, g)
			delete(named, g.Name)
		}
	}
	for name := range named {
		c.absent = append(c.absent, e.key.Namespace+"/"+name)
	}
	slices.Sort(c.absent)
	slices.SortFunc(c.gates, func(a, b *v1alpha1.Gate) int { return cmp.Compare(a.Name, b.Name) })
	switch n := len(c.gates); {
	case n > maxGates:
		c.lacks = fmt.Sprintf("%d gates are missing in this calendar, which is limited to %d", n-maxGates, maxGates)
		c.gates = c.gates[:maxGates]
	case n == 0 && e.selector != nil:
		c.lacks = "No gate in namespace " + e.key.Namespace + " has the labels of this calendar"
	}
	return nil
}

// readConfigMaps returns ConfigMaps. It waits for ConfigMaps that are watched for the first time, up to readTimeout.
func (s *Source) readConfigMaps(ctx context.Context, by types.NamespacedName, names []preview.ConfigMap) (map[preview.ConfigMap]configMap, error) {
	watches, found := s.follow(by, names), map[preview.ConfigMap]configMap{}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for name, watch := range watches {
		if err := wait.PollUntilContextCancel(ctx, readInterval, true, func(context.Context) (known bool, _ error) {
			found[name], known = latestState(watch)
			return known, nil
		}); err != nil {
			return nil, fmt.Errorf("the ConfigMap %s/%s has not been read yet", name.Namespace, name.Name)
		}
	}
	return found, nil
}

// latestState returns the current state of a watch. It returns false if the ConfigMap has not been read yet.
func latestState(watch ConfigMapWatch) (found configMap, known bool) {
	if apierrors.IsForbidden(watch.Failed()) {
		return configMap{err: errors.New("the controller may not read it: install config/calendars, or grant the controller a Role")}, true
	}
	object, known := watch.Latest()
	if known && object == nil {
		return configMap{err: errors.New("does not exist")}, true
	}
	return configMap{object: object}, known
}

// follow watches ConfigMaps for a calendar, and stops the watches that no calendar needs anymore. by is the key of the calendar.
func (s *Source) follow(by types.NamespacedName, names []preview.ConfigMap) map[preview.ConfigMap]ConfigMapWatch {
	watches, unused := map[preview.ConfigMap]ConfigMapWatch{}, map[types.NamespacedName]*followed{}
	defer stop(unused)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		key := types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
		f := s.followed[key]
		if f == nil {
			f = &followed{s.Watch(key), map[types.NamespacedName]bool{}}
			if s.followed == nil {
				s.followed = map[types.NamespacedName]*followed{}
			}
			s.followed[key] = f
		}
		f.by[by] = true
		watches[name] = f
	}
	for key, f := range s.followed {
		if watches[preview.ConfigMap{Namespace: key.Namespace, Name: key.Name}] == nil && f.by[by] {
			delete(f.by, by)
			if len(f.by) == 0 {
				delete(s.followed, key)
				unused[key] = f
			}
		}
	}
	return watches
}

// unfollow stops the watches that only a deleted calendar needed.
func (s *Source) unfollow(by types.NamespacedName) { s.follow(by, nil) }

// Stop stops all watches.
func (s *Source) Stop() {
	s.mu.Lock()
	all := s.followed
	s.followed = nil
	s.mu.Unlock()
	stop(all)
}

func stop(watches map[types.NamespacedName]*followed) {
	for _, f := range watches {
		f.Stop()
	}
}

// set returns the objects as the input of a preview.
func (c *contents) set() *preview.Set {
	set := preview.FromCluster(c.gates, c.exceptions)
	for name, found := range c.configMaps {
		if found.object == nil {
			set.AddConfigMap(name, nil, found.err)
			continue
		}
		set.AddConfigMap(name, &timetable.Files{Data: found.object.Data, BinaryData: found.object.BinaryData}, nil)
	}
	return set
}

// versions returns a text that identifies the versions of all objects of a calendar.
func (c *contents) versions() string {
	var text strings.Builder
	add := func(obj metav1.Object) { fmt.Fprintf(&text, "%s %s\n", obj.GetUID(), obj.GetResourceVersion()) }
	for _, g := range c.gates {
		add(g)
	}
	for _, e := range c.exceptions {
		add(e)
	}
	for _, name := range c.names() {
		if found := c.configMaps[name]; found.object != nil {
			add(found.object)
		} else {
			fmt.Fprintf(&text, "%v %v\n", name, found.err)
		}
	}
	fmt.Fprintf(&text, "%q %s", c.absent, c.lacks)
	return text.String()
}

// names returns the ConfigMaps sorted by name.
func (c *contents) names() (names []preview.ConfigMap) {
	for name := range c.configMaps {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b preview.ConfigMap) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return names
}

// changed returns when one of the objects was last changed, but not earlier than after. It ignores changes of the status.
func (c *contents) changed(after time.Time) time.Time {
	latest := after
	note := func(obj metav1.Object) {
		times := []metav1.Time{obj.GetCreationTimestamp()}
		for _, f := range obj.GetManagedFields() {
			if f.Subresource == "" && f.Time != nil {
				times = append(times, *f.Time)
			}
		}
		for _, t := range times {
			if t.After(latest) {
				latest = t.Time
			}
		}
	}
	for _, g := range c.gates {
		note(g)
	}
	for _, e := range c.exceptions {
		note(e)
	}
	for _, found := range c.configMaps {
		if found.object != nil {
			note(found.object)
		}
	}
	return latest
}
