package preview_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

func asksForOne(g *v1alpha1.Gate) {
	g.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 1}}
}

func TestClusterExceptionCountsOnlyIfApproved(t *testing.T) {
	waits := extending("hotfix", "web")
	approved := waits.DeepCopy()
	approved.Annotations = map[string]string{v1alpha1.AuthorsAnnotation: "ann"}
	approved.Status.Approvals = []v1alpha1.Approval{{ApprovedBy: "bob"}}
	open, warnings := opens(t, preview.FromCluster([]*v1alpha1.Gate{known("web", asksForOne)}, []*v1alpha1.GateException{waits}))
	if open != "apps/web 10:00-12:00 open period day" || warnings != "apps/hotfix: the exception lacks 1 of 1 approvals, the preview does not count it" {
		t.Errorf("without approvals: %q, %q", open, warnings)
	}
	open, warnings = opens(t, preview.FromCluster([]*v1alpha1.Gate{known("web", asksForOne)}, []*v1alpha1.GateException{approved}))
	if open != "apps/web 10:00-12:00 open period day\napps/web 20:00-21:00 exception hotfix" || warnings != "" {
		t.Errorf("with its approval: %q, %q", open, warnings)
	}
}

func TestRequestsInClusterStatusCount(t *testing.T) {
	asked := func(g *v1alpha1.Gate) {
		g.Status.Requests = []v1alpha1.AcceptedRequest{{
			State:  v1alpha1.RequestInForce,
			Action: v1alpha1.RequestOpen, RequestedAt: metav1.NewMicroTime(day.From.Add(14 * time.Hour)), Window: &v1alpha1.Duration{Duration: time.Hour},
		}}
	}
	cluster := preview.FromCluster([]*v1alpha1.Gate{known("web", asked)}, nil)
	if open, _ := opens(t, cluster); open != "apps/web 10:00-12:00 open period day\napps/web 14:00-15:00 open request" {
		t.Errorf("in the cluster: %q", open)
	}
	if open, _ := opens(t, cluster.Applied(manifests(t, gate("web", "11:00")))); open != "apps/web 10:00-11:00 open period day\napps/web 14:00-15:00 open request" {
		t.Errorf("after another spec is applied: %q", open)
	}
}

func TestRequestRefusedByClusterCausesWarning(t *testing.T) {
	asked := func(g *v1alpha1.Gate) { g.Annotations = map[string]string{v1alpha1.OpenRequestedAtAnnotation: "soon"} }
	cluster := preview.FromCluster([]*v1alpha1.Gate{known("web", asked)}, nil)
	for name, set := range map[string]*preview.Set{"as it is": cluster, "with another spec": cluster.Applied(manifests(t, gate("web", "12:00")))} {
		if open, warnings := opens(t, set); open != "apps/web 10:00-12:00 open period day" || !strings.Contains(warnings, "metadata.annotations[open.gate.fluxcd.io/requestedAt]: must be") {
			t.Errorf("%s: %q, %q", name, open, warnings)
		}
	}
}

func TestUnchangedExceptionKeepsApprovals(t *testing.T) {
	waits := extending("hotfix", "web")
	cluster := preview.FromCluster([]*v1alpha1.Gate{known("web", asksForOne)}, []*v1alpha1.GateException{waits})
	if open, _ := opens(t, cluster.Applied(manifests(t, exception("hotfix", "web")))); open != "apps/web 10:00-12:00 open period day" {
		t.Errorf("the same: %q", open)
	}
	later := strings.NewReplacer("20:00", "22:00", "21:00", "23:00").Replace(exception("hotfix", "web"))
	open, warnings := opens(t, cluster.Applied(manifests(t, later)))
	if open != "apps/web 10:00-12:00 open period day\napps/web 22:00-23:00 exception hotfix" || !strings.Contains(warnings, "the preview treats them as approved") {
		t.Errorf("another one: %q, %q", open, warnings)
	}
}

func TestInvalidGateOfClusterStaysClosed(t *testing.T) {
	nowhere := func(g *v1alpha1.Gate) { g.Spec.TimeZone = "Nowhere" }
	report, _, err := preview.FromCluster([]*v1alpha1.Gate{known("web", nowhere)}, nil).Preview(day)
	if err != nil || len(report.Gates[0].Intervals) != 1 {
		t.Fatalf("%v, %+v", err, report)
	}
	if i := report.Gates[0].Intervals[0]; i.State != "closed" || i.ShortReason() != "invalid spec" || !i.From.Time.Equal(day.From) || !i.Until.Time.Equal(day.Until) {
		t.Errorf("%+v", i)
	}
}

func TestSuspendedGateOfClusterCausesWarning(t *testing.T) {
	suspended := func(g *v1alpha1.Gate) { g.Spec.Suspend = true }
	if _, warnings := opens(t, preview.FromCluster([]*v1alpha1.Gate{known("web", suspended)}, nil)); !strings.HasPrefix(warnings, "apps/web: spec.suspend: ") {
		t.Errorf("%q", warnings)
	}
}

func TestManifestErrorsRemainAfterApplying(t *testing.T) {
	broken := manifests(t, strings.Replace(gate("web", "12:00"), "closed", "ajar", 1))
	_, _, err := preview.FromCluster([]*v1alpha1.Gate{known("web")}, nil).Applied(broken).Preview(day)
	var invalid *preview.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Faults) != 1 || !strings.HasPrefix(invalid.Faults[0].String(), "gates.yaml: apps/web: spec.default: ") || broken.Err() == nil {
		t.Errorf("%v", err)
	}
}

func TestGateWithModeAuditCausesWarning(t *testing.T) {
	audits := func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeAudit }
	trial, enforcing := preview.FromCluster([]*v1alpha1.Gate{known("web", audits)}, nil), preview.FromCluster([]*v1alpha1.Gate{known("web")}, nil)
	if open, warnings := opens(t, trial); open != "apps/web 10:00-12:00 open period day" || warnings != "apps/web: spec.mode: the gate has mode Audit: it holds nothing while it is closed" {
		t.Errorf("got %q, %q", open, warnings)
	}
	report, _, err := trial.Preview(day)
	if err != nil || report.Gates[0].Mode != v1alpha1.ModeAudit {
		t.Errorf("%+v, %v", report, err)
	}
	for _, tc := range []struct {
		before, after *preview.Set
		want          string
	}{
		{trial, enforcing, "[apps/web: spec.mode: the gate had mode Audit: from now on it holds its targets while it is closed]"},
		{trial, trial, "[apps/web: spec.mode: the gate has mode Audit: it holds nothing while it is closed]"},
		{enforcing, trial, "[apps/web: spec.mode: the gate has mode Audit: it holds nothing while it is closed]"},
		{enforcing, enforcing, "[]"},
	} {
		_, warnings, err := preview.Diff(tc.before, tc.after, day)
		if got := fmt.Sprint(warnings); err != nil || got != tc.want {
			t.Errorf("got %s, %v, want %s", got, err, tc.want)
		}
	}
}
