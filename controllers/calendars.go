package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	shares   *calendarShares
	// read are the calendars of each Gate.
	read map[types.NamespacedName]readCalendars
}

// readCalendars are the calendars of a Gate, and of which versions of ConfigMaps they are.
type readCalendars struct {
	of        string
	calendars gate.Calendars
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
	// gates refer to it, each with some calendars.
	gates map[types.NamespacedName][]gate.CalendarKey

	mu sync.Mutex
	// latest is the newest version that was seen, nil if it was never there.
	latest *corev1.ConfigMap
	// read are the calendars in that version, on a day. Those are left out that are over a budget.
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
	return r.collect(obj, keys, followed, states), nil
}

// collect returns the calendars of a Gate in ConfigMaps, some of which are broken. It reads those that it has not read yet.
func (r *CalendarReader) collect(obj *v1alpha1.Gate, keys []gate.CalendarKey, followed map[types.NamespacedName]*followedConfigMap, states map[types.NamespacedName]error) gate.Calendars {
	by, of := client.ObjectKeyFromObject(obj), ""
	for _, key := range keys {
		of += fmt.Sprintf("%+v %s %v\n", key, followed[configMapOf(key)].version(), states[configMapOf(key)])
	}
	r.mu.Lock()
	before, ok := r.read[by]
	r.mu.Unlock()
	if ok && before.of == of {
		return before.calendars
	}
	calendars := gate.CollectCalendars(obj, func(file gate.CalendarFile, selections []gate.Selection) []gate.Calendar {
		name := types.NamespacedName{Namespace: file.Namespace, Name: file.Name}
		if err := states[name]; err != nil {
			return gate.BrokenCalendars(selections, err)
		}
		return followed[name].calendars(file, selections)
	})
	r.divide(by, of, calendars, followed)
	return calendars
}

// divide breaks the calendars of a Gate that are over the share of their namespace, and stores the others. It enqueues the other Gates that this affects.
func (r *CalendarReader) divide(by types.NamespacedName, of string, calendars gate.Calendars, followed map[types.NamespacedName]*followedConfigMap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shares == nil {
		r.shares, r.read = newCalendarShares(mostOccurrences), map[types.NamespacedName]readCalendars{}
	}
	for key, c := range calendars {
		if c.Err == nil {
			r.shares.take(key, c.Cost.Occurrences)
		} else if !errors.Is(c.Err, gate.ErrOverBudget) {
			r.shares.drop(key)
		}
	}
	changed := r.shares.divide()
	for key, c := range calendars {
		if c.Err == nil && r.shares.over[key] {
			calendars[key] = gate.Calendar{Err: errOverShare, Cost: c.Cost}
			followed[configMapOf(key)].evict(key)
		}
	}
	r.reread(changed, by)
	r.read[by] = readCalendars{of, calendars}
}

// reread has Gates decided on again whose calendars are over their share from now on, or no longer. It is called with mu held.
func (r *CalendarReader) reread(changed []gate.CalendarKey, except types.NamespacedName) {
	for _, key := range changed {
		f := r.followed[configMapOf(key)]
		if f == nil {
			continue
		}
		if r.shares.over[key] {
			f.evict(key)
		}
		for gateKey, keys := range f.gates {
			if gateKey != except && slices.Contains(keys, key) {
				delete(r.read, gateKey)
				r.Wake.Gate(gateKey)
			}
		}
	}
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
	own, of := map[types.NamespacedName]*followedConfigMap{}, map[types.NamespacedName][]gate.CalendarKey{}
	for _, key := range keys {
		name := configMapOf(key)
		of[name] = append(of[name], key)
		f := r.followed[name]
		if f == nil {
			f = &followedConfigMap{gates: map[types.NamespacedName][]gate.CalendarKey{}}
			if r.followed == nil {
				r.followed = map[types.NamespacedName]*followedConfigMap{}
			}
			r.followed[name] = f
			if r.Watches != nil {
				f.watch = r.Watches(name, func() { r.changed(name) })
			}
		}
		own[name] = f
	}
	var unused []gate.CalendarKey
	for name, f := range r.followed {
		unused = append(unused, f.use(by, of[name])...)
		if len(f.gates) == 0 {
			delete(r.followed, name)
			f.stop()
		}
	}
	if len(unused) > 0 && r.shares != nil {
		for _, key := range unused {
			r.shares.drop(key)
		}
		r.reread(r.shares.divide(), by)
	}
	if len(keys) == 0 {
		delete(r.read, by)
	}
	return own
}

// use records which calendars a Gate uses, and returns those that no Gate uses anymore. It is called with the mutex of the CalendarReader held.
func (f *followedConfigMap) use(by types.NamespacedName, keys []gate.CalendarKey) (unused []gate.CalendarKey) {
	before := f.gates[by]
	if slices.Equal(before, keys) {
		return nil
	}
	if f.gates[by] = keys; len(keys) == 0 {
		delete(f.gates, by)
	}
	for _, key := range before {
		if !slices.ContainsFunc(slices.Collect(maps.Values(f.gates)), func(keys []gate.CalendarKey) bool { return slices.Contains(keys, key) }) {
			unused = append(unused, key)
			f.evict(key)
		}
	}
	return unused
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

// version says what calendars are read of.
func (f *followedConfigMap) version() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest == nil {
		return ""
	}
	return fmt.Sprint(f.latest.UID, f.latest.ResourceVersion, f.day.Unix())
}

// evict drops a calendar from memory.
func (f *followedConfigMap) evict(key gate.CalendarKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.read, key)
}

// calendars returns calendars of the ConfigMap, each read once for each version and day. The file is parsed once for all.
func (f *followedConfigMap) calendars(file gate.CalendarFile, selections []gate.Selection) []gate.Calendar {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest == nil { // it has gone in between
		return gate.BrokenCalendars(selections, &brokenConfigMap{"does not exist"})
	}
	found := make([]gate.Calendar, len(selections))
	var missing []gate.Selection
	for i, selection := range selections {
		c, ok := f.read[gate.CalendarKey{CalendarFile: file, Selection: selection}]
		if found[i] = c; !ok {
			missing = append(missing, selection)
		}
	}
	if len(missing) == 0 {
		return found
	}
	read := file.Read(&gate.Files{Data: f.latest.Data, BinaryData: f.latest.BinaryData}, missing, f.day, f.day)
	for i, selection := range selections {
		key := gate.CalendarKey{CalendarFile: file, Selection: selection}
		if j := slices.Index(missing, selection); j >= 0 {
			if found[i] = read[j]; !errors.Is(read[j].Err, gate.ErrOverBudget) {
				f.read[key] = read[j]
			}
		}
	}
	return found
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
