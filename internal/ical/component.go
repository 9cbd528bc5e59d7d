package ical

import (
	"fmt"
	"strings"
)

// component is the content between BEGIN and END.
type component struct {
	line       int
	name       string
	properties []property
	children   []*component
}

// errorf returns an error about the component. The formatted cause continues a sentence that begins with the name of the component.
func (c *component) errorf(format string, args ...any) error {
	return &Error{c.line, c.name, fmt.Sprintf(format, args...)}
}

// all returns the properties with a name.
func (c *component) all(name string) (all []*property) {
	for i := range c.properties {
		if c.properties[i].name == name {
			all = append(all, &c.properties[i])
		}
	}
	return all
}

// one returns the property with a name, nil if there is none. It returns an error if there are two.
func (c *component) one(name string) (*property, error) {
	var found *property
	for i := range c.properties {
		if c.properties[i].name != name {
			continue
		}
		if found != nil {
			return nil, c.properties[i].errorf("occurs twice, first in line %d", found.line)
		}
		found = &c.properties[i]
	}
	return found, nil
}

// same returns whether two components have the same properties and children. It returns false if a child has children of its own.
func (c *component) same(other *component) bool {
	if len(c.properties) != len(other.properties) || len(c.children) != len(other.children) {
		return false
	}
	for i, p := range c.properties {
		o := other.properties[i]
		if p.name != o.name || p.params != o.params || p.value != o.value {
			return false
		}
	}
	for i, child := range c.children {
		// Children of children are not compared: no relevant component has any that matter.
		if child.name != other.children[i].name || len(child.children) > 0 || !child.same(other.children[i]) {
			return false
		}
	}
	return true
}

// The components that are read. All others are ignored.
const (
	vcalendar = "VCALENDAR"
	vevent    = "VEVENT"
	vtimezone = "VTIMEZONE"
	vfreebusy = "VFREEBUSY"
)

// parse returns the VCALENDARs of a text, at least one unless there is an error. wrong lists the errors in lines, which are skipped. err is
// an error in the structure, after which no further lines are read. It is nil if wrong contains the cause.
func parse(text string) (calendars []*component, wrong Errors, err error) {
	lines, wrong := unfold(strings.TrimPrefix(text, bom))
	calendars, more, err := assemble(lines)
	if wrong = append(wrong, more...); len(calendars) == 0 && len(wrong) > 0 {
		err = nil // wrong contains the cause
	}
	return calendars, wrong, err
}

// assemble builds the VCALENDARs from lines. The errors are as for parse.
func assemble(lines []line) (calendars []*component, wrong Errors, err error) {
	var open []*component
	events := 0
	for _, l := range lines {
		if len(open) == 0 {
			// If the text consists of several files, each may begin with a byte order mark.
			l.text = strings.TrimPrefix(l.text, bom)
		}
		p, err := parseProperty(l)
		if err != nil {
			wrong.add(err)
			continue
		}
		name := strings.ToUpper(strings.TrimSpace(p.value))
		switch {
		case p.name == "BEGIN":
			c := &component{line: l.number, name: name}
			if err := c.mayBeIn(open); err != nil {
				return nil, wrong, err
			}
			if c.isEvent() {
				events++
			}
			if events > MaxEvents {
				return nil, wrong, c.errorf("is one of more than %d", MaxEvents)
			}
			if len(open) == 0 {
				calendars = append(calendars, c)
			} else {
				open[len(open)-1].children = append(open[len(open)-1].children, c)
			}
			open = append(open, c)
		case len(open) == 0:
			return nil, wrong, p.errorf("is outside of a VCALENDAR")
		case p.name != "END":
			open[len(open)-1].properties = append(open[len(open)-1].properties, p)
		case open[len(open)-1].name != name:
			last := open[len(open)-1]
			return nil, wrong, p.errorf("has %s, but %s of line %d comes first", quote(name), quote(last.name), last.line)
		default:
			open = open[:len(open)-1]
		}
	}
	switch {
	case len(open) > 0:
		return nil, wrong, open[len(open)-1].errorf("has no END: the text is cut off")
	case len(calendars) == 0:
		return nil, wrong, &Error{1, vcalendar, "is missing: this is not an iCalendar text"}
	}
	return calendars, wrong, nil
}

// isEvent returns whether a component is a VEVENT, or a VFREEBUSY, whose busy times count as an event.
func (c *component) isEvent() bool { return c.name == vevent || c.name == vfreebusy }

// mayBeIn returns an error if the component would be ignored at this place. open are the components that enclose it, from the outermost to
// the innermost.
func (c *component) mayBeIn(open []*component) error {
	switch {
	case len(open) == 0:
		if c.name != vcalendar {
			return &Error{c.line, "BEGIN", fmt.Sprintf("has %s outside of a VCALENDAR", quote(c.name))}
		}
	case c.name == vcalendar, (c.isEvent() || c.name == vtimezone) && len(open) > 1:
		outer := open[len(open)-1]
		return c.errorf("is within %s of line %d", quote(outer.name), outer.line)
	}
	return nil
}
