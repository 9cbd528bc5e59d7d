package target

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/rollout"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// releaseSlots takes and returns the release slots of targets, and enqueues the Gates that grant them.
type releaseSlots struct {
	slots  *rollout.Slots
	queues enqueue.Enqueuer
}

// missing returns the Gates with a pace that have not granted the target a slot yet.
func (s releaseSlots) missing(obj *target.Object, gates []verdict.Gate) (names []string) {
	for _, g := range gates {
		if g.HasPace() && !s.slots.HasSlot(g.Object.UID, target.KeyOf(obj)) {
			names = append(names, g.Name)
		}
	}
	return names
}

// await requests the slots that a target waits for, and enqueues the Gates that grant them.
func (s releaseSlots) await(ruling *verdict.Ruling) {
	for _, g := range ruling.Queues {
		key := client.ObjectKeyFromObject(g.Object)
		s.slots.Wait(g.Object.UID, target.KeyOf(ruling.Object), rollout.NewItem(g.Object, ruling.Object))
		if gate.ReleasesInWaves(g.Object) {
			s.queues.GateSoon(key) // the Gate is enqueued without delay once all targets are reconciled
		} else {
			s.queues.Gate(key)
		}
	}
}

// take takes the slots that a ruling uses. It returns false if one of these slots was withdrawn.
func (s releaseSlots) take(ruling *verdict.Ruling) bool {
	gates := make([]types.UID, len(ruling.Slots))
	for i, g := range ruling.Slots {
		gates[i] = g.Object.UID
	}
	return s.slots.Take(target.KeyOf(ruling.Object), gates...)
}

// leave returns the slots of a target that is no longer waiting, because it was released or must stay held.
func (s releaseSlots) leave(res *Result) {
	ruling := &res.Ruling
	if ruling.Wait != verdict.NoWait {
		return
	}
	released := res.Wrote && !ruling.Step.Hold && ruling.Step.Outcome != verdict.Passing
	for _, g := range res.Gates {
		if g.Object != nil && g.Object.Spec.Release != nil {
			s.slots.Leave(g.Object.UID, target.KeyOf(ruling.Object), released)
		}
	}
}
