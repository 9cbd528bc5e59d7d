// Package calendars reads the calendars of Gates and GateExceptions from ConfigMaps.
package calendars

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

const (
	// calendarTimeout bounds how long reading calendars delays the decision on a Gate.
	calendarTimeout = 10 * time.Second
)

// Reader reads the calendars of Gates. It watches only the ConfigMaps that Gates refer to, so that a Role can be limited to them.
type Reader struct {
	// APIReader reads from the API server.
	APIReader client.Reader
	// Queues enqueues the Gates that refer to a changed ConfigMap.
	Queues enqueue.Enqueuer
	// Watches starts the watch of a ConfigMap, see ConfigMapWatches. If it is nil, each pass reads from the API server.
	Watches func(key types.NamespacedName, changed func()) configMapWatch

	mu       sync.Mutex
	Followed map[types.NamespacedName]*followedConfigMap
	budget   *budget
	// read stores the calendars of each Gate.
	read map[types.UID]readCalendars
	// Compiled caches the specs of the Gates, compiled with these calendars.
	Compiled gate.Compilations
	// enqueued lists the Gates to enqueue, and stop the watches to stop, when mu is released.
	enqueued []types.NamespacedName
	stop     []*followedConfigMap
}

// readCalendars are the calendars of a Gate. The field of is a key that changes with the versions of their ConfigMaps.
type readCalendars struct {
	of        string
	calendars timetable.Calendars
}

// configMapWatch is a watch of one ConfigMap, without its texts.
type configMapWatch interface {
	// Get returns the ConfigMap. It returns false if it must be read from the API server.
	Get() (*corev1.ConfigMap, bool)
	// Stop ends the watch.
	Stop()
}

// For returns the calendars of a Gate at an instant. A calendar is broken if it does not exist, is invalid, or cannot be read because the
// controller lacks permission. For returns an error if the API server did not return a ConfigMap.
func (r *Reader) For(ctx context.Context, obj *v1alpha1.Gate, now time.Time) (timetable.Calendars, error) {
	keys := timetable.CalendarsOf(obj)
	followed := r.follow(summary.KeyFor(obj), keys)
	if len(keys) == 0 {
		return nil, nil //nolint:nilnil // a Gate without calendars needs none
	}
	ctx, cancel := context.WithTimeout(ctx, calendarTimeout)
	defer cancel()
	texts, states := map[types.NamespacedName]*timetable.Files{}, map[types.NamespacedName]error{}
	for name, f := range followed {
		var err error
		if texts[name], err = f.refresh(ctx, r.APIReader, name, now); err != nil && !isBroken(err) {
			return nil, unreadConfigMap(name, err)
		}
		states[name] = err
	}
	of := fmt.Sprintln(obj.Generation)
	for _, key := range keys {
		of += fmt.Sprintf("%+v %s %v\n", key, followed[configMapKey(key)].version(), states[configMapKey(key)])
	}
	r.mu.Lock()
	before, ok := r.read[obj.UID]
	r.mu.Unlock()
	if ok && before.of == of {
		return before.calendars, nil
	}
	var failed error
	calendars := timetable.CollectCalendars(obj, func(file timetable.CalendarFile, selections []timetable.Selection) []timetable.Calendar {
		name := types.NamespacedName{Namespace: file.Namespace, Name: file.Name}
		err := states[name]
		if err == nil {
			var found []timetable.Calendar
			if found, err = followed[name].calendars(ctx, r.APIReader, file, selections, texts[name]); err == nil {
				return found
			}
			if !isBroken(err) && failed == nil {
				failed = unreadConfigMap(name, err)
			}
		}
		return timetable.BrokenCalendars(selections, err)
	})
	if failed != nil {
		return nil, failed
	}
	r.divide(obj.UID, of, calendars, followed)
	return calendars, nil
}

func unreadConfigMap(name types.NamespacedName, err error) error {
	return fmt.Errorf(msgUnread, name, err)
}

// divide stores the calendars of a Gate, and marks the calendars that exceed the budget of their namespace as broken. It enqueues the
// other Gates whose calendars start or stop exceeding the budget.
func (r *Reader) divide(by types.UID, of string, calendars timetable.Calendars, followed map[types.NamespacedName]*followedConfigMap) {
	r.mu.Lock()
	defer r.unlock()
	if r.budget == nil {
		r.budget, r.read = newBudget(mostOccurrences), map[types.UID]readCalendars{}
	}
	for key, c := range calendars {
		if c.Err == nil {
			r.budget.take(key, c.Cost.Occurrences)
		} else if !errors.Is(c.Err, timetable.ErrOverBudget) {
			r.budget.drop(key)
		} else if f := followed[configMapKey(key)]; f != nil && !r.budget.has(key) {
			f.evict(key) // it exceeds the budget of each Gate, so it must not stay in memory
		}
	}
	changed := r.budget.divide()
	for key, c := range calendars {
		if c.Err == nil && r.budget.over[key] {
			calendars[key] = timetable.Calendar{Err: errOverBudget, Cost: c.Cost}
			followed[configMapKey(key)].evict(key)
		}
	}
	r.reread(changed, by)
	r.read[by] = readCalendars{of, calendars}
}

// reread enqueues the Gates with a calendar that starts or stops exceeding the budget. The caller must hold mu.
func (r *Reader) reread(changed []timetable.CalendarKey, except types.UID) {
	for _, key := range changed {
		f := r.Followed[configMapKey(key)]
		if f == nil {
			continue
		}
		if r.budget.over[key] {
			f.evict(key)
		}
		for uid, user := range f.Gates {
			if uid != except && slices.Contains(user.keys, key) {
				delete(r.read, uid)
				r.enqueued = append(r.enqueued, user.name)
			}
		}
	}
}

// IsCached returns whether the calendars of a Gate can be read without a request to the API server, and without waiting for one.
func (r *Reader) IsCached(obj *v1alpha1.Gate, now time.Time) bool {
	for _, f := range r.follow(summary.KeyFor(obj), timetable.CalendarsOf(obj)) {
		if !f.reading.TryLock() {
			return false
		}
		ok := f.isCurrent(now)
		f.reading.Unlock()
		if !ok {
			return false
		}
	}
	return true
}

// ErrPending means that the gate controller has not read the calendars of a Gate yet.
var ErrPending = errors.New(msgPending)

// SnapshotFor returns the inputs of a decision on an exception. It reuses the compiled spec of the gate controller if there is one.
func (r *Reader) SnapshotFor(e *v1alpha1.GateException, g *v1alpha1.Gate, exceptions []*v1alpha1.GateException) (*gate.Snapshot, error) {
	if g == nil {
		return gate.NewSnapshot(nil, nil, exceptions...), nil
	}
	calendars, err := r.forException(e, g)
	if err != nil {
		return nil, err
	}
	return r.Compiled.Lookup(g, calendars, exceptions...), nil
}

// forException returns the calendars of the Gate of an exception, as the gate controller has read them. If some have not been read yet, it
// returns ErrPending for an exception with a lead time. Other exceptions, and exceptions of suspended or deleted Gates, do not depend on
// calendars and get none.
func (r *Reader) forException(e *v1alpha1.GateException, g *v1alpha1.Gate) (timetable.Calendars, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	read := r.read[g.UID].calendars
	for _, key := range timetable.CalendarsOf(g) {
		if _, ok := read[key]; ok {
			continue
		}
		if e.Spec.LeadTime == nil || g.Spec.Suspend || !g.DeletionTimestamp.IsZero() {
			return nil, nil //nolint:nilnil // such an exception needs none
		}
		return nil, ErrPending
	}
	return read, nil
}

// configMapKey returns the key of the ConfigMap of a calendar.
func configMapKey(key timetable.CalendarKey) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
}

// follow records the ConfigMaps that a Gate refers to, and returns them. It stops watches that no Gate needs anymore.
func (r *Reader) follow(by summary.Gate, keys []timetable.CalendarKey) map[types.NamespacedName]*followedConfigMap {
	r.mu.Lock()
	defer r.unlock()
	own, of := map[types.NamespacedName]*followedConfigMap{}, map[types.NamespacedName][]timetable.CalendarKey{}
	for _, key := range keys {
		name := configMapKey(key)
		of[name] = append(of[name], key)
		f := r.Followed[name]
		if f == nil {
			f = &followedConfigMap{Gates: map[types.UID]calendarUser{}}
			if r.Followed == nil {
				r.Followed = map[types.NamespacedName]*followedConfigMap{}
			}
			r.Followed[name] = f
			if r.Watches != nil {
				f.watch = r.Watches(name, func() { r.Changed(name) })
			}
		}
		own[name] = f
	}
	var unused []timetable.CalendarKey
	for name, f := range r.Followed {
		unused = append(unused, f.use(by, of[name])...)
		if len(f.Gates) == 0 {
			delete(r.Followed, name)
			r.stop = append(r.stop, f)
		}
	}
	if len(unused) > 0 && r.budget != nil {
		for _, key := range unused {
			r.budget.drop(key)
		}
		r.reread(r.budget.divide(), by.UID)
	}
	if len(keys) == 0 {
		delete(r.read, by.UID)
	}
	return own
}

// Forget evicts a Gate, and stops the watches that no other Gate needs.
func (r *Reader) Forget(by types.UID) {
	r.follow(summary.Gate{UID: by}, nil)
	r.Compiled.Forget(by)
}

// unlock releases mu. Then it enqueues the Gates and stops the watches that were recorded while it was held.
func (r *Reader) unlock() {
	enqueued, stop := r.enqueued, r.stop
	r.enqueued, r.stop = nil, nil
	r.mu.Unlock()
	for _, name := range enqueued {
		r.Queues.Gate(name)
	}
	for _, f := range stop {
		f.stop()
	}
}

// Changed enqueues the Gates that refer to a ConfigMap.
func (r *Reader) Changed(name types.NamespacedName) {
	r.mu.Lock()
	defer r.unlock()
	if f := r.Followed[name]; f != nil {
		for _, user := range f.Gates {
			r.enqueued = append(r.enqueued, user.name)
		}
	}
}

// Start stops all watches when the context ends.
func (r *Reader) Start(ctx context.Context) error {
	<-ctx.Done()
	r.mu.Lock()
	defer r.unlock()
	r.stop, r.Followed = slices.AppendSeq(r.stop, maps.Values(r.Followed)), nil
	return nil
}

// Faults returns the failures of the broken calendars of a decision, each once.
func Faults(d gate.Decision) (faults []v1alpha1.TargetFailure) {
	seen := map[string]bool{}
	for i := range d.Broken {
		b := &d.Broken[i]
		if text := b.String(); !seen[text] {
			seen[text] = true
			faults = append(faults, view.NewFault("ConfigMap", b.Namespace, b.Name, v1alpha1.CalendarFailedReason, fmt.Sprintf("key %s: %s", b.Key, b.Cause)).TargetFailure)
		}
	}
	return faults
}
