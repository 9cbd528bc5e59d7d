package gate

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/summary"
)

func TestTokenOfRequestIsStable(t *testing.T) {
	g := &v1alpha1.Gate{}
	g.UID = "uid"
	request := ledger.Request{Annotation: v1alpha1.OpenRequestedAtAnnotation, Value: "yesterday", Err: errors.New("no")}
	same := requestToken(g, request)
	equal(t, requestToken(g.DeepCopy(), request), same)
	tokens := map[string]bool{same: true}
	for _, other := range []ledger.Request{{Annotation: v1alpha1.CloseRequestedAtAnnotation, Value: "yesterday"}, {Annotation: v1alpha1.OpenRequestedAtAnnotation, Value: "today"}} {
		tokens[requestToken(g, other)] = true
	}
	g.UID = "another"
	tokens[requestToken(g, request)] = true
	if len(tokens) != 4 {
		t.Errorf("tokens %v", tokens)
	}
}

// The targets have an event each, up to a limit.
func TestTransitionSummaryOfManyTargets(t *testing.T) {
	const many = 105
	for name, tc := range map[string]struct {
		state v1alpha1.State
		mode  v1alpha1.Mode
		sums  summary.Sums
		want  string
	}{
		"closed":                {v1alpha1.StateClosed, v1alpha1.ModeEnforce, summary.Sums{Total: many, Held: many - 1}, "Normal GateClosed 104 of 105 targets held"},
		"opened":                {v1alpha1.StateOpened, v1alpha1.ModeEnforce, summary.Sums{Total: many, Held: 2}, "Normal GateOpened 103 targets released"},
		"closed, in mode Audit": {v1alpha1.StateClosed, v1alpha1.ModeAudit, summary.Sums{Total: many, WouldHold: many}, "Normal WouldHold 105 of 105 targets would be held. The gate has mode Audit and holds nothing."},
		"opened, in mode Audit": {v1alpha1.StateOpened, v1alpha1.ModeAudit, summary.Sums{Total: many}, ""},
		"few targets":           {v1alpha1.StateClosed, v1alpha1.ModeEnforce, summary.Sums{Total: 100, Held: 100}, ""},
	} {
		fake := record.NewFakeRecorder(1)
		g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Mode: tc.mode}}
		g.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(start), State: tc.state}
		recorder{EventRecorder: fake}.summary(g, tc.sums, start)
		got := ""
		select {
		case got = <-fake.Events:
		default:
		}
		if got, _, _ = strings.Cut(got, "map["); strings.TrimSpace(got) != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
