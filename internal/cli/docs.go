package cli

import (
	"fmt"
	"strings"
)

// ExitCodes says what the exit codes mean, in a table of Markdown.
const ExitCodes = `| code | meaning |
|---|---|
| 0 | done |
| 1 | diff has found a difference, check has found an error |
| 2 | nothing was done: the command is wrong or not allowed, or there is no cluster |
| 3 | not everything was done: one of several Gates has refused, a target has failed, or a request or an exception has no effect |
| 124 | with --wait: it was not done in time, and goes on |
`

// reports are the kinds of all reports, by command.
var reports = []struct{ command, kind, text string }{
	{"check", findingReport, "One problem: `severity` (`error`, `warning` or `note`), `object`, `message` and `action`."},
	{"diff", gateChangeReport, "One Gate that changes: see [what a change does](../guides/preview.md#what-a-change-does)."},
	{"history", gateHistoryEntry, "One entry of `status.history` of a Gate, with `metadata` of the Gate."},
	{"history source/NAME", sourcePromotion, "One entry of `status.promotions` of a GatedSource, with `metadata` of the GatedSource."},
	{"list", gateReport, "The [Gate](gates.md) itself, in a List of `v1` as `kubectl get` prints it."},
	{"pending", pendingTarget, "One held object: see [pending](#kubectl-gate-pending)."},
	{"preview", gateTimelineReport, "When one Gate is opened and closed: see [Previewing](gates.md#previewing)."},
	{"status", gateReport, "The same."},
	{"version", versionReport, "`client` with `version` and `timeZoneData`, and `controllers`."},
	{"why", targetExplanation, "The object: see [why](#kubectl-gate-why)."},
}

// Reports returns a table of Markdown with the kinds of the items that each command prints for programs.
func Reports() string {
	var table strings.Builder
	table.WriteString("| command | `kind` of the List | an item |\n|---|---|---|\n")
	for _, r := range reports {
		_, kind := listOf(r.kind)
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", r.command, kind, r.text)
	}
	return table.String()
}
