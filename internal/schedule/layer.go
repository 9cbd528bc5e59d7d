package schedule

// layer is a row of the decision table. It determines the state at instants covered by one of its periods. At other instants, the next row
// applies.
type layer struct {
	state   State
	reason  Reason
	periods []Period
	// within bounds the periods.
	within span
	// by is the name of the row. If it is empty, each period has its own name.
	by string

	// latest is the last result of find, and cursors holds the last result for each period.
	latest  finding
	cursors []cursor
}

// cursor stores the result of a search in a period: the period covers all of [from, edge), or none of it.
type cursor struct {
	covered    bool
	from, edge int64
	// valid is the instant at which the cursor stops being valid: edge, or rest after from if that is earlier.
	valid int64
}

// finding is the state of a row at an instant. If the row covers the instant, by is the covering period that ends last, and edge is its
// end. Otherwise, edge is the time when the next period starts.
type finding struct {
	cursor
	by *Period
	// exact is the argument that was passed to find.
	exact bool
}

// find returns the state of a row at t. A search goes from edge to edge, so most cursors are still valid, and only the other periods need a
// lookup.
//
// The interval of a period that covers t may have become longer since its lookup, because the next interval overlaps. This does not change
// the state, but it may change which period ends last. These periods are looked up again only if exact is set.
func (l *layer) find(t int64, exact bool, b *Budget) finding {
	if t >= l.within.until {
		return finding{cursor: cursor{edge: never}}
	}
	if f := &l.latest; !f.holds(t, exact && (!f.exact || f.from != t)) {
		*f = l.lookUp(t, exact, b)
	}
	return l.latest
}

// holds returns whether a cursor is still valid at t. If exact is set, a cursor that covers t is not, see find.
func (c *cursor) holds(t int64, exact bool) bool {
	return t >= c.from && t < c.valid && (!exact || !c.covered)
}

// rest is the longest time for which a cursor is used, because a search for an edge does not reach further than horizon.
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
