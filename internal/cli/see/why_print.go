package see

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
)

// printWhy prints an explanation as text.
func printWhy(t *term.Terminal, e *explain.Explanation, out *term.Output, now time.Time) error {
	t.Line("%s", paintSummary(t, e))
	for _, note := range e.Notes {
		t.Line("%s", note)
	}
	if line := waitingLine(e.Waiting, now); line != "" {
		t.Line("%s", line)
	}
	if len(e.Gates) > 0 {
		t.Line("")
		headers := []string{"GATE", "STATE", "REASON", term.TimeHeader("SINCE", now), term.TimeHeader("UNTIL", now), "REQUESTED BY", "RULE"}
		if out.IsWide() {
			headers = append(headers, "MESSAGE")
		}
		rows := make([][]string, len(e.Gates))
		for i := range e.Gates {
			rows[i] = whyRow(t, &e.Gates[i], e.Target.Namespace, now)
			if out.IsWide() {
				rows[i] = append(rows[i], e.Gates[i].Message)
			}
		}
		if err := out.Table(t.Out).Print(headers, rows...); err != nil {
			return err
		}
	}
	printRemedies(t, e)
	return nil
}

// paintSummary returns the summary with the object in bold.
func paintSummary(t *term.Terminal, e *explain.Explanation) string {
	name := e.Target.String()
	return strings.Replace(e.Summary, name, t.Paint(term.Bold, name), 1)
}

// waitingLine returns a line about the waiting change, empty if there is nothing to report.
func waitingLine(w *explain.Waiting, now time.Time) string {
	if w == nil {
		return ""
	}
	since := ""
	if w.Since != nil {
		since = " since " + term.FormatUntil(w.Since.Time, now)
	}
	switch w.Reason {
	case explain.NewRevision:
		if w.Revision == "" {
			return fmt.Sprintf("Revision %s waits%s. None is in effect.", shortRevision(w.Waits, false), since)
		}
		return fmt.Sprintf("Revision %s waits%s. Revision %s is in effect.", shortRevision(w.Waits, false), since, shortRevision(w.Revision, false))
	case explain.NothingNew:
		if w.Revision != "" && w.Source != nil {
			return fmt.Sprintf("No pending changes: revision %s is in effect.", shortRevision(w.Revision, false))
		}
	case explain.NotFetched:
		return "It is not fetched while it is held, so new revisions are unknown."
	case explain.Passes:
		return "A pass allows one reconciliation" + since + "."
	case explain.Stopped:
		return "It does nothing while it is held."
	case explain.RenewalDue:
		return fmt.Sprintf("Its renewal waits%s.", since)
	case explain.SourceUnknown:
		return "Cannot tell what waits: its source does not exist, has no artifact, or you may not see it."
	}
	return ""
}

// whyRow returns the columns of printWhy for a Gate.
func whyRow(t *term.Terminal, g *explain.Gate, namespace string, now time.Time) []string {
	row := []string{explain.Short(g.Gate, namespace), t.PaintState(string(g.State)), "-", term.FormatUntilOrDash(g.Since, now), term.FormatUntilOrDash(g.Until, now), "-", "-"}
	switch {
	case g.Reason != "":
		row[2] = describe.Words(g.Reason, cmp.Or(g.Period, g.Exception))
	case g.State == explain.Missing:
		row[2] = "does not exist"
	case g.State == explain.Denied:
		row[2] = "access denied"
	}
	if g.Mode == v1alpha1.ModeAudit {
		row[2] += ", audit"
	}
	if g.Suspended {
		row[2] += ", suspended"
	}
	if g.RequestedBy != "" {
		row[5] = g.RequestedBy
	}
	if g.RequestMessage != "" {
		row[5] += ": " + g.RequestMessage
	}
	switch {
	case len(g.Rules) > 0:
		row[6] = strings.Join(g.Rules, "; ")
	case g.Holds:
		row[6] = "no longer governed"
	}
	return row
}

// printRemedies prints the commands that would change the state of an object, one per line.
func printRemedies(t *term.Terminal, e *explain.Explanation) {
	if len(e.Remedies) == 0 {
		return
	}
	t.Line("")
	switch {
	case len(e.Remedies) > 1:
		t.Line("To change that, all of these:")
	case e.State == explain.Free:
		t.Line("To hold it:")
	default:
		t.Line("To change that:")
	}
	for _, r := range e.Remedies {
		t.Line("  %s", t.Paint(term.Bold, r.Command))
		t.Line("      %s.", r.Effect)
	}
}
