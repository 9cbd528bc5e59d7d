package gate

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// An announcement waits at most a minute until all targets are held.
func TestAnnouncementWaitsUntilTargetsAreSettled(t *testing.T) {
	g := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{hardFreeze(0, hours(20))}, NotifyBefore: []v1alpha1.Duration{{Duration: hours(24)}}})
	g.Status = gate.NewSnapshot(g, nil).Resolve(gate.Observed{}, start).Status(nil)
	known := &summary.Summary{}
	known.Await(summary.KeyFor(g))
	announces := func(at time.Duration) (bool, time.Time) {
		f := announcer{summary: known}.forecast(g, gate.NewSnapshot(g, nil), start.Add(at))
		return !f.IsEmpty(), f.Next
	}
	if early, next := announces(59 * time.Second); early || !next.Equal(start.Add(settleFor)) {
		t.Errorf("before it is settled: announced %t, next at %s", early, next)
	}
	if late, _ := announces(time.Minute); !late {
		t.Error("not announced after a minute")
	}
	known.StopAwaiting(summary.KeyFor(g))
	if settled, _ := announces(time.Second); !settled {
		t.Error("not announced although it is settled")
	}
}

func TestTargetEventNamesOnlyItsNamespace(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "production"}}
	p := Impact{Governed: []*target.Object{newKustomization("bank", "secret"), newKustomization("shop", "apps")}}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionTrue}}
	announcer{events: recorder}.emit(g, p, events.Details{events.GateKey: "shop/production"}, v1alpha1.GateClosesSoonReason,
		func(p *Impact) string { return "closes" + p.Describe(g, v1alpha1.StateClosed) })
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		text, _, _ := strings.Cut(event, " map[") // the annotations
		got = append(got, text)
	}
	const both = "2 targets would be held: Kustomization bank/secret, Kustomization shop/apps"
	equal(t, got, []string{
		"Normal GateClosesSoon Gate closes: " + both,
		"Normal GateClosesSoon Gate 'shop/production' closes: 1 target would be held: Kustomization bank/secret",
		"Normal GateClosesSoon Gate 'shop/production' closes: " + both,
	})
}
