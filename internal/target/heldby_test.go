package target_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/target"
)

func TestSuspendedByNamesThreeGates(t *testing.T) {
	kustomization := &target.Object{Unstructured: unstructured.Unstructured{Object: map[string]any{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"}}}
	certificate := &target.Object{Unstructured: unstructured.Unstructured{Object: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": "Certificate"}}}
	for want, gates := range map[string][]string{
		"":                               nil,
		"gate a/b":                       {"a/b"},
		"gates a/b, a/c, a/d":            {"a/b", "a/c", "a/d"},
		"gates a/b, a/c, a/d and 1 more": {"a/b", "a/c", "a/d", "a/e"},
	} {
		got := target.SuspendedBy(kustomization, target.Identity{}, gates)
		if got["fluxcd.controlplane.io/suspendedBy"] != want || (len(got) > 0) != (want != "") {
			t.Errorf("got %v, want %q", got, want)
		}
		if got := target.SuspendedBy(certificate, target.Identity{}, gates); len(got) > 0 {
			t.Errorf("a Certificate gets %v", got)
		}
	}
}

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
