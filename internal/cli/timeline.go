package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// Columns of a timeline.
const (
	// assumedColumns is how many there are if nobody sees them.
	assumedColumns = 100
	leastColumns   = 60
	leastBar       = 20
)

// timelineFlags are those of list --timeline.
type timelineFlags struct {
	wanted bool
	days   int
}

// newTimelineFlags adds them to a command, which refuses those that do not go together before it runs.
func newTimelineFlags(cmd *cobra.Command, out *output) *timelineFlags {
	f := &timelineFlags{}
	cmd.Flags().BoolVar(&f.wanted, "timeline", false, "Print the next days as a bar for each gate, with the exceptions.")
	cmd.Flags().IntVar(&f.days, "days", 7, "With --timeline: how many days, from 1 to 366.")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return f.check(cmd, out) }
	return f
}

// check refuses flags that do not go together.
func (f *timelineFlags) check(cmd *cobra.Command, out *output) error {
	switch {
	case !f.wanted && cmd.Flags().Changed("days"):
		return errors.New("--days needs --timeline")
	case f.wanted && *out.OutputFormat != "":
		return fmt.Errorf("--timeline is not for -o %s: kubectl gate preview -o json has the same for programs", *out.OutputFormat)
	case f.wanted && cmd.Flags().Changed("watch"):
		return errors.New("--watch prints a table: leave --timeline out")
	case f.days < 1 || f.days > 366:
		return fmt.Errorf("--days %d: use a number from 1 to 366", f.days)
	}
	return nil
}

// timeline prints the next days of Gates. It returns false if there is no room for that, and prints nothing then.
func (s *session) timeline(ctx context.Context, c *cluster, sc scope, r preview.Range, out *output) (printed bool, err error) {
	columns := widthOf(s.Out)
	if columns == 0 {
		columns = assumedColumns
	}
	if columns < leastColumns {
		s.warn("the terminal has %d columns and a timeline needs %d, this is the table", columns, leastColumns)
		return false, nil
	}
	gates, err := c.gates(ctx, sc)
	if err != nil {
		return true, err
	}
	if len(gates) == 0 {
		fmt.Fprintln(s.ErrOut, noGates(c.namespace, sc.all))
		return true, nil
	}
	slices.SortFunc(gates, func(a, b *v1alpha1.Gate) int { return strings.Compare(nameOfGate(a), nameOfGate(b)) })
	report, _, err := s.setOf(ctx, c, gates).Preview(r)
	if err != nil {
		return true, err
	}
	rows, taken := make([][]string, len(gates)), len("NAME")+len("unknown")
	for i, g := range gates {
		name := g.Name
		if sc.all {
			name = nameOfGate(g)
		}
		rows[i] = []string{name, s.paintState(stateOf(g))}
		taken = max(taken, len(name)+len("unknown"))
	}
	room := columns - taken - 2*3
	if room < leastBar {
		s.warn("the names of the gates leave %d columns for a timeline and it needs %d, this is the table", max(0, room), leastBar)
		return false, nil
	}
	for i := range rows {
		rows[i] = append(rows[i], s.paintBar(report.Gates[i].Bar(r, room)))
	}
	if err := out.table(s.Out).print([]string{"NAME", "STATE", r.Axis(room)}, rows...); err != nil || out.noHeaders {
		return true, err
	}
	s.say("%c opened   %c closed   %c both   | midnight %s", preview.BarOpened, preview.BarClosed, preview.BarBoth, r.From.Format("MST"))
	return true, nil
}

// timelineRange returns the next days.
func timelineRange(now time.Time, days int) preview.Range {
	from := now.Truncate(time.Second)
	return preview.Range{From: from, Until: from.AddDate(0, 0, days)}
}

// paintBar colors a bar, run by run.
func (s *session) paintBar(bar string) string {
	colors := map[rune]string{preview.BarOpened: green, preview.BarClosed: red, preview.BarBoth: yellow}
	var text strings.Builder
	runes := []rune(bar)
	for begin := 0; begin < len(runes); {
		end := begin
		for end < len(runes) && runes[end] == runes[begin] {
			end++
		}
		text.WriteString(s.paint(colors[runes[begin]], string(runes[begin:end])))
		begin = end
	}
	return text.String()
}
