package gate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// The status keeps the newest failures, each with the time at which it was recorded, in a stable order.
func TestNewestFailuresAreKept(t *testing.T) {
	status := v1alpha1.GateStatus{}
	record := func(at time.Duration, names ...string) (kept []string) {
		var failures []v1alpha1.TargetFailure
		for _, name := range names {
			failures = append(failures, v1alpha1.TargetFailure{Kind: "Deployment", Name: name, Reason: v1alpha1.UnsupportedKindReason})
		}
		status.Targets = &v1alpha1.TargetStatus{
			TargetCounts: v1alpha1.TargetCounts{Failed: int64(len(names))}, Failures: gate.NewestFailures(failures, status, noon.Add(at)),
		}
		for _, f := range status.TargetFailures() {
			kept = append(kept, fmt.Sprintf("%s %s", f.Name, f.RecordedAt.Sub(noon)))
		}
		return kept
	}
	expect := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	expect(record(0, "old"), "old 0s")
	for _, hours := range []time.Duration{1, 2} {
		expect(record(hours*time.Hour, "new", "old"), "new 1h0m0s", "old 0s")
	}

	status = v1alpha1.GateStatus{}
	var many []string
	for i := range 13 {
		many = append(many, fmt.Sprintf("d%02d", i))
	}
	first := record(0, many...)
	if len(first) != v1alpha1.MaxFailures {
		t.Errorf("%d failures are kept", len(first))
	}
	slices.Reverse(many)
	expect(record(time.Hour, many...), first...)
	if kept := record(2*time.Hour, append(many, "newest")...); len(kept) != v1alpha1.MaxFailures || !slices.Contains(kept, "newest 2h0m0s") {
		t.Errorf("kept are %q", kept)
	}
}
