package cli

import (
	"fmt"
	"strings"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// ExitCodes is a table of the exit codes in Markdown.
const ExitCodes = `| code | meaning |
|---|---|
| 0 | done |
| 1 | diff has found a difference, check has found an error |
| 2 | nothing was done: the command is invalid or not permitted, or there is no cluster |
| 3 | only a part was done: the command failed for some Gates, a target has failed, or a request or an exception has no effect |
| 124 | with --wait: the timeout has passed; the controller continues |
`

// reports lists the kinds of all Lists, by command.
var reports = []struct{ command, kind, text string }{
	{"check", term.FindingReport, "One problem: `severity` (`error`, `warning` or `note`), `object`, `message` and `action`."},
	{"diff", term.GateChangeReport, "One Gate that changes: see [what a change does](../guides/preview.md#what-a-change-does)."},
	{"history", term.GateHistoryEntry, "An entry of `status.history` of a Gate, with the namespace and name of the Gate in `metadata`."},
	{"history source/NAME", term.SourcePromotion, "An entry of `status.promotions` of a GatedSource, with the namespace and name of the GatedSource in `metadata`."},
	{"list", term.GateReport, "The [Gate](gates.md) itself, in a List of `v1` as `kubectl get` prints it."},
	{"pending", term.PendingTarget, "One held object: see [pending](#kubectl-gate-pending)."},
	{"preview", term.GateTimelineReport, "When one Gate is opened and closed: see [Previewing](gates.md#previewing)."},
	{"status", term.GateReport, "The same."},
	{"version", term.VersionReport, "`client` with `version` and `timeZoneData`, and `controllers`."},
	{"why", term.TargetExplanation, "The object: see [why](#kubectl-gate-why)."},
}

// Reports returns a Markdown table with the kinds of the items that each command prints for programs.
func Reports() string {
	var table strings.Builder
	table.WriteString("| command | `kind` of the List | an item |\n|---|---|---|\n")
	for _, r := range reports {
		_, kind := term.ListKind(r.kind)
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", r.command, kind, r.text)
	}
	return table.String()
}
