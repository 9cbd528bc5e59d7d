package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// output is how a command prints: as a table, or in a format for programs.
type output struct {
	*genericclioptions.PrintFlags
	noHeaders bool
}

// newFormats adds the flags of an output to a command. others are its formats besides those of kubectl, for the help.
func newFormats(cmd *cobra.Command, others string) *output {
	o := &output{PrintFlags: genericclioptions.NewPrintFlags("")}
	o.AddFlags(cmd)
	cmd.Flags().Lookup("output").Usage = "The format: a table if empty, " + others + strings.Join(o.AllowedFormats(), ", ") + "."
	return o
}

// newOutput adds the flags of an output with a table that can be wide to a command.
func newOutput(cmd *cobra.Command) *output {
	o := newFormats(cmd, "wide, ")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Print a table without its headers.")
	return o
}

// isTable returns whether people read the output.
func (o *output) isTable() bool { return slices.Contains([]string{"", "wide"}, *o.OutputFormat) }

// isWide returns whether all columns are printed.
func (o *output) isWide() bool { return *o.OutputFormat == "wide" }

// table returns an empty table.
func (o *output) table(w io.Writer) *table {
	return &table{w: w, noHeaders: o.noHeaders, wide: o.isWide()}
}

// object prints one object for programs.
func (o *output) object(w io.Writer, obj runtime.Object) error {
	printer, err := o.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(obj, w)
}

// asManifest gives an object of ours its kind, which a client leaves out, and takes out what nobody writes.
func asManifest(obj client.Object, kind string) client.Object {
	obj.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	obj.SetManagedFields(nil)
	return obj
}

func toMap(obj runtime.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

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

// listOf returns the apiVersion and the kind of a List whose items have a kind.
func listOf(kind string) (version, list string) {
	if kind == gateReport {
		return "v1", "List"
	}
	return reportsVersion, kind + "List"
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
