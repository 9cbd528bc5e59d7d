package see

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
)

// historyItem is an entry in the history of a Gate. The JSON format is public.
type historyItem struct {
	// Metadata identifies the Gate.
	Metadata explain.Metadata `json:"metadata"`

	v1alpha1.HistoryEntry `json:",inline"`
}

// NewHistoryCommand returns the command history.
func NewHistoryCommand(k *kube.Factory) *cobra.Command {
	var sc kube.Scope
	var since string
	cmd := &cobra.Command{
		Use:   "history [NAME... | source/NAME...]",
		Short: "Show the changes of Gates with users and reasons, or the promotions of a GatedSource",
		Long: `Show the changes of Gates with times, users and reasons, newest first. For source/NAME, a GatedSource, show the promoted revisions with times, reasons
and approvers.

A Gate keeps its last 50 changes and requests, a GatedSource its last 20 promotions. To keep them for years, see docs/operate/audit.md.`,
		Example: `  # One Gate
  kubectl gate history production

  # For an auditor: all Gates, 30 days, as a table for other programs
  kubectl gate history -A --since 30d -o csv

  # The revisions that a GatedSource has promoted
  kubectl gate history source/apps`,
	}
	kube.AddScopeFlags(cmd, &sc)
	cmd.Flags().StringVar(&since, "since", "", "Print only entries since this time, such as 12h, 30d, yesterday, \"2026-12-24 08:00\" or a time in RFC 3339.")
	out := term.NewOutput(cmd)
	cmd.Flags().Lookup("output").Usage = "The format: a table if empty, csv, json, yaml or any other format of kubectl."
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		sc.Names = args
		now, err := k.Now()
		if err != nil {
			return err
		}
		from, err := parseSince(since, now)
		if err != nil {
			return err
		}
		c, err := k.Cluster()
		if err != nil {
			return err
		}
		var sources []client.ObjectKey
		for _, arg := range args {
			kind, key, err := kube.ParseName(arg, c.Namespace, kube.GateKind, kube.SourceKind)
			if err != nil {
				return err
			}
			if kind == kube.SourceKind {
				sources = append(sources, key)
			}
		}
		switch {
		case len(sources) > 0 && len(sources) < len(args):
			return errors.New("name gates or gatedsources, not both: their histories have different columns")
		case len(sources) > 0:
			return runSourceHistory(cmd.Context(), k.Terminal, c, &sc, sources, promotionScope{from, now, out})
		}
		gates, err := c.Gates(cmd.Context(), sc)
		if err != nil {
			return err
		}
		items := historySince(k.Terminal, gates, from)
		return historyReport[historyItem]{term.GateHistoryEntry, items, writeCSV, func() error {
			return printHistory(k.Terminal, out, items, sc.All || len(gates) > 1, now)
		}}.print(k.Terminal, out)
	}
	return cmd
}

// historyReport prints history entries.
type historyReport[T any] struct {
	// kind is the kind of an item, in JSON.
	kind  string
	items []T
	csv   func(w io.Writer, items []T, noHeaders bool) error
	table func() error
}

// print prints the entries in the format selected by the flags.
func (p historyReport[T]) print(t *term.Terminal, out *term.Output) error {
	switch {
	case *out.OutputFormat == "csv":
		return p.csv(t.Out, p.items, out.NoHeaders)
	case !out.IsTable():
		return out.PrintReports(t.Out, p.kind, p.items)
	case len(p.items) == 0:
		fmt.Fprintln(t.ErrOut, "There is no history.")
		return nil
	}
	return p.table()
}

// parseSince parses --since. It returns zero for an empty text. A duration counts back from now, and a time of day means its last
// occurrence.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := v1alpha1.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	at, err := term.ReadPast(text, now)
	switch {
	case err != nil:
		return at, fmt.Errorf("--since %q cannot be read: write 12h, 30d, yesterday, 2026-12-24 or a time in RFC 3339", text)
	case at.After(now):
		return at, fmt.Errorf("--since %q is in the future", text)
	}
	return at, nil
}

// historySince returns the history of Gates since a time, newest first. It warns about Gates whose recorded history starts later.
func historySince(t *term.Terminal, gates []*v1alpha1.Gate, from time.Time) []historyItem {
	items := []historyItem{}
	for _, g := range gates {
		entries := g.Status.History
		for _, e := range entries {
			if !e.At.Time.Before(from) {
				items = append(items, historyItem{explain.Metadata{Namespace: g.Namespace, Name: g.Name}, e})
			}
		}
		if n := len(entries); !from.IsZero() && n > 0 && entries[n-1].At.After(from) && g.CreationTimestamp.Time.Before(from) {
			t.Warn("%s has no history before %s: a gate keeps its last %d entries, see docs/operate/audit.md",
				kube.FullName(g), entries[n-1].At.UTC().Format(time.RFC3339), v1alpha1.MaxHistory)
		}
	}
	slices.SortStableFunc(items, func(a, b historyItem) int { return b.At.Compare(a.At.Time) })
	return items
}

func historyHeaders(now time.Time) []string {
	return []string{term.TimeHeader("WHEN", now), "WHAT", "REASON", term.TimeHeader("UNTIL", now), "REQUESTED BY", "MESSAGE"}
}

func printHistory(t *term.Terminal, out *term.Output, items []historyItem, named bool, now time.Time) error {
	headers := historyHeaders(now)
	if named {
		headers = slices.Insert(headers, 1, "GATE")
	}
	rows := make([][]string, len(items))
	for i, item := range items {
		if rows[i] = historyRow(t, item.HistoryEntry, now); named {
			rows[i] = slices.Insert(rows[i], 1, item.Metadata.Namespace+"/"+item.Metadata.Name)
		}
	}
	return out.Table(t.Out).Print(headers, rows...)
}

// historyRow returns the columns of historyHeaders for an entry.
func historyRow(t *term.Terminal, e v1alpha1.HistoryEntry, now time.Time) []string {
	const precise = "2006-01-02 15:04:05"
	what, why, until := t.PaintState(string(e.State)), describe.Words(e.Reason, e.DecidedBy()), "-"
	if e.Until != nil {
		until = e.Until.In(now.Location()).Format(precise)
	}
	if e.State == "" {
		what, why = string(e.Action)+" requested", "-"
	}
	reason := e.Message
	if e.ApprovedBy != "" {
		why = strings.TrimPrefix(why+", approved by "+e.ApprovedBy, "-, ")
	}
	if e.Emergency {
		why = strings.TrimPrefix(why+", in an emergency", "-, ")
	}
	switch {
	case e.Target != "":
		what, why, reason = passRow(e)
	case e.Refused != "":
		what, reason = t.Paint(term.Yellow, cmp.Or(string(e.Action), "close")+" refused"), strings.TrimPrefix(e.Refused, "is refused, ")
	case e.Reason == v1alpha1.RequestApprovedReason:
		what = string(e.Action) + " approved"
	case e.Reason == v1alpha1.RequestWithdrawnReason:
		what = map[v1alpha1.RequestAction]string{v1alpha1.RequestOpen: "close", v1alpha1.RequestClose: "open"}[e.Action] + " withdrawn"
	case e.Reason == v1alpha1.RequestPlannedReason:
		what = string(e.Action) + " planned"
	}
	if e.Reason == v1alpha1.OverlayEndedReason {
		what, why = "ended", describe.Words(v1alpha1.ExceptionAppliesReason, e.Exception)
	}
	if e.Targets != "" {
		why = strings.TrimPrefix(why+", only "+e.Targets, "-, ")
	}
	return []string{e.At.In(now.Location()).Format(precise), what, why, until, term.OrDash(e.RequestedBy), term.OrDash(reason)}
}

// passRow returns the columns for an entry about a pass.
func passRow(e v1alpha1.HistoryEntry) (what, target, reason string) {
	switch e.Reason {
	case v1alpha1.PassRefusedReason:
		return "pass refused", e.Target, e.Refused
	case v1alpha1.PassEndedReason:
		return "pass ended: " + describe.Words(e.Outcome, ""), e.Target, e.Message
	}
	return "pass", e.Target, e.Message
}

// writeCSV writes entries as CSV (RFC 4180), with times in UTC.
func writeCSV(w io.Writer, items []historyItem, noHeaders bool) error {
	table := csv.NewWriter(w)
	if !noHeaders {
		_ = table.Write([]string{"at", "namespace", "gate", "state", "reason", "period", "exception", "until", "action", "requestedAt", "requestedBy", "message", "refused", "approvedBy", "emergency", "target", "outcome", "targets"})
	}
	for _, i := range items {
		until, requestedAt := "", ""
		if i.Until != nil {
			until = i.Until.UTC().Format(time.RFC3339)
		}
		if i.RequestedAt != nil {
			requestedAt = i.RequestedAt.UTC().Format(time.RFC3339Nano)
		}
		_ = table.Write([]string{
			i.At.UTC().Format(time.RFC3339), i.Metadata.Namespace, i.Metadata.Name, string(i.State), i.Reason, i.Period, i.Exception, until,
			string(i.Action), requestedAt, escapeFormula(i.RequestedBy), escapeFormula(i.Message), escapeFormula(i.Refused),
			escapeFormula(i.ApprovedBy), map[bool]string{true: "true"}[i.Emergency], i.Target, i.Outcome, escapeFormula(i.Targets),
		})
	}
	table.Flush()
	return table.Error()
}

// escapeFormula returns a text that spreadsheets do not evaluate as a formula.
func escapeFormula(text string) string {
	if strings.HasPrefix(text, "=") || strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-") || strings.HasPrefix(text, "@") {
		return "'" + text
	}
	return text
}
