package plan

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/preview/files"
	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/validate"
)

// maxDays bounds the range of a preview or a comparison.
const maxDays = 3660

// noGatesInFiles is the message for manifests without Gates.
const noGatesInFiles = "There are no gates in these files."

// readManifests reads files and folders. named contains the values of -f, and args the arguments.
func readManifests(k *kube.Factory, named, args []string, namespace string) (*preview.Set, error) {
	return readManifestsInto(k, preview.NewSet(namespace), named, args)
}

// readManifestsInto reads files and folders into a set.
func readManifestsInto(k *kube.Factory, set *preview.Set, named, args []string) (*preview.Set, error) {
	if err := k.UseKinds(nil); err != nil {
		return nil, err
	}
	set.Validating(validate.Object)
	for i, path := range slices.Concat(named, args) {
		err := files.Read(set, path, k.In)
		var missing *fs.PathError
		switch is := errors.As(err, &missing) && missing.Path == path && errors.Is(err, fs.ErrNotExist); {
		case is && i >= len(named):
			return nil, fmt.Errorf("%s: no such file; with -f, arguments are files", path)
		case is:
			return nil, fmt.Errorf("%s: no such file", path)
		case err != nil:
			return nil, err
		}
	}
	return set, nil
}

// warnAll prints warnings.
func warnAll(t *term.Terminal, doubts []preview.Fault) {
	for _, doubt := range doubts {
		t.Warn("%s", doubt)
	}
}

// GateTimeline is the preview of one Gate. The JSON format is public.
type GateTimeline struct {
	reportRange
	preview.Timeline
}

// gateChange describes how a change of manifests affects one Gate. The JSON format is public.
type gateChange struct {
	reportRange
	preview.Change
}

// reportRange contains the Gate, the time range, and the time zone data of a report.
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
func printTimelines(o *term.Output, w io.Writer, report *preview.Report, r preview.Range) error {
	items := make([]GateTimeline, len(report.Gates))
	for i, t := range report.Gates {
		items[i] = GateTimeline{newReportRange(t.Gate, r), t}
	}
	return o.PrintReports(w, term.GateTimelineReport, items)
}

// printChanges prints a comparison for programs.
func printChanges(o *term.Output, w io.Writer, changes *preview.Changes, r preview.Range) error {
	items := make([]gateChange, len(changes.Gates))
	for i, c := range changes.Gates {
		items[i] = gateChange{newReportRange(c.Gate, r), c}
	}
	return o.PrintReports(w, term.GateChangeReport, items)
}
