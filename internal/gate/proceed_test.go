package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

func TestProceedIsRecordedOnce(t *testing.T) {
	const value = "2026-11-23T12:00:00Z,wave=canary"
	long := strings.Repeat("x", 600)
	for name, tc := range map[string]struct {
		annotation string
		release    *v1alpha1.ReleaseStatus
		want       string
	}{
		"none":                                 {"", nil, ""},
		"the first":                            {value, nil, value},
		"another one than before":              {value, &v1alpha1.ReleaseStatus{LastHandledProceed: "2026-11-23T11:00:00Z"}, value},
		"one that was acted on":                {value, &v1alpha1.ReleaseStatus{LastHandledProceed: value}, ""},
		"one while another one waits":          {value, &v1alpha1.ReleaseStatus{Proceed: &v1alpha1.ProceedRequest{Value: "before"}}, ""},
		"one of several lines, as it is":       {" a\nb\n", nil, " a\nb\n"},
		"white space":                          {" ", nil, " "},
		"one that only differs by white space": {value + " ", &v1alpha1.ReleaseStatus{LastHandledProceed: value}, value + " "},
		"a long one":                           {long, nil, long[:128]},
		"a long one that was acted on":         {long, &v1alpha1.ReleaseStatus{LastHandledProceed: long[:128]}, ""},
		"a long one, cut within a character":   {"x" + strings.Repeat("é", 64), nil, "x" + strings.Repeat("é", 63)},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed()
			g.Annotations = map[string]string{v1alpha1.ProceedRequestedAtAnnotation: tc.annotation, v1alpha1.ProceedRequestedByAnnotation: "alice\n" + long, v1alpha1.ProceedReasonAnnotation: long}
			g.Status.Release = tc.release
			if has := gate.HasNewProceed(g, tc.release); has != (tc.want != "") {
				t.Fatalf("has %t", has)
			}
			if tc.want == "" {
				return
			}
			release := gate.WithProceed(g, noon.Add(time.Nanosecond))
			got := release.Proceed
			if got.Value != tc.want || !strings.HasPrefix(got.RequestedBy, "alice xxx") || len(got.RequestedBy) != 339 || len(got.Message) != 512 || !got.RecordedAt.Time.Equal(noon) {
				t.Errorf("%+v", got)
			}
			if gate.HasNewProceed(g, release) {
				t.Error("noted twice")
			}
		})
	}
}
