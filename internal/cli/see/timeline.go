package see

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// Columns of a timeline.
const (
	// defaultColumns is the width used if the output is not a terminal.
	defaultColumns = 100
	minColumns     = 60
	minBar         = 20
)

// timelineFlags are the flags of list --timeline.
type timelineFlags struct {
	*term.Span
	*term.Output
	wanted bool
}

// newTimelineFlags adds the flags of timelines to a command, and validates them before it runs.
func newTimelineFlags(cmd *cobra.Command, out *term.Output) *timelineFlags {
	f := &timelineFlags{Span: term.NewSpan(cmd, 7, 366, "With --timeline: "), Output: out}
	cmd.Flags().BoolVar(&f.wanted, "timeline", false, "Print the next days as a bar for each gate, with the exceptions.")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return f.check(cmd) }
	return f
}

// check returns an error if flags exclude each other.
func (f *timelineFlags) check(cmd *cobra.Command) error {
	switch name, isSet := f.IsSet(); {
	case !f.wanted && isSet:
		return errors.New(name + " needs --timeline")
	case f.wanted && *f.OutputFormat != "":
		return fmt.Errorf("--timeline cannot be combined with -o %s: kubectl gate preview -o json prints the same data", *f.OutputFormat)
	case f.wanted && cmd.Flags().Changed("watch"):
		return errors.New("--watch prints a table: omit --timeline")
	}
	return f.Check()
}

// printTimeline prints the next days of Gates as bars. It returns false and prints nothing if the terminal is too narrow.
func printTimeline(ctx context.Context, t *term.Terminal, c *kube.Cluster, sc kube.Scope, f *timelineFlags) (printed bool, err error) {
	r, err := term.ParseSpan(t, "", f.Span)
	if err != nil {
		return true, err
	}
	columns := term.Width(t.Out)
	if columns == 0 {
		columns = defaultColumns
	}
	if columns < minColumns {
		t.Warn("the terminal has %d columns and a timeline needs %d: printing the table", columns, minColumns)
		return false, nil
	}
	gates, err := c.Gates(ctx, sc)
	if err != nil {
		return true, err
	}
	if len(gates) == 0 {
		fmt.Fprintln(t.ErrOut, kube.NoGatesMessage(c.Namespace, sc.All))
		return true, nil
	}
	slices.SortFunc(gates, func(a, b *v1alpha1.Gate) int { return strings.Compare(kube.FullName(a), kube.FullName(b)) })
	report, _, err := kube.PreviewSet(ctx, t, c, gates).Preview(r)
	if err != nil {
		return true, err
	}
	rows, taken := make([][]string, len(gates)), len("NAME")+len("unknown")
	for i, g := range gates {
		name := g.Name
		if sc.All {
			name = kube.FullName(g)
		}
		if g.Audits() {
			name += " (audit)"
		}
		rows[i] = []string{name, t.PaintState(describe.State(g)) + describe.Overlaid(g)}
		taken = max(taken, len(name)+max(len("unknown"), len(describe.State(g)+describe.Overlaid(g))))
	}
	room := columns - taken - 2*3
	if room < minBar {
		t.Warn("the names of the gates leave %d columns for a timeline and it needs %d: printing the table", max(0, room), minBar)
		return false, nil
	}
	for i := range rows {
		rows[i] = append(rows[i], paintBar(t, report.Gates[i].Bar(r, room)))
	}
	if err := f.Table(t.Out).Print([]string{"NAME", "STATE", r.Axis(room)}, rows...); err != nil || f.NoHeaders {
		return true, err
	}
	t.Line("%c opened   %c closed   %c both   | midnight %s", preview.BarOpened, preview.BarClosed, preview.BarBoth, r.From.Format("MST"))
	return true, nil
}

// paintBar colors a bar. Equal adjacent characters share one escape sequence.
func paintBar(t *term.Terminal, bar string) string {
	colors := map[rune]string{preview.BarOpened: term.Green, preview.BarClosed: term.Red, preview.BarBoth: term.Yellow}
	var text strings.Builder
	runes := []rune(bar)
	for begin := 0; begin < len(runes); {
		end := begin
		for end < len(runes) && runes[end] == runes[begin] {
			end++
		}
		text.WriteString(t.Paint(colors[runes[begin]], string(runes[begin:end])))
		begin = end
	}
	return text.String()
}
