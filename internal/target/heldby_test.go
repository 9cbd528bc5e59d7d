package target_test

import (
	"slices"
	"testing"

	"github.com/fluxcd/gating-controller/internal/target"
)

func TestGateAnnotation(t *testing.T) {
	for value, want := range map[string][]string{
		"":                    nil,
		",":                   nil,
		" , ":                 nil,
		"ns/a":                {"ns/a"},
		"ns/b,ns/a":           {"ns/a", "ns/b"},
		" ns/b , ns/a ,":      {"ns/a", "ns/b"},
		"ns/a,ns/a":           {"ns/a"},
		"a-b/c,a/b":           {"a-b/c", "a/b"},
		"no slash, is a name": {"is a name", "no slash"},
	} {
		if got := target.ParseHeldBy(value); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
	for want, gates := range map[string][]string{
		"":          nil,
		"ns/a":      {"ns/a"},
		"ns/a,ns/b": {"ns/b", "ns/a", "ns/b"},
	} {
		before := slices.Clone(gates)
		got := target.FormatHeldBy(gates)
		if got != want || !slices.Equal(before, gates) {
			t.Errorf("%q: got %q, want %q; the argument is %q after", before, got, want, gates)
		}
		if again := target.FormatHeldBy(target.ParseHeldBy(got)); again != got {
			t.Errorf("%q is %q after parsing and formatting", got, again)
		}
	}
}
