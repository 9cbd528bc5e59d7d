package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// defaultPreview is how far a preview looks if --until is not given.
const defaultPreview = 30 * 24 * time.Hour

// report is what a preview says of all Gates. Its JSON is a public format.
type report struct {
	TimeZoneData string     `json:"timeZoneData"`
	Gates        []timeline `json:"gates"`
}

// timeline is the preview of one Gate.
type timeline struct {
	Gate      string     `json:"gate"`
	Intervals []interval `json:"intervals"`
}

type interval struct {
	From   string `json:"from"`
	Until  string `json:"until"`
	State  string `json:"state"`
	Reason string `json:"reason"`
	By     string `json:"by"`
}

func (s *session) previewCommand() *cobra.Command {
	var files []string
	var from, until, output string
	cmd := &cobra.Command{
		Use:   "preview -f FILE...",
		Short: "Print when Gates in manifests will be open and closed, without a cluster",
		Long: `Print when Gates in manifests will be open and closed, without a cluster.

GateExceptions count in all files of the manifests, as if they were approved.
What is doubtful about them is said on standard error.`,
		Example: `  # What the gates of a pull request do in December
  kubectl gate preview -f gates.yaml --from 2026-12-01T00:00:00Z --until 2027-01-01T00:00:00Z

  # The same for programs
  kubectl gate preview -f gates.yaml -o json

  # What an exception changes
  kubectl gate preview -f gates.yaml -f exceptions.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			print, ok := printers[output]
			if !ok {
				return fmt.Errorf("unknown output %q, use table or json", output)
			}
			start, end, err := parseRange(from, until, s.clock.Now())
			if err != nil {
				return err
			}
			namespace := cmp.Or(*s.config.Namespace, "default")
			timelines, warnings, err := preview(append(files, args...), cmd.InOrStdin(), namespace, start, end)
			if err != nil {
				return err
			}
			for _, warning := range warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
			}
			return print(cmd.OutOrStdout(), timelines)
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "A file with manifests, - for standard input. Can be repeated; further files can follow as arguments.")
	cmd.Flags().StringVar(&from, "from", "", "The first instant of the preview in RFC 3339. Defaults to now.")
	cmd.Flags().StringVar(&until, "until", "", "The end of the preview in RFC 3339. Defaults to 30 days after --from.")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "The format: table or json.")
	return cmd
}

func parseRange(from, until string, now time.Time) (start, end time.Time, err error) {
	start = now.UTC().Truncate(time.Second)
	if from != "" {
		if start, err = time.Parse(time.RFC3339, from); err != nil {
			return start, end, fmt.Errorf("--from must be a time in RFC 3339: %w", err)
		}
	}
	end = start.Add(defaultPreview)
	if until != "" {
		if end, err = time.Parse(time.RFC3339, until); err != nil {
			return start, end, fmt.Errorf("--until must be a time in RFC 3339: %w", err)
		}
	}
	if !start.Before(end) {
		return start, end, errors.New("--until must be later than --from")
	}
	return start, end, nil
}

// created is when an exception is created that no cluster has seen yet: later than
// all that are there.
var created = metav1.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// preview returns the timelines of the Gates in files, in their order there, and what
// is doubtful about them.
func preview(files []string, in io.Reader, namespace string, from, until time.Time) (timelines []timeline, warnings []fault, err error) {
	if len(files) == 0 {
		return nil, nil, errors.New("no files: name them with -f")
	}
	l := &loader{namespace: namespace, seen: map[key]string{}}
	for _, file := range files {
		if err := l.load(file, in); err != nil {
			return nil, nil, err
		}
	}
	for _, e := range l.exceptions {
		if e.CreationTimestamp.IsZero() {
			e.CreationTimestamp = created
		}
	}
	timelines = make([]timeline, 0, len(l.gates))
	for _, g := range l.gates {
		timelines = append(timelines, l.timeline(g, from, until))
		l.leads(g, from)
	}
	if len(l.faults) > 0 {
		return nil, nil, &invalidManifestError{faults: l.faults}
	}
	return timelines, l.doubts(from), nil
}

// leads notes the exceptions of a Gate whose lead cannot be had.
func (l *loader) leads(g *v1alpha1.Gate, from time.Time) {
	g = approved(g)
	for _, e := range l.exceptions {
		if !gate.IsOf(g, e) {
			continue
		}
		for _, err := range gate.ValidateLead(e, g, l.exceptions, from) {
			l.faults = append(l.faults, l.doubt(v1alpha1.GateExceptionKind, e.Namespace, e.Name, err.Field, err.ErrorBody()))
		}
	}
}

// timeline previews a Gate as if it and its exceptions were applied at from.
func (l *loader) timeline(g *v1alpha1.Gate, from, until time.Time) timeline {
	name := g.Namespace + "/" + g.Name
	t := timeline{Gate: name, Intervals: []interval{}}
	for _, request := range gate.HandleRequests(g, from) {
		if request.Err != nil {
			l.faults = append(l.faults, fault{
				file: l.seen[key{v1alpha1.GateKind, name}], object: name,
				field: fmt.Sprintf("metadata.annotations[%s]", request.Annotation), cause: request.Err.Error(),
			})
		}
	}
	intervals, errs := gate.Intervals(approved(g), from, until, l.exceptions...)
	if len(errs) > 0 {
		return t // gate.Validate has noted them
	}
	for i := range intervals {
		t.Intervals = append(t.Intervals, interval{
			From: i.From.Format(time.RFC3339), Until: i.Until.Format(time.RFC3339),
			State: i.State.String(), Reason: string(i.Reason), By: i.By,
		})
	}
	return t
}

var printers = map[string]func(io.Writer, []timeline) error{
	"json":  printJSON,
	"table": printTable,
}

func printJSON(w io.Writer, timelines []timeline) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report{TimeZoneData: tz.Version(), Gates: timelines})
}

func printTable(w io.Writer, timelines []timeline) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "GATE\tFROM\tUNTIL\tSTATE\tREASON\tBY")
	for _, t := range timelines {
		for _, i := range t.Intervals {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", t.Gate, i.From, i.Until, i.State, i.Reason, i.By)
		}
	}
	return table.Flush()
}
