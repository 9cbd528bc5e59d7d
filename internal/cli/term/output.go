package term

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Output contains the flags of an output, which is a table or a format for programs.
type Output struct {
	*genericclioptions.PrintFlags
	NoHeaders bool
}

// NewFormats adds the flags of an output to a command. others are formats in addition to those of kubectl, for the help text.
func NewFormats(cmd *cobra.Command, others string) *Output {
	o := &Output{PrintFlags: genericclioptions.NewPrintFlags("")}
	o.AddFlags(cmd)
	cmd.Flags().Lookup("output").Usage = "The format: a table if empty, " + others + strings.Join(o.AllowedFormats(), ", ") + "."
	return o
}

// NewOutput adds the flags of an output with a table to a command.
func NewOutput(cmd *cobra.Command) *Output {
	o := NewFormats(cmd, "wide, ")
	cmd.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "Print a table without its headers.")
	return o
}

// IsTable returns whether the output is a table.
func (o *Output) IsTable() bool { return slices.Contains([]string{"", "wide"}, *o.OutputFormat) }

// IsWide returns whether all columns are printed.
func (o *Output) IsWide() bool { return *o.OutputFormat == "wide" }

// Table returns an empty table.
func (o *Output) Table(w io.Writer) *Table {
	return &Table{w: w, noHeaders: o.NoHeaders, Wide: o.IsWide()}
}

// PrintObject prints one object for programs.
func (o *Output) PrintObject(w io.Writer, obj runtime.Object) error {
	printer, err := o.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(obj, w)
}

// APIObject is a Kubernetes object.
type APIObject interface {
	metav1.Object
	runtime.Object
}

// AsManifest sets the kind of an object in our API group, because clients omit it, and removes managed fields.
func AsManifest(obj APIObject, kind string) APIObject {
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

// ReportsVersion is the apiVersion of the Lists that commands print.
const ReportsVersion = api.ReportGroup + "/v1alpha1"

// Kinds of the items of Lists. The kind of a List is the kind of its items followed by List. Gates are in a List of v1, as in the output
// of kubectl.
const (
	GateReport         = v1alpha1.GateKind
	TargetExplanation  = "TargetExplanation"
	PendingTarget      = "PendingTarget"
	GateHistoryEntry   = "GateHistoryEntry"
	SourcePromotion    = "GatedSourcePromotion"
	GateTimelineReport = "GateTimeline"
	GateChangeReport   = "GateChange"
	FindingReport      = "Finding"
	VersionReport      = "Version"
)

// ListKind returns the apiVersion and the kind of a List for the kind of its items.
func ListKind(kind string) (version, list string) {
	if kind == GateReport {
		return "v1", "List"
	}
	return ReportsVersion, kind + "List"
}

// PrintReports prints values as the items of a List.
func (o *Output) PrintReports(w io.Writer, kind string, values any) error {
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
		fields["apiVersion"], fields["kind"] = ReportsVersion, kind
		items[i] = &unstructured.Unstructured{Object: fields}
	}
	return o.PrintList(w, kind, items)
}

// PrintList prints a List, or the names of its items with -o name.
func (o *Output) PrintList(w io.Writer, kind string, items []runtime.Object) error {
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
	version, kind := ListKind(kind)
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

// Validate returns an error if the command does not support the selected format. others are formats in addition to those of kubectl.
func (o *Output) Validate(others ...string) error {
	if o.IsTable() || slices.Contains(others, *o.OutputFormat) {
		return nil
	}
	if _, err := o.ToPrinter(); err != nil {
		return fmt.Errorf("unknown output %q: omit it for a table, or use %s", *o.OutputFormat, strings.Join(append(others, "json", "yaml or another format of kubectl"), ", "))
	}
	return nil
}
