package waves_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/waves"
)

var gate = summary.Gate{UID: "gate"}

func TestFailedTargetStaysFailedUntilReady(t *testing.T) {
	var rollouts waves.Rollouts
	phase := func() waves.Phase {
		members, _ := rollouts.Members(gate.UID, 1)
		return members[key("a")].Phase
	}
	for i, step := range []struct{ put, want waves.Phase }{
		{waves.Progressing, waves.Progressing}, {waves.Failed, waves.Failed}, {waves.Progressing, waves.Failed}, {waves.Rechecking, waves.Failed},
		{waves.Ready, waves.Ready}, {waves.Progressing, waves.Progressing}, {waves.Failed, waves.Failed}, {waves.Held, waves.Held}, {waves.Progressing, waves.Progressing},
	} {
		rollouts.Put(gate, 1, key("a"), waves.Member{Phase: step.put})
		if got := phase(); got != step.want {
			t.Errorf("step %d: phase %d, want %d", i, got, step.want)
		}
	}
}

func TestRolloutsReportWhetherAllMembersHaveCurrentGeneration(t *testing.T) {
	var rollouts waves.Rollouts
	if !rollouts.IsEmpty() || rollouts.Has(key("a")) {
		t.Error("it is not empty")
	}
	if changed, added := rollouts.Put(gate, 1, key("a"), member(0, waves.Held)); !changed || !added {
		t.Error("nothing was added")
	}
	if changed, added := rollouts.Put(gate, 1, key("a"), member(0, waves.Held)); changed || added {
		t.Error("it has changed")
	}
	rollouts.Put(gate, 1, key("b"), member(0, waves.Held))
	rollouts.Put(gate, 2, key("a"), member(1, waves.Held))
	if _, current := rollouts.Members(gate.UID, 2); current {
		t.Error("b was not looked at")
	}
	if dropped := rollouts.Keep(key("b"), summary.Gate{UID: "another"}); len(dropped) != 1 || rollouts.Has(key("b")) || !rollouts.Has(key("a")) {
		t.Errorf("dropped by %v", dropped)
	}
	if members, current := rollouts.Members(gate.UID, 2); !current || len(members) != 1 {
		t.Errorf("%v, %t", members, current)
	}
	if dropped := rollouts.Keep(key("a"), gate); len(dropped) != 0 || !rollouts.Has(key("a")) {
		t.Errorf("dropped by %v", dropped)
	}
	rollouts.Forget(gate.UID)
	rollouts.Forget(gate.UID)
	if !rollouts.IsEmpty() || len(rollouts.Keep(key("a"))) > 0 {
		t.Error("it is not empty")
	}
}

func TestPutReportsStateChange(t *testing.T) {
	var rollouts waves.Rollouts
	for i, step := range []struct {
		generation int64
		member     waves.Member
		changed    bool
	}{
		{0, waves.Member{}, true}, {0, waves.Member{}, false},
		{1, waves.Member{}, true}, {1, waves.Member{Phase: waves.Ready}, true}, {1, waves.Member{Phase: waves.Ready, Matches: 1}, true},
		{1, waves.Member{Phase: waves.Ready, Matches: 1, Message: "m"}, true},
		{1, member(0, waves.Ready, "b"), true}, {1, member(0, waves.Ready, "b"), false}, {1, member(0, waves.Ready, "c"), true},
	} {
		if changed, _ := rollouts.Put(gate, step.generation, key("a"), step.member); changed != step.changed {
			t.Errorf("step %d: changed is %t, want %t", i, changed, step.changed)
		}
	}
}
