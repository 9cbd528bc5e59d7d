package preview

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// configMap is a ConfigMap that may contain calendars.
type configMap struct {
	// file is the file that contains the ConfigMap, empty if it is from a cluster.
	file  string
	files timetable.Files
	// err is the reason why the ConfigMap cannot be read, nil if it can be read.
	err error
}

// calendarIn is a key for a calendar that was read for a range.
type calendarIn struct {
	timetable.CalendarKey
	Range
	// of is the Gate that had no budget left for this calendar. It is empty if the calendar is the same for all Gates.
	of string
}

// ConfigMap identifies a ConfigMap.
type ConfigMap struct {
	Namespace, Name string
}

// ConfigMaps returns the ConfigMaps that the Gates of a set refer to but that are not in the set.
func (s *Set) ConfigMaps() (missing []ConfigMap) {
	for _, g := range s.gates {
		for _, key := range timetable.CalendarsOf(g) {
			name := ConfigMap{key.Namespace, key.Name}
			if s.configMaps[name] == nil && !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
		}
	}
	return missing
}

// AddConfigMap adds a ConfigMap of a cluster to a set. If the ConfigMap could not be read, err is the error.
func (s *Set) AddConfigMap(name ConfigMap, files *timetable.Files, err error) {
	added := &configMap{err: err}
	if files != nil {
		added.files = *files
	}
	s.configMaps[name] = added
}

// readConfigMap adds a ConfigMap from a manifest. Its errors are reported only if a Gate refers to it.
func (s *Set) readConfigMap(file string, obj *unstructured.Unstructured) {
	name := ConfigMap{obj.GetNamespace(), obj.GetName()}
	if name.Namespace == "" {
		name.Namespace = s.namespace
	}
	added := &configMap{file: file}
	data, err := json.Marshal(obj.Object)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(data)).Decode(&added.files)
	}
	added.err = err
	switch other := s.configMaps[name]; {
	case other == nil || reflect.DeepEqual(other.files, added.files):
	case s.overlays && directory(file) != directory(other.file):
		return
	default:
		added.err = fmt.Errorf("differs from the one in %s", other.file)
	}
	s.configMaps[name] = added
}

// applyConfigMaps adds the ConfigMaps of a cluster in the form after manifests were applied.
func (s *Set) applyConfigMaps(before, manifests *Set) {
	maps.Copy(s.configMaps, before.configMaps)
	maps.Copy(s.configMaps, manifests.configMaps)
}

// Calendars returns the calendars of a Gate in a range. Each calendar is read once.
func (s *Set) Calendars(g *v1alpha1.Gate, r Range) timetable.Calendars {
	return timetable.CollectCalendars(g, func(file timetable.CalendarFile, selections []timetable.Selection) []timetable.Calendar {
		all := make([]timetable.Calendar, len(selections))
		var missing []timetable.Selection
		for i, selection := range selections {
			key := timetable.CalendarKey{CalendarFile: file, Selection: selection}
			c, ok := s.read[calendarIn{key, r, ""}]
			if !ok {
				c, ok = s.read[calendarIn{key, r, nameOf(g)}]
			}
			if all[i] = c; !ok {
				missing = append(missing, selection)
			}
		}
		if len(missing) == 0 {
			return all
		}
		read := s.calendars(file, missing, r)
		for i, selection := range selections {
			j, by := slices.Index(missing, selection), ""
			if j < 0 {
				continue
			}
			if all[i] = read[j]; errors.Is(read[j].Err, timetable.ErrOverBudget) {
				by = nameOf(g)
			}
			s.read[calendarIn{timetable.CalendarKey{CalendarFile: file, Selection: selection}, r, by}] = read[j]
		}
		return all
	})
}

func (s *Set) calendars(file timetable.CalendarFile, selections []timetable.Selection, r Range) []timetable.Calendar {
	found := s.configMaps[ConfigMap{file.Namespace, file.Name}]
	switch {
	case found == nil && s.fromCluster:
		return timetable.BrokenCalendars(selections, errors.New("has not been read"))
	case found == nil:
		return timetable.BrokenCalendars(selections, errors.New("is not in the manifests"))
	case found.err != nil:
		return timetable.BrokenCalendars(selections, found.err)
	}
	return file.Read(&found.files, selections, r.From, r.Until)
}

// snapshot returns a snapshot of a Gate with its calendars in a range, and with the exceptions returned by counting.
func (s *Set) snapshot(g *v1alpha1.Gate, r Range) *gate.Snapshot {
	return gate.NewSnapshot(WithoutApprovals(g), s.Calendars(g, r), s.counting(g)...)
}

// broken returns the calendars of a Gate that cannot be read. Calendars in manifests are returned as faults, others as warnings.
func (s *Set) broken(g *v1alpha1.Gate, r Range) (faults, warnings []Fault) {
	for _, b := range s.snapshot(g, r).Broken() {
		found := s.configMaps[ConfigMap{b.Namespace, b.Name}]
		if found != nil && found.file != "" {
			for _, cause := range b.Causes {
				faults = append(faults, Fault{File: found.file, Object: b.Namespace + "/" + b.Name, Field: fmt.Sprintf("data[%s]", b.Key), Cause: cause})
			}
			continue
		}
		warnings = append(warnings, s.fault(g, b.Path, b.String()+": the preview treats it as closed"))
	}
	return faults, warnings
}
