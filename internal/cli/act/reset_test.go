package act

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

func TestResetWithdrawsRequestsForNamedTargets(t *testing.T) {
	open := func(at time.Time, targets ...string) v1alpha1.AcceptedRequest {
		r := v1alpha1.AcceptedRequest{
			Action: v1alpha1.RequestOpen, State: v1alpha1.RequestInForce, RequestedBy: "ada", Window: &v1alpha1.Duration{Duration: time.Hour},
			RequestedAt: metav1.NewMicroTime(at), AcceptedAt: metav1.NewMicroTime(now.Add(-time.Minute)),
		}
		if at.After(now) {
			r.State = v1alpha1.RequestPlanned
		}
		for _, name := range targets {
			r.Targets = append(r.Targets, v1alpha1.RequestTarget{Kind: "Kustomization", Name: name})
		}
		return r
	}
	before, later := now.Add(-time.Minute), now.Add(time.Hour)
	for name, tc := range map[string]struct {
		requests []v1alpha1.AcceptedRequest
		only     []string
		words    string
		left     int
	}{
		"one of two":             {[]v1alpha1.AcceptedRequest{open(before, "a", "b")}, []string{"kustomization/a"}, "the open request of ada only for Kustomization/a, Kustomization/b, for Kustomization/a", 1},
		"both":                   {[]v1alpha1.AcceptedRequest{open(before, "a", "b")}, []string{"kustomization/flux-system/a", "kustomization/b"}, "the open request of ada only for Kustomization/a, Kustomization/b, for Kustomization/a, Kustomization/b", 0},
		"another one":            {[]v1alpha1.AcceptedRequest{open(before, "a")}, []string{"kustomization/b"}, "", 1},
		"of another namespace":   {[]v1alpha1.AcceptedRequest{open(before, "a")}, []string{"kustomization/shop/a"}, "", 1},
		"not that of the gate":   {[]v1alpha1.AcceptedRequest{open(before)}, []string{"kustomization/a"}, "", 1},
		"a planned one":          {[]v1alpha1.AcceptedRequest{open(later, "a")}, []string{"kustomization/a"}, "the planned open request of ada only for Kustomization/a, for Kustomization/a", 0},
		"a part of a planned":    {[]v1alpha1.AcceptedRequest{open(later, "a", "b")}, []string{"kustomization/a"}, "", 1},
		"not a planned whole":    {[]v1alpha1.AcceptedRequest{open(later)}, []string{"kustomization/a"}, "", 1},
		"all without the flag":   {[]v1alpha1.AcceptedRequest{open(before), open(before, "a")}, nil, "the open request of ada only for Kustomization/a and the open request of ada", 0},
		"in force, then planned": {[]v1alpha1.AcceptedRequest{open(before, "a"), open(later, "a")}, []string{"kustomization/a"}, "the open request of ada only for Kustomization/a, for Kustomization/a", 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := freezing(v1alpha1.OverrideAllow)
			g.Status.Requests = tc.requests
			refs, err := kube.ParseTargets(tc.only)
			if err != nil {
				t.Fatal(err)
			}
			r := withdraw(g, now, "", refs...)
			if r == nil {
				r = &request{}
			} else {
				g.Annotations = map[string]string{requestAnnotation(r.action): r.value()}
			}
			for _, handled := range gate.ApplyRequests(g, ledger.Stamped, now) {
				if handled.Err != nil {
					t.Error(handled.Err)
				}
			}
			inForce, planned := ledger.RequestsAt(g, now)
			if n := len(inForce) + len(planned); r.words != tc.words || n != tc.left {
				t.Errorf("got %q and %d requests, want %q and %d", r.words, n, tc.words, tc.left)
			}
		})
	}
}
