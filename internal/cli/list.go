package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/preview"
)

func NewListCommand(k *session) *cobra.Command {
	var sc scope
	cmd := &cobra.Command{
		Use:     "list [NAME...]",
		Aliases: []string{"get", "ls"},
		Short:   "List Gates: what they are, why and until when",
		Example: `  # The Gates of a namespace
  kubectl gate list -n flux-system

  # All that are not ready, in all namespaces
  kubectl gate list -A --status-selector ready=false

  # The next two weeks as a picture
  kubectl gate list --timeline --days 14`,
	}
	scopeFlags(cmd, &sc)
	w := newWatchFlags(cmd)
	out := newOutput(cmd)
	days := newTimelineFlags(cmd, out)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		sc.names = args
		c, now, err := k.begin()
		if err != nil {
			return err
		}
		if err := w.check(out); err != nil {
			return err
		}
		if days.wanted {
			if printed, err := printTimeline(cmd.Context(), k.terminal, c, sc, days); printed || err != nil {
				return err
			}
		}
		if !out.isTable() {
			gates, err := c.gates(cmd.Context(), sc)
			if err != nil {
				return err
			}
			return printGates(out, k.Out, gates)
		}
		rows, err := gateRows(cmd.Context(), k.terminal, c, sc, now, out.isWide())
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			fmt.Fprintln(k.ErrOut, sc.none(c.namespace))
		}
		table := out.table(k.Out)
		if len(rows) > 0 || w.wanted {
			err = table.print(gateHeaders(now, sc.all, out.isWide()), rows...)
		}
		if err != nil || !w.wanted {
			return err
		}
		return runWatch(cmd.Context(), k.terminal, c, sc, w, func(ctx context.Context) error { return watchGates(ctx, k.terminal, c, sc, table, rows) })
	}
	return cmd
}

// gateRows returns the rows of the Gates of a scope, in their order.
func gateRows(ctx context.Context, t *terminal, c *cluster, sc scope, now time.Time, wide bool) (rows [][]string, err error) {
	add := func(g *v1alpha1.Gate) { rows = append(rows, gateRow(t, g, now, sc.all, wide)) }
	if len(sc.names) == 0 {
		err = c.eachGate(ctx, sc, add)
	} else {
		var gates []*v1alpha1.Gate
		gates, err = c.gates(ctx, sc)
		for _, g := range gates {
			add(g)
		}
	}
	slices.SortFunc(rows, slices.Compare[[]string])
	return rows, err
}

// scopeFlags adds the flags that choose Gates.
func scopeFlags(cmd *cobra.Command, sc *scope) {
	cmd.Flags().BoolVarP(&sc.all, "all-namespaces", "A", false, "The gates of all namespaces.")
	cmd.Flags().StringVarP(&sc.selector, "selector", "l", "", "Only gates with these labels, such as team=payments,tier!=test.")
	cmd.Flags().StringVar(&sc.statusOfReady, "status-selector", "", "Only gates with this condition, such as ready=false or opened=true.")
}

// none says that no Gate is there, or that none matches.
func (sc scope) none(namespace string) string {
	if sc.selector != "" || sc.statusOfReady != "" {
		return "No gate matches."
	}
	return noGates(namespace, sc.all)
}

func noGates(namespace string, all bool) string {
	if all {
		return "There are no gates."
	}
	return fmt.Sprintf("There are no gates in namespace %q. Add -A for all namespaces.", namespace)
}

func gateHeaders(now time.Time, namespaces, wide bool) []string {
	headers := []string{"NAME", "STATE", "REASON", timeHeader("NEXT", now), "HELD", "REQUESTED BY"}
	if namespaces {
		headers = append([]string{"NAMESPACE"}, headers...)
	}
	if wide {
		headers = append(headers, "READY", "MESSAGE")
	}
	return headers
}

// gateRow says what a Gate is, in the columns of gateHeaders.
func gateRow(t *terminal, g *v1alpha1.Gate, now time.Time, namespaces, wide bool) []string {
	row := []string{g.Name, t.paintState(stateOf(g)), reasonOf(g) + waveIn(g), "-", heldOf(g), "-"}
	if waits := waitsInWords(g, now); waits != "" {
		row[2] += ", " + waits
	}
	if next := g.Status.NextTransition; next != nil {
		row[3] = formatUntil(next.At.Time, now)
	}
	if by := ledger.DecidedBy(g, now); by != nil {
		row[5] = cmp.Or(by.By, "unknown")
	}
	if namespaces {
		row = append([]string{g.Namespace}, row...)
	}
	if wide {
		ready, message := "Unknown", ""
		if c := meta.FindStatusCondition(g.Status.Conditions, fluxmeta.ReadyCondition); c != nil {
			ready = string(c.Status)
		}
		if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition); c != nil {
			message = c.Message
		}
		row = append(row, ready, message)
	}
	return row
}

// unknownState is that of a Gate on which the controller has not decided.
const unknownState = "unknown"

// stateOf returns the state of a Gate as its status says it.
func stateOf(g *v1alpha1.Gate) string {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	switch {
	case opened == nil:
		return unknownState
	case opened.Status == metav1.ConditionTrue:
		return string(v1alpha1.StateOpened)
	}
	return string(v1alpha1.StateClosed)
}

// paintState colors a state at the beginning of a text.
func (t *terminal) paintState(state string) string {
	switch state {
	case string(v1alpha1.StateOpened):
		return t.paint(green, state)
	case string(v1alpha1.StateClosed):
		return t.paint(red, state)
	}
	return t.paint(yellow, state)
}

// reasonOf says in two or three words why a Gate is what it is.
func reasonOf(g *v1alpha1.Gate) string {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	if opened == nil {
		return "not decided yet"
	}
	by := ""
	if last := g.Status.LastTransition; last != nil {
		by = last.DecidedBy()
	}
	text := words(opened.Reason, by)
	if g.Audits() {
		text += ", audit"
	}
	if g.Spec.Suspend {
		text += ", suspended"
	}
	return text
}

// words puts a reason of the condition Opened, and what decided, into words.
func words(reason, by string) string { return preview.Words(reason, by) }

// heldOf says how many targets of a Gate are held, of how many, and how many would be.
func heldOf(g *v1alpha1.Gate) string {
	if g.Status.Targets == nil {
		return "-"
	}
	text := fmt.Sprintf("%d/%d", g.Status.Targets.Held, g.Status.Targets.Total)
	if g.Audits() {
		text += fmt.Sprintf(" (%d would be held)", g.Status.Targets.WouldHold)
	}
	return text
}

// waveIn says which wave a Gate releases, empty if it releases none.
func waveIn(g *v1alpha1.Gate) string {
	switch {
	case !isInWaves(g):
		return ""
	case meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ReleaseStoppedCondition):
		return ", stopped at wave " + g.Status.Release.Waves.Current
	}
	return ", wave " + g.Status.Release.Waves.Current
}

// statusSelector returns which Gates have a condition, such as ready=false.
func statusSelector(text string) (func(*v1alpha1.Gate) bool, error) {
	if text == "" {
		return func(*v1alpha1.Gate) bool { return true }, nil
	}
	name, value, ok := strings.Cut(text, "=")
	if !ok || !slices.Contains([]string{"true", "false", "unknown"}, strings.ToLower(value)) {
		return nil, fmt.Errorf("--status-selector %q: write a condition and true, false or unknown, such as ready=false", text)
	}
	return func(g *v1alpha1.Gate) bool {
		i := slices.IndexFunc(g.Status.Conditions, func(c metav1.Condition) bool { return strings.EqualFold(c.Type, name) })
		if i < 0 {
			return strings.EqualFold(value, "unknown")
		}
		return strings.EqualFold(string(g.Status.Conditions[i].Status), value)
	}, nil
}
