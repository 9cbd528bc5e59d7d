package schedule

// layer is one row of the decision table: if one of its periods covers an instant it decides, else the next row does.
type layer struct {
	state   State
	reason  Reason
	periods []Period
	// within bounds the periods.
	within span
	// by names the row. Empty, its periods have names of their own.
	by string

	// latest is what find found last, and cursors has the same for each period.
	latest  finding
	cursors []cursor
}

// cursor stores where a period was searched last: it covers all of [from, edge), or nothing of it.
type cursor struct {
	covered    bool
	from, edge int64
	// valid is until when the cursor may be used: edge, but a period may also begin later than its search can see.
	valid int64
}

// finding is what a row is at an instant. If it is covered, edge is the latest end of the periods that cover the instant, and by
// is that one. If not, edge is the earliest start.
type finding struct {
	cursor
	by *Period
	// exact is as in find.
	exact bool
}

// find returns what a row is at t. A search goes from edge to edge, so most periods are as they were found last, and only
// the others cost a lookup.
//
// A period that covers t may have got a later edge since it was found, because the next of its intervals overlaps. This changes no state,
// but it may change which period has the latest edge. Only if exact, such periods are looked up again.
func (l *layer) find(t int64, exact bool, b *Budget) finding {
	if t >= l.within.until {
		return finding{cursor: cursor{edge: never}}
	}
	if f := &l.latest; !f.holds(t, exact && (!f.exact || f.from != t)) {
		*f = l.lookUp(t, exact, b)
	}
	return l.latest
}

// holds returns whether a cursor says what there is at t. If it must be exact, one that covers t has to be from t.
func (c *cursor) holds(t int64, exact bool) bool {
	return t >= c.from && t < c.valid && (!exact || !c.covered)
}

// rest is for how long a cursor without an edge is used.
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
