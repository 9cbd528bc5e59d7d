package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

const (
	// calendarTimeout bounds how long the calendars of a Gate keep it from being decided on.
	calendarTimeout = 10 * time.Second

	// calendarAge is how long a calendar counts that was read: it reaches two years ahead.
	calendarAge = 24 * time.Hour
)

// CalendarReader reads the calendars of Gates. It watches each ConfigMap that a Gate refers to, and no other: somebody can
// allow the controller to read only these.
type CalendarReader struct {
	// APIReader reads from the API server.
	APIReader client.Reader
	// Wake is told which Gates to look at if a ConfigMap has changed.
	Wake Waker
	// Watches begins to watch a ConfigMap, see configMapWatches. Nil means that each look reads from the API server.
	Watches func(key types.NamespacedName, changed func()) configMapWatch

	mu       sync.Mutex
	followed map[types.NamespacedName]*followedConfigMap
}

// configMapWatch is a watch of one ConfigMap.
type configMapWatch interface {
	// Get returns the ConfigMap, and false if it has to be read from the API server.
	Get() (*corev1.ConfigMap, bool)
	// Stop ends the watch.
	Stop()
}

// followedConfigMap is a ConfigMap that Gates refer to.
type followedConfigMap struct {
	watch configMapWatch
	// gates refer to it.
	gates map[types.NamespacedName]bool

	mu sync.Mutex
	// latest is the newest version that was seen, nil if it was never there.
	latest *corev1.ConfigMap
	// read are the calendars in that version, on a day.
	read map[gate.CalendarKey]gate.Calendar
	day  time.Time
}

// of returns the calendars of a Gate at an instant. One that does not exist, may not be read or is wrong is broken. The error
// is that nobody knows what one is, because the API server does not say.
func (r *CalendarReader) of(ctx context.Context, obj *v1alpha1.Gate, now time.Time) (gate.Calendars, error) {
	keys := gate.CalendarsOf(obj)
	followed := r.follow(client.ObjectKeyFromObject(obj), keys)
	if len(keys) == 0 {
		return nil, nil //nolint:nilnil // a Gate without calendars needs none
	}
	ctx, cancel := context.WithTimeout(ctx, calendarTimeout)
	defer cancel()
	states := map[types.NamespacedName]error{}
	for name, f := range followed {
		err := f.refresh(ctx, r.APIReader, name, now)
		var broken *brokenConfigMap
		if err != nil && !errors.As(err, &broken) {
			return nil, fmt.Errorf("the ConfigMap %s of a calendar cannot be read: %w", name, err)
		}
		states[name] = err
	}
	calendars := gate.Calendars{}
	for _, key := range keys {
		name := configMapOf(key)
		if err := states[name]; err != nil {
			calendars[key] = gate.Calendar{Err: err}
			continue
		}
		calendars[key] = followed[name].calendar(key)
	}
	return calendars, nil
}

// atHand returns whether the calendars of a Gate can be read without a request to the API server, and without waiting for one.
func (r *CalendarReader) atHand(obj *v1alpha1.Gate) bool {
	for _, f := range r.follow(client.ObjectKeyFromObject(obj), gate.CalendarsOf(obj)) {
		if !f.mu.TryLock() {
			return false
		}
		_, ok := f.watched()
		f.mu.Unlock()
		if !ok {
			return false
		}
	}
	return true
}

// calendarsOfLead returns the calendars that an exception of a Gate depends on: only its lead time does. It follows none.
func calendarsOfLead(ctx context.Context, reader client.Reader, e *v1alpha1.GateException, g *v1alpha1.Gate, now time.Time) (gate.Calendars, error) {
	if g == nil || e.Spec.LeadTime == nil {
		return nil, nil
	}
	return (&CalendarReader{APIReader: reader}).of(ctx, g, now)
}

// configMapOf returns the key of the ConfigMap of a calendar.
func configMapOf(key gate.CalendarKey) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
}

// follow notes which ConfigMaps a Gate refers to. It returns them, and watches no other for this Gate any more.
func (r *CalendarReader) follow(by types.NamespacedName, keys []gate.CalendarKey) map[types.NamespacedName]*followedConfigMap {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := map[types.NamespacedName]*followedConfigMap{}
	for _, key := range keys {
		name := configMapOf(key)
		f := r.followed[name]
		if f == nil {
			f = &followedConfigMap{gates: map[types.NamespacedName]bool{}}
			if r.followed == nil {
				r.followed = map[types.NamespacedName]*followedConfigMap{}
			}
			r.followed[name] = f
			if r.Watches != nil {
				f.watch = r.Watches(name, func() { r.changed(name) })
			}
		}
		f.gates[by] = true
		own[name] = f
	}
	for name, f := range r.followed {
		if own[name] == nil && f.gates[by] {
			delete(f.gates, by)
			if len(f.gates) == 0 {
				delete(r.followed, name)
				f.stop()
			}
		}
	}
	return own
}

// forget ends the watches that only a Gate needs that is gone.
func (r *CalendarReader) forget(by types.NamespacedName) { r.follow(by, nil) }

// changed wakes the Gates that refer to a ConfigMap.
func (r *CalendarReader) changed(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.followed[name]; f != nil {
		for by := range f.gates {
			r.Wake.Gate(by)
		}
	}
}

// Start ends all watches when the process ends.
func (r *CalendarReader) Start(ctx context.Context) error {
	<-ctx.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.followed {
		f.stop()
	}
	r.followed = nil
	return nil
}

func (f *followedConfigMap) stop() {
	if f.watch != nil {
		f.watch.Stop()
	}
}

// brokenConfigMap says why a calendar is broken, and not only unknown for the time being.
type brokenConfigMap struct{ cause string }

func (b *brokenConfigMap) Error() string { return b.cause }

// refresh looks at the ConfigMap. While it cannot be read, the version counts that was seen last.
func (f *followedConfigMap) refresh(ctx context.Context, reader client.Reader, name types.NamespacedName, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.watched()
	if !ok {
		found = &corev1.ConfigMap{}
		switch err := reader.Get(ctx, name, found); {
		case apierrors.IsNotFound(err):
			f.latest = nil
			return &brokenConfigMap{"does not exist"}
		case apierrors.IsForbidden(err):
			f.latest = nil
			return &brokenConfigMap{"the controller may not read it, install config/calendars or give it a Role"}
		case err != nil && f.latest == nil:
			return err
		case err != nil:
			ctrl.LoggerFrom(ctx).Error(err, "unable to read a calendar, its last version counts", "configMap", name.String())
			found = f.latest
		}
	}
	if day := now.Truncate(calendarAge); f.latest == nil || f.latest.ResourceVersion != found.ResourceVersion || !f.day.Equal(day) {
		f.latest, f.day, f.read = found, day, map[gate.CalendarKey]gate.Calendar{}
	}
	return nil
}

// watched returns what the watch has, unless that is older than what was seen.
func (f *followedConfigMap) watched() (*corev1.ConfigMap, bool) {
	if f.watch == nil {
		return nil, false
	}
	found, ok := f.watch.Get()
	if !ok || f.latest != nil && older(found.ResourceVersion, f.latest.ResourceVersion) {
		return nil, false
	}
	return found, true
}

// calendar returns a calendar of the ConfigMap, read once for each version and day.
func (f *followedConfigMap) calendar(key gate.CalendarKey) gate.Calendar {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest == nil { // it has gone in between
		return gate.Calendar{Err: &brokenConfigMap{"does not exist"}}
	}
	read, ok := f.read[key]
	if !ok {
		read = key.Read(&gate.Files{Data: f.latest.Data, BinaryData: f.latest.BinaryData}, f.day, f.day)
		f.read[key] = read
	}
	return read
}

// calendarFaults returns what is wrong with the calendars of a decision, each once.
func calendarFaults(d gate.Decision) (faults []v1alpha1.TargetFailure) {
	seen := map[string]bool{}
	for i := range d.Broken {
		b := &d.Broken[i]
		if text := b.String(); !seen[text] {
			seen[text] = true
			faults = append(faults, newFault("ConfigMap", b.Namespace, b.Name, v1alpha1.CalendarFailedReason, fmt.Sprintf("key %s: %s", b.Key, b.Cause)).TargetFailure)
		}
	}
	return faults
}
