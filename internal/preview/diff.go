package preview

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Changes contains the differences between two sets within a time range.
type Changes struct {
	From, Until metav1.Time
	// Gates lists the Gates that differ, sorted by name.
	Gates []Change
}

// Kinds of changes.
const (
	// Added means that only the second set contains the Gate.
	Added = "added"
	// Removed means that only the first set contains the Gate.
	Removed = "removed"
	// Changed means that the state of the Gate, or of some of its targets, differs at some time.
	Changed = "changed"
)

// Change is the change of one Gate. The JSON format is public. kubectl gate adds the name.
type Change struct {
	// Gate is the namespace and name of the Gate.
	Gate string `json:"-"`
	// Change is one of Added, Removed and Changed.
	Change string `json:"change"`
	// Differences are the intervals in which the state of the Gate differs, in order and without overlaps, and then those for some of its
	// targets. There are none unless the Gate is Changed.
	Differences []Difference `json:"differences"`
}

// Difference is an interval in which the state of a Gate, or of some of its targets, differs from the state before.
type Difference struct {
	From   metav1.Time `json:"from"`
	Until  metav1.Time `json:"until"`
	Before Cause       `json:"before"`
	After  Cause       `json:"after"`
	// Targets are those of the exception or the request that decides. They are missing for a difference of the Gate itself.
	Targets []v1alpha1.TargetReference `json:"targets,omitempty"`
}

// Why returns what decides after the change and what decided before it, in a few words.
func (s Difference) Why() string {
	text := s.After.ShortReason() + ", was " + s.Before.ShortReason()
	if s.Targets != nil {
		text = "only " + gate.Only(s.Targets) + ": " + text
	}
	return text
}

// Diff returns the differences between two sets, and the warnings about the second set. The error is an InvalidError, or the error of the
// context given to Within.
func Diff(before, after *Set, r Range) (changes *Changes, warnings []Fault, err error) {
	old, ends, err := before.Brief().timelines(r)
	if err != nil {
		return nil, nil, err
	}
	next, warnings, err := after.Brief().timelines(r)
	if err != nil {
		return nil, nil, err
	}
	for _, end := range ends {
		if end.Incomplete && !slices.ContainsFunc(warnings, func(f Fault) bool { return f.Incomplete && f.Object == end.Object }) {
			warnings = append(warnings, end)
		}
	}
	changes = &Changes{From: metav1.NewTime(r.From), Until: metav1.NewTime(r.Until)}
	for _, t := range next {
		i := slices.IndexFunc(old, func(o Timeline) bool { return o.Gate == t.Gate })
		if i < 0 {
			changes.Gates = append(changes.Gates, Change{t.Gate, Added, []Difference{}})
			continue
		}
		differences := differing(old[i].Intervals, t.Intervals)
		for k := range differences {
			differences[k].explain(&old[i], &t)
		}
		b, a := before.side(&old[i], r), after.side(&t, r)
		differences = append(differences, differingTargets(b, a)...)
		if reached := schedule.Earlier(b.reached, a.reached); !reached.IsZero() {
			warnings = append(warnings, after.end(after.gate(t.Gate), &schedule.BudgetError{Reached: reached})...)
		}
		if len(differences) > 0 {
			changes.Gates = append(changes.Gates, Change{t.Gate, Changed, differences})
		}
	}
	for _, t := range old {
		if !slices.ContainsFunc(next, func(n Timeline) bool { return n.Gate == t.Gate }) {
			changes.Gates = append(changes.Gates, Change{t.Gate, Removed, []Difference{}})
		}
	}
	slices.SortFunc(changes.Gates, func(a, b Change) int { return strings.Compare(a.Gate, b.Gate) })
	return changes, slices.Concat(warnings, after.modes(before), after.wide(before)), nil
}

// explain sets the causes to the causes at the start of the interval. It keeps a cause if the cause at that instant belongs to another
// state or is unknown.
func (s *Difference) explain(before, after *Timeline) {
	if cause, ok := before.causeAt(s.From.Time); ok && cause.State == s.Before.State {
		s.Before = cause
	}
	if cause, ok := after.causeAt(s.From.Time); ok && cause.State == s.After.State {
		s.After = cause
	}
}

// differing returns the intervals in which the states of two timelines differ. Both must cover the same range.
func differing(before, after []Interval) (differences []Difference) {
	for i, j := 0, 0; i < len(before) && j < len(after); {
		b, a := before[i], after[j]
		from, until := b.From, b.Until
		if from.Before(&a.From) {
			from = a.From
		}
		if a.Until.Before(&until) {
			until = a.Until
		}
		if b.State != a.State {
			differences = append(differences, Difference{From: from, Until: until, Before: b.Cause, After: a.Cause})
		}
		if !until.Before(&b.Until) {
			i++
		}
		if !until.Before(&a.Until) {
			j++
		}
	}
	return differences
}

// Table writes changes as a table with one interval per line. Times are formatted as in RFC 3339, in zone. A Gate that is added or
// removed has one line.
func (c *Changes) Table(w io.Writer, zone *time.Location) error {
	if len(c.Gates) == 0 {
		_, err := fmt.Fprintf(w, "No gate changes its state from %s until %s.\n", in(zone, c.From), in(zone, c.Until))
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "GATE\tFROM\tUNTIL\tBEFORE\tAFTER\tDECIDED BY") //nolint:errcheck // Flush returns it
	for _, change := range c.Gates {
		for _, row := range change.rows(c, zone) {
			fmt.Fprintln(table, change.Gate+"\t"+strings.Join(row, "\t")) //nolint:errcheck // as above
		}
	}
	return table.Flush()
}

func (c *Change) rows(all *Changes, zone *time.Location) (rows [][]string) {
	switch c.Change {
	case Added:
		return [][]string{{in(zone, all.From), in(zone, all.Until), "no gate", "new gate", "-"}}
	case Removed:
		return [][]string{{in(zone, all.From), in(zone, all.Until), "gate", "no gate", "-"}}
	}
	for _, s := range c.Differences {
		rows = append(rows, []string{in(zone, s.From), in(zone, s.Until), s.Before.State, s.After.State, format.Printable(s.Why())})
	}
	return rows
}
