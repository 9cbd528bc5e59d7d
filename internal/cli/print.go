package cli

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// table prints rows under headers, as kubectl does. Rows that come later keep its columns.
type table struct {
	w         io.Writer
	noHeaders bool
	wide      bool
	headers   []string
	widths    []int
	printed   bool
}

// table returns an empty table.
func (o *output) table(w io.Writer) *table {
	return &table{w: w, noHeaders: o.noHeaders, wide: o.isWide()}
}

const (
	// gap is between two columns.
	gap = 3
	// narrowest is how far a column is cut that does not fit.
	narrowest = 12
)

// print prints rows, and before the first ones the headers. In a terminal, the widest columns are cut until a row fits, unless all of it
// is wanted.
func (t *table) print(headers []string, rows ...[]string) error {
	if !t.printed {
		t.headers = headers
	}
	if !t.printed && !t.noHeaders {
		rows = append([][]string{headers}, rows...)
	}
	t.printed = true
	for _, row := range rows {
		for i, cell := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], visible(cell))
		}
	}
	if columns := widthOf(t.w); columns > 0 && !t.wide {
		t.fit(columns)
	}
	var text strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			cell = cut(cell, t.widths[i])
			line += cell
			if i < len(row)-1 {
				line += strings.Repeat(" ", max(0, t.widths[i]-visible(cell))+gap)
			}
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(t.w, text.String())
	return err
}

// fit makes the widest columns narrower until a row fits. Times stay whole, and what is narrow already does.
func (t *table) fit(columns int) {
	for {
		total, widest := -gap, -1
		for i, width := range t.widths {
			total += width + gap
			isTime := i < len(t.headers) && strings.Contains(t.headers[i], "(")
			if !isTime && width > narrowest && (widest < 0 || width > t.widths[widest]) {
				widest = i
			}
		}
		if total <= columns || widest < 0 {
			return
		}
		t.widths[widest]--
	}
}

// cut returns a text that takes at most some columns. A painted text is short, and stays.
func cut(text string, columns int) string {
	if visible(text) <= columns || strings.Contains(text, "\x1b") {
		return text
	}
	return string([]rune(text)[:columns-1]) + "…"
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// visible returns how many columns a text takes.
func visible(text string) int { return utf8.RuneCountInString(escapes.ReplaceAllString(text, "")) }

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

// Colors by what they mean.
const (
	green  = "32"
	red    = "31"
	yellow = "33"
	bold   = "1"
	faint  = "2"
)

// paint returns a text in a color, if colors are wanted.
func (t *terminal) paint(color, text string) string {
	if !t.colorful() || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func (t *terminal) colorful() bool {
	switch t.color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(t.Out)
}

// isTerminal returns whether somebody reads what is written.
func isTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// widthOf returns how many columns a terminal has, 0 if it is none.
func widthOf(w io.Writer) int {
	file, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// say prints a line for people.
func (t *terminal) say(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

// warn prints a line on standard error.
func (t *terminal) warn(format string, args ...any) {
	fmt.Fprintf(t.ErrOut, "warning: "+format+"\n", args...)
}
