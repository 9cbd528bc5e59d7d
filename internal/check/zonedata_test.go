package check_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
)

func TestOldOrDifferentTimeZoneDataIsFound(t *testing.T) {
	const id = "gating-controller-leader-election"
	labeled := func(name, version string, renewed time.Time) unstructured.Unstructured {
		l := lease(t, name, "pod-1", renewed)
		l.SetLabels(map[string]string{v1alpha1.TimeZoneDataLabel: version})
		return l
	}
	fresh := check.ZoneData{Version: "2026f", Released: time.Date(2026, 10, 27, 0, 0, 0, 0, time.UTC)}
	const differs = "warning Lease gating-system/" + id + ": its controller has time zone data 2025c, this plugin has 2026f: "
	for name, tc := range map[string]struct {
		own    check.ZoneData
		leases []unstructured.Unstructured
		want   []string
		shown  string
	}{
		"the same":          {fresh, []unstructured.Unstructured{labeled(id, "2026f", noon)}, nil, "2026f"},
		"older than ours":   {fresh, []unstructured.Unstructured{labeled(id, "2025c", noon)}, []string{differs}, "2025c"},
		"one of two shards": {fresh, []unstructured.Unstructured{labeled(id+"-2", "2026f", noon), labeled(id, "2025c", noon)}, []string{differs}, "2026f, 2025c"},
		"of no leader":      {fresh, []unstructured.Unstructured{labeled(id, "2025c", noon.Add(-time.Hour))}, nil, ""},
		"of another lease":  {fresh, []unstructured.Unstructured{labeled("other", "2025c", noon)}, nil, ""},
		"without a label":   {fresh, []unstructured.Unstructured{lease(t, id, "pod-1", noon)}, nil, ""},
		"nine months old":   {check.ZoneData{Version: "2026a", Released: noon.AddDate(0, -9, 0)}, nil, nil, ""},
		"older": {check.ZoneData{Version: "2026a", Released: noon.AddDate(0, -9, -1)}, nil,
			[]string{"warning time zone data: 2026a of this plugin was released by 2026-02-22, more than 9 months ago: times are wrong"}, ""},
		"of an unknown day": {check.ZoneData{Version: "sha256-0123456789ab"}, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			finds(t, check.TimeZoneData(tc.own, tc.leases, noon), tc.want...)
			controllers := []check.Controller{deployment(t, "")}
			if check.SetTimeZoneData(controllers, tc.leases, noon); controllers[0].TimeZoneData != tc.shown {
				t.Errorf("the controller has %q, want %q", controllers[0].TimeZoneData, tc.shown)
			}
		})
	}
}
