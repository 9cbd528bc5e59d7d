package ical

import (
	"cmp"
	"fmt"
	"slices"
)

// version identifies an event. It is equal for all versions of the event.
type version struct {
	uid, component string
	changed, date  bool
	at             int64
}

// events returns all events, and marks those that another version supersedes.
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

// byVersion returns groups of events that are versions of the same event, in the order of the text. Events without a UID are in no group.
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

// place converts a RECURRENCE-ID to the form of its series, which starts at start. A time without a zone is in the zone of the series.
func (e *event) place(start moment) {
	if e.instance.floating && !e.instance.date && !start.floating {
		e.instance.zone = start.zone
	}
	*e.instance = e.instance.of(start)
}

// supersede marks all versions but the latest as superseded. Versions with the same SEQUENCE that start at different times may be different
// events, because some programs give all events the same UID. choose decides which of them count. supersede returns an error if it cannot
// determine which of two different versions is later.
func supersede(versions []*event) error {
	latest := versions[0]
	for _, e := range versions {
		if e.sequence > latest.sequence {
			latest = e
		}
	}
	var starts []*event // the latest version for each start
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

// choose decides which events count if several with the same UID and SEQUENCE start at different times. In close periods, all of them
// count. In open periods, only the one with the latest DTSTAMP counts.
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
			"both count in close periods, but only the one with the latest DTSTAMP counts in open periods", quote(e.uid), latest.line))
	}
}

// supersededBy marks an event as superseded.
func (e *event) supersededBy(other *event) {
	e.superseded, e.discounted = true, fmt.Sprintf("the event in line %d is a later version of it", other.line)
}

// later returns the later of two versions with the same SEQUENCE, and marks the other one as superseded. It returns an error if they
// differ, but have the same DTSTAMP.
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
