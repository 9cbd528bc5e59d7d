// Package plan contains the commands that look ahead or read manifests.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// previewFlags are the flags of preview.
type previewFlags struct {
	kube.Scope
	*term.Span
	*term.Output
	files       []string
	from, state string
	target      string
}

// NewPreviewCommand returns the command preview.
func NewPreviewCommand(k *kube.Factory) *cobra.Command {
	f := &previewFlags{}
	cmd := &cobra.Command{
		Use:   "preview (-f FILE... | [NAME...])",
		Short: "Print when Gates will be open and closed: Gates in manifests, without a cluster, or Gates of a cluster",
		Long: `Print when Gates will be open and closed: Gates in manifests, without a cluster, or Gates of a cluster.

With -f, the GateExceptions in all files apply, as if they were approved. A folder is read recursively; a folder with a kustomization is
built, without network access and plugins. Without -f, the requests and approvals in the cluster apply. Warnings are printed to standard
error.

A table has times in RFC 3339: in the zone of --timezone, or in UTC without it. Other formats are in UTC.`,
		Example: `  # What the gates of a pull request do in December
  kubectl gate preview -f gates.yaml --from 2026-12-01T00:00:00Z --until 2027-01-01T00:00:00Z

  # The same for programs
  kubectl gate preview -f gates.yaml -o json

  # What an exception changes
  kubectl gate preview -f gates.yaml -f exceptions.yaml

  # What the gates of a Kustomization in the cluster do, including exceptions and requests for this target only
  kubectl gate preview --target kustomization/apps

  # What a gate of the cluster does in the next week, as a picture
  kubectl gate preview production --until 7d -o svg > production.svg`,
		RunE: func(cmd *cobra.Command, args []string) error { return runPreview(cmd.Context(), k, f, args) },
	}
	kube.AddScopeFlags(cmd, &f.Scope)
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "A file or folder with manifests, - for standard input. Can be repeated; further ones can follow as arguments.")
	cmd.Flags().StringVar(&f.from, "from", "", "The first instant of the preview, in RFC 3339 or such as \"monday 08:00\". Defaults to now.")
	f.Span = term.NewSpan(cmd, term.DefaultDays, maxDays, "From --from on: ")
	f.Output = term.NewFormats(cmd, "ics for calendars, svg for a picture, ")
	cmd.Flags().StringVar(&f.target, "target", "", "Preview the Gates of an object, as KIND/NAME, including exceptions and requests for this object only. Not with -f.")
	cmd.Flags().StringVar(&f.state, "state", "", "With -o ics: only when gates are opened, or only when they are closed. Defaults to both.")
	return cmd
}

func runPreview(ctx context.Context, k *kube.Factory, f *previewFlags, args []string) error {
	zone, err := k.TableZone()
	if err != nil {
		return err
	}
	printer, err := f.printer(zone)
	if err != nil {
		return err
	}
	r, err := term.ParseSpan(k.Terminal, f.from, f.Span)
	if err != nil {
		return err
	}
	set, err := readPreviewed(ctx, k, f, args)
	if err != nil {
		return err
	}
	report, doubts, err := set.Preview(r)
	if err != nil {
		return err
	}
	warnAll(k.Terminal, doubts)
	if len(f.files) > 0 && len(report.Gates) == 0 {
		k.ErrLine("%s", noGatesInFiles)
	}
	if len(report.Gates) == 0 && f.IsTable() {
		return nil // do not print headers without rows
	}
	return printer(k.Out, report, r)
}

// printer returns the function that prints a report in the format selected by the flags.
func (f *previewFlags) printer(zone *time.Location) (func(io.Writer, *preview.Report, preview.Range) error, error) {
	switch {
	case f.state != "" && *f.OutputFormat != "ics":
		return nil, fmt.Errorf("--state is for -o ics")
	case !slices.Contains([]string{"", "opened", "closed"}, f.state):
		return nil, fmt.Errorf("unknown state %q, use opened or closed", f.state)
	}
	if err := f.Validate("ics", "svg"); err != nil {
		return nil, err
	}
	switch *f.OutputFormat {
	case "svg":
		return func(w io.Writer, report *preview.Report, r preview.Range) error { return report.SVG(w, r) }, nil
	case "ics":
		return func(w io.Writer, report *preview.Report, r preview.Range) error {
			return preview.Calendar{Range: r, Name: calendarName(report), State: f.state, Stamp: r.From}.Write(w, report)
		}, nil
	}
	if f.IsTable() {
		return func(w io.Writer, report *preview.Report, _ preview.Range) error { return report.Table(w, zone) }, nil
	}
	return func(w io.Writer, report *preview.Report, r preview.Range) error {
		return printTimelines(f.Output, w, report, r)
	}, nil
}

// calendarName returns the name of the Gate as the calendar name, or a general name if there are several Gates.
func calendarName(report *preview.Report) string {
	if len(report.Gates) == 1 {
		return report.Gates[0].Gate
	}
	return "Gates"
}

// readPreviewed returns the Gates of the manifests, or the Gates of the cluster if no manifests are given.
func readPreviewed(ctx context.Context, k *kube.Factory, f *previewFlags, args []string) (*preview.Set, error) {
	if len(f.files) > 0 {
		if f.target != "" {
			return nil, fmt.Errorf("--target is an object of a cluster and cannot be combined with -f")
		}
		if f.All || f.Selector != "" || f.StatusSelector != "" {
			return nil, fmt.Errorf("-A, -l and --status-selector select gates of a cluster and cannot be combined with -f")
		}
		return readManifests(k, f.files, args, cmp.Or(*k.Flags.Namespace, "default"))
	}
	for _, arg := range args {
		if arg == "-" || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg)) {
			return nil, fmt.Errorf("%q is not the name of a gate; to read a file, use -f", arg)
		}
	}
	c, err := k.Cluster()
	if err != nil {
		return nil, err
	}
	f.Names = args
	gates, err := c.Gates(ctx, f.Scope)
	if err != nil {
		return nil, err
	}
	if f.target != "" {
		return previewTarget(ctx, k, c, gates, f.target)
	}
	if len(gates) == 0 {
		fmt.Fprintln(k.ErrOut, kube.NoGatesMessage(c.Namespace, f.All))
	}
	return kube.PreviewSet(ctx, k.Terminal, c, gates), nil
}

// previewTarget returns the Gates among gates that govern an object, with the state that they have
// for it.
func previewTarget(ctx context.Context, k *kube.Factory, c *kube.Cluster, gates []*v1alpha1.Gate, name string) (*preview.Set, error) {
	kind, namespace, name, err := kube.ParseObjectName([]string{name})
	if err != nil {
		return nil, err
	}
	objects, err := k.Objects(ctx, c)
	if err != nil {
		return nil, err
	}
	mapping, err := objects.Find(kind)
	if err != nil {
		return nil, err
	}
	obj, err := objects.Get(ctx, mapping, cmp.Or(namespace, c.Namespace), name)
	if err != nil {
		return nil, err
	}
	scope := c.VerdictScope(ctx)
	gates = slices.DeleteFunc(gates, func(g *v1alpha1.Gate) bool { return !scope.Governs(g, obj) })
	if len(gates) == 0 {
		k.ErrLine("No gate among these governs %s.", explain.RefOf(obj))
	}
	return kube.PreviewSet(ctx, k.Terminal, c, gates).ForTarget(func(ref *v1alpha1.TargetReference, namespace string) bool {
		return scope.Names(ref, namespace, obj)
	}), nil
}
