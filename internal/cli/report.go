package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// reportsVersion is the version of the Lists that commands print for programs.
const reportsVersion = api.ReportGroup + "/v1alpha1"

// Kinds of the items of Lists. The kind of a List is the kind of its items, followed by List. Gates are in a List of v1, as kubectl prints
// objects.
const (
	gateReport         = v1alpha1.GateKind
	targetExplanation  = "TargetExplanation"
	pendingTarget      = "PendingTarget"
	gateHistoryEntry   = "GateHistoryEntry"
	sourcePromotion    = "GatedSourcePromotion"
	gateTimelineReport = "GateTimeline"
	gateChangeReport   = "GateChange"
	findingReport      = "Finding"
	versionReport      = "Version"
)

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

// listOf returns the apiVersion and the kind of a List whose items have a kind.
func listOf(kind string) (version, list string) {
	if kind == gateReport {
		return "v1", "List"
	}
	return reportsVersion, kind + "List"
}

// gateTimeline is the preview of one Gate. Its JSON is a public format.
type gateTimeline struct {
	reportRange
	preview.Timeline
}

// gateChange is what a change of manifests changes in one Gate. Its JSON is a public format.
type gateChange struct {
	reportRange
	preview.Change
}

// reportRange is the Gate, the time range and the time zone data of a report.
type reportRange struct {
	Metadata     explain.Metadata `json:"metadata"`
	TimeZoneData string           `json:"timeZoneData"`
	From         metav1.Time      `json:"from"`
	Until        metav1.Time      `json:"until"`
}

// newReportRange returns the range of the report about a Gate, given as namespace/name.
func newReportRange(gate string, r preview.Range) reportRange {
	namespace, name, _ := strings.Cut(gate, "/")
	return reportRange{explain.Metadata{Namespace: namespace, Name: name}, tz.Version(), metav1.NewTime(r.From), metav1.NewTime(r.Until)}
}

// printTimelines prints a preview for programs.
func printTimelines(o *output, w io.Writer, report *preview.Report, r preview.Range) error {
	items := make([]gateTimeline, len(report.Gates))
	for i, t := range report.Gates {
		items[i] = gateTimeline{newReportRange(t.Gate, r), t}
	}
	return o.reports(w, gateTimelineReport, items)
}

// printChanges prints a comparison for programs.
func printChanges(o *output, w io.Writer, changes *preview.Changes, r preview.Range) error {
	items := make([]gateChange, len(changes.Gates))
	for i, c := range changes.Gates {
		items[i] = gateChange{newReportRange(c.Gate, r), c}
	}
	return o.reports(w, gateChangeReport, items)
}

// printGates prints Gates for programs.
func printGates(o *output, w io.Writer, gates []*v1alpha1.Gate) error {
	items := make([]runtime.Object, len(gates))
	for i, g := range gates {
		items[i] = asManifest(g, v1alpha1.GateKind)
	}
	return o.list(w, gateReport, items)
}

// reports prints values for programs, each as an item of a kind.
func (o *output) reports(w io.Writer, kind string, values any) error {
	if *o.OutputFormat == "name" {
		return errors.New("-o name: a report has no name, use json")
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return err
	}
	var all []map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	items := make([]runtime.Object, len(all))
	for i, fields := range all {
		fields["apiVersion"], fields["kind"] = reportsVersion, kind
		items[i] = &unstructured.Unstructured{Object: fields}
	}
	return o.list(w, kind, items)
}

// list prints the List of all items of a kind, also if there is only one, or with -o name their names.
func (o *output) list(w io.Writer, kind string, items []runtime.Object) error {
	printer, err := o.ToPrinter()
	if err != nil {
		return err
	}
	if *o.OutputFormat == "name" {
		for _, item := range items {
			if err := printer.PrintObj(item, w); err != nil {
				return err
			}
		}
		return nil
	}
	version, kind := listOf(kind)
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": version, "kind": kind}}
	for _, item := range items {
		fields, err := toMap(item)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, unstructured.Unstructured{Object: fields})
	}
	return printer.PrintObj(list, w)
}

// check refuses a format that a command does not have. others are its formats besides those of kubectl.
func (o *output) check(others ...string) error {
	if o.isTable() || slices.Contains(others, *o.OutputFormat) {
		return nil
	}
	if _, err := o.ToPrinter(); err != nil {
		return fmt.Errorf("unknown output %q: leave it out for a table, or use %s", *o.OutputFormat, strings.Join(append(others, "json", "yaml or another format of kubectl"), ", "))
	}
	return nil
}
