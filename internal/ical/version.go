package ical

import (
	"cmp"
	"fmt"
	"slices"
)

// version has the common properties of the versions of an event.
type version struct {
	uid, component string
	changed, date  bool
	at             int64
}

// events returns all events. Superseded ones do not count.
func (r *reader) events(calendars []*component, wrong *Errors) []*event {
	var events []*event
	for _, calendar := range calendars {
		r.zones = newZones(calendar)
		for _, c := range calendar.children {
			if !c.isEvent() {
				continue
			}
			e, err := r.identify(c)
			if err != nil {
				wrong.add(err)
				continue
			}
			events = append(events, e)
		}
	}
	for _, versions := range byVersion(events) {
		wrong.add(supersede(versions))
	}
	return events
}

// byVersion groups events that are versions of the same one, in the order of the text.
func byVersion(events []*event) [][]*event {
	series := map[string]moment{}
	for _, e := range events {
		if _, ok := series[e.uid]; !ok && e.instance == nil && e.start != nil {
			series[e.uid] = *e.start
		}
	}
	var all [][]*event
	index := map[version]int{}
	for _, e := range events {
		if e.uid == "" {
			continue
		}
		v := version{uid: e.uid, component: e.component.name}
		if e.instance != nil {
			if start, ok := series[e.uid]; ok {
				e.place(start)
			}
			v.changed, v.date, v.at = true, e.instance.date, e.instance.at()
		}
		i, ok := index[v]
		if !ok {
			i, index[v] = len(all), len(all)
			all = append(all, nil)
		}
		all[i] = append(all[i], e)
	}
	return all
}

// place converts a RECURRENCE-ID to the form of its series: a time without a zone is in that of the series.
func (e *event) place(start moment) {
	if e.instance.floating && !e.instance.date && !start.floating {
		e.instance.zone = start.zone
	}
	*e.instance = e.instance.of(start)
}

// supersede keeps only the latest version. If versions with the same SEQUENCE start at different times, they may not be versions at all,
// but events of a program that gives all of them the same UID. Then all of them close, and only the one with the latest DTSTAMP opens.
func supersede(versions []*event) error {
	latest := versions[0]
	for _, e := range versions {
		if e.sequence > latest.sequence {
			latest = e
		}
	}
	var starts []*event // the latest version of each start
	index := map[int64]int{}
	known := !slices.ContainsFunc(versions, func(e *event) bool { return e.instance != nil || e.start == nil })
	for _, e := range versions {
		if e.sequence < latest.sequence {
			e.supersededBy(latest)
			continue
		}
		var at int64
		if known {
			at = e.start.at()
		}
		i, ok := index[at]
		if !ok {
			index[at] = len(starts)
			starts = append(starts, e)
			continue
		}
		var err error
		if starts[i], err = later(starts[i], e); err != nil {
			return err
		}
	}
	choose(starts)
	return nil
}

// choose makes all events close, and only the one with the latest DTSTAMP open.
func choose(starts []*event) {
	latest := starts[0]
	for _, e := range starts[1:] {
		if e.stamp > latest.stamp {
			latest = e
		}
	}
	for _, e := range starts {
		if e == latest || e.discounted != "" {
			continue
		}
		if e.stamp == latest.stamp {
			e.ambiguous = e.component.errorf("has the same UID %s and SEQUENCE as the event in line %d, but another start, "+
				"and their DTSTAMPs do not show which one is later", quote(e.uid), latest.line)
		}
		e.closesOnly = fmt.Sprintf("the event in line %d has the same UID and SEQUENCE, and a later DTSTAMP", latest.line)
		e.warnings.add(e.component.errorf("has the same UID %s and SEQUENCE as the event in line %d, but another start: "+
			"in close periods both count, in periods that open only the one with the latest DTSTAMP", quote(e.uid), latest.line))
	}
}

// supersededBy marks an event as superseded.
func (e *event) supersededBy(other *event) {
	e.superseded, e.discounted = true, fmt.Sprintf("the event in line %d is a later version of it", other.line)
}

// later returns the later of two versions of an event with the same SEQUENCE. The other one does not count.
func later(a, b *event) (*event, error) {
	switch order := cmp.Compare(a.stamp, b.stamp); {
	case order > 0:
		b.supersededBy(a)
		return a, nil
	case order < 0:
		a.supersededBy(b)
		return b, nil
	case a.component.same(b.component):
		b.superseded, b.discounted = true, fmt.Sprintf("the event in line %d is the same", a.line)
		return a, nil
	}
	return nil, b.component.errorf("has the duplicate UID %s (also on line %d) with different content; SEQUENCE and DTSTAMP do not show which one is later", quote(b.uid), a.line)
}
