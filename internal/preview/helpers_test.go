package preview_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// day is a Tuesday.
var day = preview.Range{From: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)}

// gate returns the manifest of a Gate that is open from 10:00 to a time of day.
func gate(name, until string) string {
	return "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: " + name + ", namespace: apps}\nspec:\n" +
		"  default: closed\n  openPeriods: [{name: day, start: \"10:00\", end: \"" + until + "\"}]\n---\n"
}

// exception returns the manifest of an exception that opens a Gate from 20:00 to 21:00.
func exception(name, of string) string {
	return "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: GateException\nmetadata: {name: " + name + ", namespace: apps}\nspec:\n" +
		"  gateRef: {name: " + of + "}\n  timeZone: UTC\n  validFrom: \"2026-11-24T00:00:00Z\"\n  validUntil: \"2026-11-25T00:00:00Z\"\n" +
		"  openPeriods: [{name: evening, start: \"20:00\", end: \"21:00\"}]\n---\n"
}

// manifests returns a set with manifests.
func manifests(t *testing.T, all ...string) *preview.Set {
	t.Helper()
	set := preview.NewSet("apps")
	if err := set.Read("gates.yaml", strings.NewReader(strings.Join(all, ""))); err != nil {
		t.Fatal(err)
	}
	return set
}

// known returns a Gate of a cluster that is open from 10:00 to 12:00, with changes.
func known(name string, change ...func(*v1alpha1.Gate)) *v1alpha1.Gate {
	start, end := "10:00", "12:00"
	g := &v1alpha1.Gate{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "apps"},
		Spec:       v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{{Name: "day", Start: &start, End: &end}}},
	}
	for _, c := range change {
		c(g)
	}
	return g
}

// extending returns an exception of a cluster that opens a Gate from 20:00 to 21:00.
func extending(name, of string) *v1alpha1.GateException {
	start, end := "20:00", "21:00"
	return &v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "apps", CreationTimestamp: metav1.NewTime(day.From.Add(-time.Hour))},
		Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: of}, TimeZone: "UTC",
			ValidFrom: metav1.NewTime(day.From), ValidUntil: metav1.NewTime(day.Until),
			OpenPeriods: []v1alpha1.Period{{Name: "evening", Start: &start, End: &end}},
		},
	}
}

// opens returns when the Gates of a set are open on day, and the warnings.
func opens(t *testing.T, set *preview.Set) (open, warnings string) {
	t.Helper()
	report, all, err := set.Preview(day)
	if err != nil {
		t.Fatal(err)
	}
	var lines, said []string
	for _, g := range report.Gates {
		for _, i := range g.Intervals {
			if i.State == "opened" {
				lines = append(lines, fmt.Sprintf("%s %s-%s %s", g.Gate, i.From.UTC().Format("15:04"), i.Until.UTC().Format("15:04"), i.ShortReason()))
			}
		}
	}
	for _, doubt := range all {
		said = append(said, doubt.String())
	}
	return strings.Join(lines, "\n"), strings.Join(said, "\n")
}
