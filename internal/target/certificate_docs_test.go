package target_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/target"
)

// docs/guides/certificates.md lists which field holds a Certificate, by the release of cert-manager and the lifetime.
func TestCertificatesPageNamesHoldingFields(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "certificates.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(content)), " ")
	said := func(pattern string) string {
		t.Helper()
		found := regexp.MustCompile(pattern).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("the page does not say %s", pattern)
		}
		return found[1]
	}
	release := "v" + said("with one window that begins at the deadline \\| cert-manager is (1[.0-9]+) or later")
	broken := "v" + said("cert-manager has had `spec.renewal` since (1[.0-9]+[0-9])\\. That release panics on `Disabled`")
	days, err := strconv.Atoi(said("the certificate lives longer than ([0-9]+) days"))
	if err != nil {
		t.Fatal(err)
	}
	held := func(release string, lifetime time.Duration, strict bool) map[string]any {
		t.Helper()
		obj := certificate(lasting(lifetime))
		terms := target.Terms{Margin: day, Strict: strict, Definition: target.Definition{Spec: map[string]bool{"renewal": true, "renewBefore": true}, Release: release}}
		adapter := target.Of(&obj.Unstructured)
		return adapter.Plan(obj, adapter.Observe(obj, identity), terms, issued.Add(30*day)).Lever
	}
	window := func(lever map[string]any) bool { return lever["renewal"] != nil && !reflect.DeepEqual(lever, never) }
	longest := time.Duration(days) * day
	for what, right := range map[string]bool{
		"a window up to the longest lifetime": window(held(release, longest, false)),
		"Disabled beyond it":                  reflect.DeepEqual(held(release, longest+day, false), never),
		"Disabled if the Gate is strict":      reflect.DeepEqual(held(release, 90*day, true), never),
		"renewBefore before that release":     held(broken, 90*day, false)["renewBefore"] != nil,
		"the same if the Gate is strict":      held(broken, 90*day, true)["renewBefore"] != nil,
	} {
		if !right {
			t.Errorf("the page is wrong: %s", what)
		}
	}
}
