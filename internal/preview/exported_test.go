package preview

import (
	"strings"
	"testing"
	"time"
)

// An exported object of the cluster has its creationTimestamp, and a new one has none. In the cluster, the new one would be newer and take
// precedence.
func TestPreviewTreatsUncreatedManifestAsNewest(t *testing.T) {
	manifests := `
apiVersion: gating.toolkit.fluxcd.io/v1alpha1
kind: Gate
metadata: {name: production, namespace: flux-system}
spec: {default: closed}
---
apiVersion: gating.toolkit.fluxcd.io/v1alpha1
kind: GateException
metadata: {name: a-existing, namespace: flux-system, creationTimestamp: "2026-11-20T00:00:00Z"}
spec:
  gateRef: {name: production}
  default: closed
  validFrom: "2026-12-01T00:00:00Z"
  validUntil: "2026-12-02T00:00:00Z"
  openPeriods: [{name: late, from: "2026-12-01T22:00:00Z", until: "2026-12-01T23:00:00Z"}]
---
apiVersion: gating.toolkit.fluxcd.io/v1alpha1
kind: GateException
metadata: {name: b-new, namespace: flux-system}
spec:
  gateRef: {name: production}
  timeZone: UTC
  validFrom: "2026-12-01T10:00:00Z"
  validUntil: "2026-12-01T12:00:00Z"
  openPeriods: [{name: all, start: "00:00", end: "24:00"}]
`
	from := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	set := NewSet("default")
	if err := set.Read("-", strings.NewReader(manifests)); err != nil {
		t.Fatal(err)
	}
	report, warnings, err := set.Preview(Range{from, from.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if state := report.Gates[0].Intervals[0].State; state != "opened" {
		t.Errorf("preview says %s, warnings %v", state, warnings)
	}
}
