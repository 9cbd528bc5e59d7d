// Package see contains the commands that show the state of Gates and of the installation.
package see

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// NewListCommand returns the command list.
func NewListCommand(k *kube.Factory) *cobra.Command {
	var sc kube.Scope
	cmd := &cobra.Command{
		Use:     "list [NAME...]",
		Aliases: []string{"get", "ls"},
		Short:   "List Gates with their state, its reason, and the next transition",
		Example: `  # The Gates of a namespace
  kubectl gate list -n flux-system

  # All that are not ready, in all namespaces
  kubectl gate list -A --status-selector ready=false

  # The next two weeks as a picture
  kubectl gate list --timeline --days 14`,
	}
	kube.AddScopeFlags(cmd, &sc)
	w := newWatchFlags(cmd)
	out := term.NewOutput(cmd)
	days := newTimelineFlags(cmd, out)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		sc.Names = args
		c, now, err := k.Connect()
		if err != nil {
			return err
		}
		if err := w.check(out); err != nil {
			return err
		}
		if days.wanted {
			if printed, err := printTimeline(cmd.Context(), k.Terminal, c, sc, days); printed || err != nil {
				return err
			}
		}
		if !out.IsTable() {
			gates, err := c.Gates(cmd.Context(), sc)
			if err != nil {
				return err
			}
			return printGates(out, k.Out, gates)
		}
		rows, err := gateRows(cmd.Context(), k.Terminal, c, sc, now, out.IsWide())
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			fmt.Fprintln(k.ErrOut, sc.NoneMessage(c.Namespace))
		}
		table := out.Table(k.Out)
		if len(rows) > 0 || w.wanted {
			err = table.Print(gateHeaders(now, sc.All, out.IsWide()), rows...)
		}
		if err != nil || !w.wanted {
			return err
		}
		return runWatch(cmd.Context(), k.Terminal, c, sc, w, func(ctx context.Context) error { return watchGates(ctx, k.Terminal, c, sc, table, rows) })
	}
	return cmd
}

// gateRows returns the rows of the Gates of a scope, sorted.
func gateRows(ctx context.Context, t *term.Terminal, c *kube.Cluster, sc kube.Scope, now time.Time, wide bool) (rows [][]string, err error) {
	add := func(g *v1alpha1.Gate) { rows = append(rows, gateRow(t, g, now, sc.All, wide)) }
	if len(sc.Names) == 0 {
		err = c.EachGate(ctx, sc, add)
	} else {
		var gates []*v1alpha1.Gate
		gates, err = c.Gates(ctx, sc)
		for _, g := range gates {
			add(g)
		}
	}
	slices.SortFunc(rows, slices.Compare[[]string])
	return rows, err
}

func gateHeaders(now time.Time, namespaces, wide bool) []string {
	headers := []string{"NAME", "STATE", "REASON", term.TimeHeader("NEXT", now), "HELD", "REQUESTED BY"}
	if namespaces {
		headers = append([]string{"NAMESPACE"}, headers...)
	}
	if wide {
		headers = append(headers, "READY", "MESSAGE")
	}
	return headers
}

// gateRow returns the columns of gateHeaders for a Gate.
func gateRow(t *term.Terminal, g *v1alpha1.Gate, now time.Time, namespaces, wide bool) []string {
	row := []string{g.Name, t.PaintState(describe.State(g)) + describe.Overlaid(g), describe.Reason(g) + waveIn(g), "-", heldCount(g), "-"}
	if waits := describe.ToApprove(g, now); waits != "" {
		row[2] += ", " + waits
	}
	if next := g.Status.NextTransition; next != nil {
		row[3] = term.FormatUntil(next.At.Time, now)
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

// heldCount returns how many of the targets of a Gate are held, and for mode Audit how many would be held.
func heldCount(g *v1alpha1.Gate) string {
	if g.Status.Targets == nil {
		return "-"
	}
	text := fmt.Sprintf("%d/%d", g.Status.Targets.Held, g.Status.Targets.Total)
	if g.Audits() {
		text += fmt.Sprintf(" (%d would be held)", g.Status.Targets.WouldHold)
	}
	return text
}

// waveIn returns a text about the current wave of a Gate, to be appended to the reason. It is empty if there is no current wave.
func waveIn(g *v1alpha1.Gate) string {
	switch {
	case !describe.IsInWaves(g):
		return ""
	case meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ReleaseStoppedCondition):
		return ", stopped at wave " + g.Status.Release.Waves.Current
	}
	return ", wave " + g.Status.Release.Waves.Current
}

// printGates prints Gates in a format for programs.
func printGates(o *term.Output, w io.Writer, gates []*v1alpha1.Gate) error {
	items := make([]runtime.Object, len(gates))
	for i, g := range gates {
		items[i] = term.AsManifest(g, v1alpha1.GateKind)
	}
	return o.PrintList(w, term.GateReport, items)
}
