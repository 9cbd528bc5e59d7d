// Package termtest decodes the output of commands in tests.
package termtest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// DecodeItems returns the items of a List of a kind. Unknown fields, other versions and other kinds fail the test.
func DecodeItems[T any](t *testing.T, out, kind string) (items []T) {
	t.Helper()
	strict := func(data []byte, into any) {
		t.Helper()
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(into); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
	}
	var list struct {
		APIVersion, Kind string
		Items            *[]map[string]any
	}
	strict([]byte(out), &list)
	wantVersion, wantKind := api.ReportGroup+"/v1alpha1", kind+"List"
	if kind == v1alpha1.GateKind {
		wantVersion, wantKind = "v1", "List"
	}
	if list.APIVersion != wantVersion || list.Kind != wantKind || list.Items == nil {
		t.Fatalf("got %s of %s, want %s of %s:\n%s", list.Kind, list.APIVersion, wantKind, wantVersion, out)
	}
	for _, fields := range *list.Items {
		version := list.APIVersion
		if kind == v1alpha1.GateKind {
			version = v1alpha1.GroupVersion.String()
		}
		if fields["apiVersion"] != version || fields["kind"] != kind {
			t.Errorf("an item is a %s of %s, want %s of %s", fields["kind"], fields["apiVersion"], kind, version)
		}
		delete(fields, "apiVersion")
		delete(fields, "kind")
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		var item T
		strict(data, &item)
		items = append(items, item)
	}
	return items
}

// Prints returns a test that checks that the output of a command is a List of a kind with the given items.
func Prints[T any](kind string, items []T, print func(*term.Terminal, *term.Output) error) func(*testing.T) {
	return func(t *testing.T) {
		var stdout bytes.Buffer
		out := term.NewOutput(&cobra.Command{})
		*out.OutputFormat = "json"
		if err := print(&term.Terminal{IOStreams: genericiooptions.IOStreams{Out: &stdout}}, out); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(DecodeItems[T](t, stdout.String(), kind))
		if err != nil || string(got) != string(want) {
			t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
		}
	}
}
