package act

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// waitingOf returns an open request of a user that waits for approval. It was accepted the given number of seconds after now.
func waitingOf(who string, seconds int) v1alpha1.AcceptedRequest {
	at := metav1.NewMicroTime(now.Add(time.Duration(seconds) * time.Second))
	return v1alpha1.AcceptedRequest{Action: v1alpha1.RequestOpen, RequestedAt: at, AcceptedAt: at, RequestedBy: who, State: v1alpha1.RequestWaiting, Stamped: true, Source: v1alpha1.SourceAnnotation}
}

func TestApproveListsWaitingRequests(t *testing.T) {
	alice, bob := waitingOf("alice", 0), waitingOf("bob", 1)
	done := alice
	done.Approvals = []v1alpha1.RequestApproval{{ApprovedBy: "carol"}}
	for name, tc := range map[string]struct {
		required int32
		requests []v1alpha1.AcceptedRequest
		id       string
		want     string
	}{
		"one":                       {1, []v1alpha1.AcceptedRequest{alice}, "", ""},
		"one that was read":         {1, []v1alpha1.AcceptedRequest{alice, bob}, requestID(&bob), ""},
		"two":                       {1, []v1alpha1.AcceptedRequest{alice, bob}, "", "2 requests wait: choose one with --request: " + requestID(&alice) + " of alice, " + requestID(&bob) + " of bob"},
		"another one since":         {1, []v1alpha1.AcceptedRequest{bob}, requestID(&alice), "request " + requestID(&alice) + " no longer waits for approval; waiting: " + requestID(&bob) + " of bob"},
		"none":                      {1, nil, "", "no open request waits for approval; for earlier requests: kubectl gate history production -n ops"},
		"none that lacks any":       {1, []v1alpha1.AcceptedRequest{done}, "", "no open request waits for approval"},
		"a gate that requires none": {0, nil, "", "open requests of the gate take effect without approval"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: "ops"}, Status: v1alpha1.GateStatus{Requests: tc.requests}}
			if tc.required > 0 {
				g.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: tc.required}}
			}
			r, err := requestToApprove(g, tc.id, now.Add(time.Minute))
			switch {
			case tc.want == "" && (err != nil || tc.id != "" && requestID(r) != tc.id):
				t.Errorf("%v, %v", r, err)
			case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)):
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}
