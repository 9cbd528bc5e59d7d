package see

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
)

const (
	// maxTargetLines bounds how many targets are listed.
	maxTargetLines = 10
	// maxHistoryLines bounds how many entries of the history are listed.
	maxHistoryLines = 3
)

// section is a title with a table. Empty sections are not printed.
type section struct {
	title   string
	headers []string
	rows    [][]string
	// after is a line below the table.
	after string
}

// print prints the screen.
func (sc *screen) print(out *term.Output) error {
	sc.head()
	at := func(name string) string { return term.TimeHeader(name, sc.now) }
	for _, part := range []section{
		{"Next", []string{at("AT"), "STATE", "REASON"}, sc.next(), sc.afterNext()},
		{"Requests", []string{"ACTION", "STATE", at("FROM"), at("UNTIL"), "REQUESTED BY", "MESSAGE"}, sc.requests(), ""},
		{"Exceptions", []string{"NAME", "STATE", at("FROM"), at("UNTIL")}, sc.exceptionRows(), ""},
		sc.targetSection(out.IsWide()),
		{"Failures", []string{"KIND/NAME", "REASON", at("SINCE"), "MESSAGE"}, sc.failureRows(), ""},
		{"Waits for", []string{"KIND/NAME", "STATE", "MESSAGE"}, sc.waitingRows(), ""},
		{"Dependencies", []string{"KIND/NAME", "READY", at("SINCE"), "MESSAGE"}, sc.dependencyRows(), ""},
		{"History", historyHeaders(sc.now), sc.historyRows(), ""},
	} {
		if len(part.rows) == 0 && part.after == "" {
			continue
		}
		sc.t.Line("")
		sc.t.Line("%s", sc.t.Paint(term.Bold, part.title))
		if len(part.rows) > 0 {
			if err := out.Table(sc.t.Out).Print(part.headers, part.rows...); err != nil {
				return err
			}
		}
		if part.after != "" {
			sc.t.Line("%s", part.after)
		}
	}
	return nil
}

// head prints the state of the Gate and its reason.
func (sc *screen) head() {
	g := sc.gate
	text := fmt.Sprintf("%s is %s", sc.t.Paint(term.Bold, "Gate "+kube.FullName(g)), sc.t.PaintAdjective(describe.State(g))+describe.Overlaid(g))
	if last := g.Status.LastTransition; last != nil {
		text += " since " + term.FormatUntil(last.At.Time, sc.now)
	}
	sc.t.Line("%s: %s.", text, describe.Reason(g))
	if more := openedDetail(g); more != "" {
		sc.t.Line("%s.", strings.TrimSuffix(more, "."))
	}
	if ready := meta.FindStatusCondition(g.Status.Conditions, fluxmeta.ReadyCondition); ready != nil && ready.Status != "True" {
		sc.t.Line("Not ready: %s.", strings.TrimSuffix(ready.Message, "."))
	}
	switch {
	case g.Audits() && isHolding(g):
		sc.t.Line("It has mode Audit, and still holds %d of its targets.", g.Status.Targets.Held)
	case g.Audits():
		sc.t.Line("It has mode Audit: it holds nothing. To enforce: %s", check.ToEnforce(g))
	}
	if g.Spec.Suspend {
		sc.t.Line("It is suspended (spec.suspend): the controller does not reconcile it, and held targets stay held.")
	}
	if r := g.Status.Release; r != nil && r.NextAt != nil {
		sc.t.Line("It releases its targets at a pace: %d of %d are released.", r.Released, r.Total)
	}
	if describe.IsInWaves(g) {
		sc.t.Line("%s.", explain.WaveOf(g))
	}
}

// isHolding returns whether a Gate holds targets.
func isHolding(g *v1alpha1.Gate) bool { return g.Status.Targets != nil && g.Status.Targets.Held > 0 }

var invalidException = regexp.MustCompile(`exception '([^']+)' is invalid`)

// openedDetail returns the part of the message of the condition Opened that is not shown in any section, empty if there is none. It omits
// times that the screen shows in the time zone of the user, because the times in the message are in UTC.
func openedDetail(g *v1alpha1.Gate) string {
	opened := describe.Condition(g.Status.Conditions, v1alpha1.OpenedCondition)
	switch opened.Reason {
	case v1alpha1.InvalidSpecReason, v1alpha1.DependencyNotReadyReason, v1alpha1.TimeUnknownReason:
		return opened.Message
	}
	if found := invalidException.FindStringSubmatch(opened.Message); found != nil {
		return fmt.Sprintf("Exception %s is invalid", found[1])
	}
	return ""
}

// afterNext returns lines about the conditions of the transitions, empty if there are none.
func (sc *screen) afterNext() string {
	var lines []string
	if len(sc.gate.Spec.DependsOn) > 0 {
		lines = append(lines, "As long as all its dependencies are ready.")
	}
	if len(sc.unread) > 0 {
		lines = append(lines, "Later transitions are unknown, because the "+strings.Join(sc.unread, " and ")+" of the gate could not be read.")
	}
	return strings.Join(lines, "\n")
}

// exceptionState describes the state of an exception, and the targets to which it is limited.
func exceptionState(e v1alpha1.ExceptionRecord, now time.Time) string {
	if only := e.Only; only != "" {
		e.Only = ""
		return exceptionState(e, now) + ", only for " + only
	}
	switch {
	case e.Reason == v1alpha1.InForceReason:
		return "in force"
	case e.Reason == v1alpha1.ExpiredReason:
		return "is over"
	case e.Reason == v1alpha1.TooManyExceptionsReason:
		return "is broken"
	case e.ValidFrom.After(now):
		return "begins"
	}
	return "waits"
}

func (sc *screen) exceptionRows() [][]string {
	var rows [][]string
	for _, e := range sc.gate.Status.Exceptions {
		if e.Reason == v1alpha1.ExpiredReason {
			continue
		}
		rows = append(rows, []string{e.Name, exceptionState(e, sc.now), term.FormatUntil(e.ValidFrom.Time, sc.now), term.FormatUntil(e.ValidUntil.Time, sc.now)})
	}
	return rows
}

func (sc *screen) targetSection(wide bool) section {
	part := section{title: "Targets: " + sc.counts(), headers: []string{"KIND/NAME", "STATE", "REVISION", "WAITS", term.TimeHeader("SINCE", sc.now)}}
	for i := range sc.targets {
		if i == maxTargetLines {
			part.after = fmt.Sprintf("and %d more", len(sc.targets)-maxTargetLines)
			break
		}
		t := &sc.targets[i]
		name := t.Target.Kind + "/" + t.Target.Name
		if t.Target.Namespace != sc.gate.Namespace {
			name += " in " + t.Target.Namespace
		}
		row := []string{name, string(t.state), shortRevision(t.Revision, wide), "-", "-"}
		switch {
		case t.state.IsHeld(), t.state == explain.Passing:
			row[3], row[4] = paintWaits(sc.t, &t.Waiting, wide), term.FormatUntilOrDash(t.Since, sc.now)
		case t.state == explain.Suspended && len(t.owners) > 0:
			row[3], row[4] = "suspended by "+t.owners[0].Manager, term.FormatUntilOrDash(t.owners[0].At, sc.now)
		}
		part.rows = append(part.rows, row)
	}
	switch counts := sc.gate.Status.Targets; {
	case len(part.rows) > 0:
	case counts == nil || counts.Held == 0:
		part.after = "None is held."
	default:
		part.after = "You may not see which."
	}
	return part
}

func (sc *screen) failureRows() [][]string {
	var rows [][]string
	for _, f := range sc.gate.Status.TargetFailures() {
		rows = append(rows, []string{f.Kind + "/" + f.Name, f.Reason, term.FormatUntil(f.RecordedAt.Time, sc.now), f.Message})
	}
	return rows
}

// waitingRows returns rows with the targets that the next wave is waiting for.
func (sc *screen) waitingRows() [][]string {
	var rows [][]string
	if !describe.IsInWaves(sc.gate) {
		return nil
	}
	for _, w := range sc.gate.Status.Release.Waves.WaitingFor {
		name := w.Kind + "/" + w.Name
		if w.Namespace != sc.gate.Namespace {
			name += " in " + w.Namespace
		}
		rows = append(rows, []string{name, w.State, w.Message})
	}
	return rows
}

func (sc *screen) dependencyRows() [][]string {
	var rows [][]string
	for _, w := range sc.gate.Status.Dependencies {
		ready := sc.t.Paint(term.Green, "yes")
		if !w.Ready {
			ready = sc.t.Paint(term.Red, "no")
		}
		rows = append(rows, []string{w.Kind + "/" + w.Name, ready, term.FormatUntil(w.Since.Time, sc.now), w.Message})
	}
	return rows
}

func (sc *screen) historyRows() [][]string {
	var rows [][]string
	for _, e := range sc.gate.Status.History[:min(maxHistoryLines, len(sc.gate.Status.History))] {
		rows = append(rows, historyRow(sc.t, e, sc.now))
	}
	return rows
}
