package preview_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// quarter is the longest range that a page shows.
var quarter = preview.Range{From: day.From, Until: day.From.AddDate(0, 0, 92)}

// restless makes a Gate change its state every minute, in each of a hundred periods.
func restless(g *v1alpha1.Gate) {
	g.Spec.OpenPeriods = nil
	for i := range v1alpha1.MaxPeriods {
		schedule := "*/2 * * * *"
		g.Spec.OpenPeriods = append(g.Spec.OpenPeriods, v1alpha1.Period{Name: fmt.Sprintf("w%d", i), Schedule: &schedule, Duration: &v1alpha1.Duration{Duration: time.Minute}})
	}
}

func TestSlowPreviewEndsEarlyAndReportsIt(t *testing.T) {
	set := preview.FromCluster([]*v1alpha1.Gate{known("calm"), known("restless", restless)}, nil).Within(context.Background(), preview.PageLookups)
	report, warnings, err := set.Preview(quarter)
	if err != nil {
		t.Fatal(err)
	}
	calm, intervals := report.Gates[0].Intervals, report.Gates[1].Intervals
	if len(calm) != 2*92+1 || !calm[len(calm)-1].Until.Time.Equal(quarter.Until) {
		t.Errorf("another Gate has %d intervals", len(calm))
	}
	if n := len(intervals); n < 2000 || !intervals[n-1].Until.Time.Before(quarter.Until) {
		t.Errorf("%d intervals", n)
	}
	end := "the preview ends at " + intervals[len(intervals)-1].Until.UTC().Format(time.RFC3339)
	if len(warnings) != 1 || !warnings[0].Incomplete || !strings.HasPrefix(warnings[0].Cause, end) {
		t.Errorf("%v, want %s", warnings, end)
	}
}

func TestExceptionWithUnknownLeadEmptiesPreview(t *testing.T) {
	e := extending("x", "restless")
	e.Spec.LeadTime, e.Spec.ValidUntil = &v1alpha1.Duration{Duration: time.Hour}, metav1.NewTime(day.From.AddDate(0, 0, 80))
	e.Spec.OpenPeriods, e.Spec.ClosePeriods = nil, known("", restless).Spec.OpenPeriods
	var gates []*v1alpha1.Gate
	for i := range 40 {
		gates = append(gates, known(fmt.Sprint(i)))
	}
	gates = append(gates, known("restless", restless))
	report, warnings, err := preview.FromCluster(gates, []*v1alpha1.GateException{e}).Within(context.Background(), preview.PageLookups).Preview(quarter)
	if err != nil || len(report.Gates[40].Intervals) > 0 || !slices.ContainsFunc(warnings, func(f preview.Fault) bool { return f.Incomplete }) {
		t.Errorf("%v, %v", warnings, err)
	}
}

func TestPreviewEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	set := preview.FromCluster([]*v1alpha1.Gate{known("restless", restless)}, nil).Within(ctx, preview.PageLookups)
	if _, _, err := set.Preview(quarter); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := preview.Diff(set, set.Applied(manifests(t, gate("web", "11:00"))), quarter); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestDiffReportsEarlyEnd(t *testing.T) {
	set := preview.FromCluster([]*v1alpha1.Gate{known("restless", restless)}, nil).Within(context.Background(), preview.PageLookups)
	start := time.Now()
	changes, warnings, err := preview.Diff(set, set.Applied(manifests(t, gate("restless", "11:00"))), quarter)
	t.Log(time.Since(start))
	if err != nil || len(changes.Gates) != 1 || len(changes.Gates[0].Differences) < 100 {
		t.Fatalf("%+v, %v", changes, err)
	}
	if !slices.ContainsFunc(warnings, func(f preview.Fault) bool { return f.Incomplete }) {
		t.Errorf("it does not say that it ends early: %v", warnings)
	}
}

// The state of a target is unknown after the changes that are followed, and not that of the Gate.
func TestPreviewOfTargetEndsEarlyAndReportsIt(t *testing.T) {
	e := extending("lunches", "web")
	e.Spec.ValidUntil, e.Spec.Targets = metav1.NewTime(day.From.AddDate(0, 0, 80)), []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}}
	every, short := "0 */2 * * *", &v1alpha1.Duration{Duration: time.Minute}
	e.Spec.OpenPeriods = []v1alpha1.Period{{Name: "x", Schedule: &every, Duration: short, TimeZone: "UTC"}}
	set := preview.FromCluster([]*v1alpha1.Gate{known("web")}, []*v1alpha1.GateException{e}).ForTarget(names("apps"))
	report, warnings, err := set.Preview(quarter)
	if err != nil {
		t.Fatal(err)
	}
	last := report.Gates[0].Intervals[len(report.Gates[0].Intervals)-1]
	end := "the preview ends at " + last.Until.UTC().Format(time.RFC3339)
	if len(warnings) != 1 || !warnings[0].Incomplete || !strings.HasPrefix(warnings[0].Cause, end) || !last.Until.Time.Before(quarter.Until) {
		t.Errorf("%v, want %s", warnings, end)
	}
	if report, warnings, err := set.Preview(day); err != nil || len(warnings) > 0 || !report.Gates[0].Intervals[len(report.Gates[0].Intervals)-1].Until.Time.Equal(day.Until) {
		t.Errorf("a day: %v, %v", warnings, err)
	}
	before := preview.FromCluster([]*v1alpha1.Gate{known("web")}, nil)
	changes, warnings, err := preview.Diff(before, preview.FromCluster([]*v1alpha1.Gate{known("web")}, []*v1alpha1.GateException{e}), quarter)
	if err != nil || len(changes.Gates) != 1 || changes.Gates[0].Differences[len(changes.Gates[0].Differences)-1].Until.After(last.Until.Time) || len(warnings) != 1 || !warnings[0].Incomplete {
		t.Errorf("the comparison: %+v, %v, %v", changes, warnings, err)
	}
}
