package preview_test

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// fourEyes returns the manifest of a Gate that requires two approvals. It has annotations, each given as name: value.
func fourEyes(annotations ...string) string {
	return strings.NewReplacer("namespace: apps}", "namespace: apps, annotations: {"+strings.Join(annotations, ", ")+"}}",
		"default: closed", "default: closed\n  approvals: {openRequests: {required: 2}}").Replace(gate("web", "12:00"))
}

// A request in a manifest waits for approvals, as in a cluster with config/policies. Other annotations do not change that.
func TestManifestRequestWaitsForApproval(t *testing.T) {
	const midnight, now = `"2026-11-24T00:00:00Z"`, "open.gate.fluxcd.io/requestedAt: "
	const waits = "gates.yaml: apps/web: spec.approvals: an open request of the user who applies it at %s waits for 2 more approvals: approve it with kubectl gate approve gate/web -n apps"
	for name, tc := range map[string]struct {
		annotations []string
		at          string
	}{
		"a request":                 {[]string{now + midnight}, "2026-11-24T00:00:00Z"},
		"one in the name of others": {[]string{now + midnight, "open.gate.fluxcd.io/requestedBy: alice"}, "2026-11-24T00:00:00Z"},
		"one for later":             {[]string{now + `"2026-11-24T15:00:00Z"`}, "2026-11-24T15:00:00Z"},
		"one for an emergency":      {[]string{now + midnight, "open.gate.fluxcd.io/emergency: " + midnight, "open.gate.fluxcd.io/reason: outage"}, "2026-11-24T00:00:00Z"},
		"one with its approvals": {[]string{now + midnight,
			`approve.gate.fluxcd.io/requestedBy: "request=2026-11-24T00:00:00.000000Z,uid= bob\nrequest=2026-11-24T00:00:00.000000Z,uid= carol\n"`}, "2026-11-24T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			open, warnings := opens(t, manifests(t, fourEyes(tc.annotations...)))
			if want := strings.Replace(waits, "%s", tc.at, 1); open != "apps/web 10:00-12:00 open period day" || warnings != want {
				t.Errorf("open %q, warnings %q\nwant %q", open, warnings, want)
			}
		})
	}
	if open, warnings := opens(t, manifests(t, fourEyes())); open != "apps/web 10:00-12:00 open period day" || warnings != "" {
		t.Errorf("without a request: open %q, warnings %q", open, warnings)
	}
	free := strings.Replace(fourEyes(now+midnight), "\n  approvals: {openRequests: {required: 2}}", "", 1)
	if open, warnings := opens(t, manifests(t, free)); open != "apps/web 00:00-00:00 open request" || warnings != "" {
		t.Errorf("a gate without approvals: open %q, warnings %q", open, warnings)
	}
}

// A calendar shows when a Gate opens, but not the requester.
func TestClusterRequestWaitsForApprovalAndIsInNoCalendar(t *testing.T) {
	asked := func(g *v1alpha1.Gate) {
		at := metav1.NewMicroTime(day.From)
		g.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 1}}
		g.Status.Requests = []v1alpha1.AcceptedRequest{{
			Action: v1alpha1.RequestOpen, RequestedAt: at, AcceptedAt: at, RequestedBy: "alice", Source: v1alpha1.SourceAnnotation, Stamped: true, State: v1alpha1.RequestWaiting,
		}}
	}
	set := preview.FromCluster([]*v1alpha1.Gate{known("web", asked)}, nil)
	open, warnings := opens(t, set)
	want := "apps/web: spec.approvals: an open request of alice at 2026-11-24T00:00:00Z waits for 1 more approval: approve it with kubectl gate approve gate/web -n apps"
	if open != "apps/web 10:00-12:00 open period day" || warnings != want {
		t.Errorf("open %q, warnings %q\nwant %q", open, warnings, want)
	}
	report, _, err := set.Preview(day)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (preview.Calendar{Range: day, Name: "web"}).Write(&out, report); err != nil || out.Len() == 0 || strings.Contains(out.String(), "alice") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
