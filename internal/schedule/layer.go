package schedule

// layer is one row of the decision table: if one of its periods covers an instant, it decides, otherwise the next row does.
type layer struct {
	state   State
	reason  Reason
	periods []Period
	// within bounds the periods.
	within span
	// by names the row. If it is empty, the periods have their own names.
	by string

	// latest is the last finding, and cursors has the same for each period.
	latest  finding
	cursors []cursor
}

// cursor stores the last finding for a period: the period covers all of [from, edge), or nothing of it.
type cursor struct {
	covered    bool
	from, edge int64
	// valid bounds the use of the cursor: it ends at edge, or earlier if a period may begin later than its search reaches.
	valid int64
}

// finding is the state of a row at an instant. If the row covers it, edge is the latest end of the periods that cover the instant, and by
// is that period. If not, edge is the earliest start.
type finding struct {
	cursor
	by *Period
	// exact is as in find.
	exact bool
}

// find returns the state of a row at t. A search goes from edge to edge, so most periods are unchanged since the last finding, and only the
// others need a lookup.
//
// The edge of a period that covers t may have moved later since it was found, because its next interval overlaps. That changes no state,
// but may change which period has the latest edge. Such periods are looked up again only if exact.
func (l *layer) find(t int64, exact bool, b *Budget) finding {
	if t >= l.within.until {
		return finding{cursor: cursor{edge: never}}
	}
	if f := &l.latest; !f.holds(t, exact && (!f.exact || f.from != t)) {
		*f = l.lookUp(t, exact, b)
	}
	return l.latest
}

// holds returns whether a cursor is valid at t. If exact, a cursor that covers t must have been found at t.
func (c *cursor) holds(t int64, exact bool) bool {
	return t >= c.from && t < c.valid && (!exact || !c.covered)
}

// rest is how long a cursor without an edge is valid.
const rest = 366 * day

func newCursor(t int64, covered bool, edge int64) cursor {
	return cursor{covered: covered, from: t, edge: edge, valid: min(edge, t+rest)}
}

func (l *layer) lookUp(t int64, exact bool, b *Budget) finding {
	if l.cursors == nil {
		l.cursors = make([]cursor, len(l.periods))
	}
	from, found := max(t, l.within.from), finding{exact: exact}
	covered, edge := false, never
	for i := range l.periods {
		c := &l.cursors[i]
		if !c.holds(from, exact && c.from != from) {
			b.spend(1)
			isCovered, e := l.periods[i].find(from)
			*c = newCursor(from, isCovered, e)
		}
		switch {
		case c.covered && (!covered || c.edge > edge):
			covered, edge, found.by = true, c.edge, &l.periods[i]
		case !c.covered && !covered:
			edge = min(edge, c.edge)
		}
	}
	switch {
	case covered && t < from:
		covered, edge, found.by = false, from, nil
	case covered:
		edge = min(edge, l.within.until)
	case edge >= l.within.until:
		edge = never
	}
	found.cursor = newCursor(t, covered, edge)
	return found
}

func (l *layer) decide(t, edge int64, by *Period, starts [2]int64) moment {
	m := moment{
		start: t, state: l.state, reason: l.reason, by: l.by,
		until: min(edge, starts[Closed], starts[Opened]),
		flip:  min(edge, starts[1-l.state]),
	}
	if l.by == "" && by != nil {
		m.by, m.period = by.name, by
	}
	return m
}
