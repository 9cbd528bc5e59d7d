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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// followedConfigMap is a ConfigMap that Gates refer to. Its files are not cached. They are read from the API server once per version and
// day.
type followedConfigMap struct {
	watch configMapWatch
	// Gates lists the Gates that refer to the ConfigMap, by UID.
	Gates map[types.UID]calendarUser

	// reading is locked while the ConfigMap is read and parsed, and guards latest and day.
	reading sync.Mutex
	// latest is the version read last, nil if the ConfigMap was never read or does not exist.
	latest *configMapVersion
	day    time.Time
	// mu guards Read. It is never held during a request, because the Reader locks it while other Gates wait for the Reader.
	mu sync.Mutex
	// Read contains the calendars of the latest version on that day, except calendars that exceed a budget.
	Read map[timetable.CalendarKey]timetable.Calendar
}

// calendarUser is a Gate that uses calendars of a ConfigMap.
type calendarUser struct {
	name types.NamespacedName
	keys []timetable.CalendarKey
}

// configMapVersion identifies a version of a ConfigMap.
type configMapVersion struct {
	uid             types.UID
	resourceVersion string
}

// use records which calendars a Gate uses. It evicts and returns calendars that no Gate uses anymore. The caller must hold the mutex of
// the Reader.
func (f *followedConfigMap) use(by summary.Gate, keys []timetable.CalendarKey) (unused []timetable.CalendarKey) {
	before := f.Gates[by.UID].keys
	if slices.Equal(before, keys) {
		return nil
	}
	if f.Gates[by.UID] = (calendarUser{by.NamespacedName, keys}); len(keys) == 0 {
		delete(f.Gates, by.UID)
	}
	for _, key := range before {
		if !slices.ContainsFunc(slices.Collect(maps.Values(f.Gates)), func(user calendarUser) bool { return slices.Contains(user.keys, key) }) {
			unused = append(unused, key)
			f.evict(key)
		}
	}
	return unused
}

func (f *followedConfigMap) stop() {
	if f.watch != nil {
		f.watch.Stop()
	}
}

// brokenConfigMap is an error that lasts until the ConfigMap or a permission changes. Other errors are temporary.
type brokenConfigMap struct{ cause string }

func (b *brokenConfigMap) Error() string { return b.cause }

func isBroken(err error) bool {
	var broken *brokenConfigMap
	return errors.As(err, &broken)
}

// refresh checks for a new version of the ConfigMap. If it had to read the ConfigMap, it returns the files, otherwise nil. If the API
// server returns an error, it keeps the last version.
func (f *followedConfigMap) refresh(ctx context.Context, reader client.Reader, name types.NamespacedName, now time.Time) (*timetable.Files, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.isCurrent(now) {
		return nil, nil //nolint:nilnil // nothing to read
	}
	texts, err := f.readTexts(ctx, reader, name, now.Truncate(timetable.MaxCalendarAge))
	if err != nil && !isBroken(err) && f.latest != nil {
		ctrl.LoggerFrom(ctx).Error(err, "unable to read a calendar, using its last version", "configMap", name.String())
		return nil, nil //nolint:nilnil // the last version stays in use
	}
	return texts, err
}

// readTexts reads the ConfigMap from the API server. The caller must hold reading.
func (f *followedConfigMap) readTexts(ctx context.Context, reader client.Reader, name types.NamespacedName, day time.Time) (*timetable.Files, error) {
	found := &corev1.ConfigMap{}
	switch err := reader.Get(ctx, name, found); {
	case apierrors.IsNotFound(err):
		f.latest = nil
		return nil, &brokenConfigMap{msgMissing}
	case apierrors.IsForbidden(err):
		f.latest = nil
		return nil, &brokenConfigMap{msgForbidden}
	case err != nil:
		return nil, err
	}
	if version := (configMapVersion{found.UID, found.ResourceVersion}); f.latest == nil || *f.latest != version || !f.day.Equal(day) {
		f.latest, f.day = &version, day
		f.mu.Lock()
		f.Read = map[timetable.CalendarKey]timetable.Calendar{}
		f.mu.Unlock()
	}
	return &timetable.Files{Data: found.Data, BinaryData: found.BinaryData}, nil
}

// isCurrent returns whether the watched version is the version read last, on the same day. The caller must hold reading.
func (f *followedConfigMap) isCurrent(now time.Time) bool {
	if f.watch == nil || f.latest == nil || !f.day.Equal(now.Truncate(timetable.MaxCalendarAge)) {
		return false
	}
	seen, ok := f.watch.Get()
	return ok && *f.latest == configMapVersion{seen.UID, seen.ResourceVersion}
}

// version returns a key that changes with the content of the ConfigMap and with the day. It is empty if the ConfigMap has not been read.
func (f *followedConfigMap) version() string {
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.latest == nil {
		return ""
	}
	return fmt.Sprint(*f.latest, f.day.Unix())
}

// evict removes a calendar from memory.
func (f *followedConfigMap) evict(key timetable.CalendarKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.Read, key)
}

// lookup returns the calendars of selections that are in memory, and the selections that are missing.
func (f *followedConfigMap) lookup(file timetable.CalendarFile, selections []timetable.Selection) (found []timetable.Calendar, missing []timetable.Selection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found = make([]timetable.Calendar, len(selections))
	for i, selection := range selections {
		c, ok := f.Read[timetable.CalendarKey{CalendarFile: file, Selection: selection}]
		if found[i] = c; !ok {
			missing = append(missing, selection)
		}
	}
	return found, missing
}

// calendars returns calendars of a file of the ConfigMap, each parsed once per version and day. The file comes from texts, or from the
// API server if texts is nil. It is parsed once for all calendars.
func (f *followedConfigMap) calendars(ctx context.Context, reader client.Reader, file timetable.CalendarFile, selections []timetable.Selection, texts *timetable.Files) ([]timetable.Calendar, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	found, missing := f.lookup(file, selections)
	if len(missing) == 0 {
		return found, nil
	}
	if texts == nil {
		var err error
		if texts, err = f.readTexts(ctx, reader, types.NamespacedName{Namespace: file.Namespace, Name: file.Name}, f.day); err != nil {
			return nil, err
		}
	}
	read := file.Read(texts, missing, f.day, f.day)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, selection := range selections {
		key := timetable.CalendarKey{CalendarFile: file, Selection: selection}
		if j := slices.Index(missing, selection); j >= 0 {
			if found[i] = read[j]; !errors.Is(read[j].Err, timetable.ErrOverBudget) {
				f.Read[key] = read[j]
			}
		}
	}
	return found, nil
}
