// Package rollout holds the state of passes, and of releases by slots and waves.
package rollout

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/slots"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// Slots stores the targets that wait for a release slot, by Gate.
type Slots = slots.Slots[types.UID, target.Key]

// Rollouts stores the targets of the Gates that release in waves.
type Rollouts = waves.Rollouts

// Eligible selects the targets that may get a slot.
type Eligible = slots.Eligible[target.Key]

// NewItem returns the item that determines the position of a target among the targets waiting for a slot.
func NewItem(g *v1alpha1.Gate, t *target.Object) slots.Item {
	item := slots.Item{Namespace: t.GetNamespace(), Name: t.GetKind() + "/" + t.GetName()}
	if renewer, ok := target.As[target.Renewer](&t.Unstructured); ok {
		item.Expiry = renewer.Expiry(t) // targets without an expiry come last
	}
	item.Failed = slices.ContainsFunc(g.Status.TargetFailures(), func(f v1alpha1.TargetFailure) bool {
		return f.Kind == t.GetKind() && f.Namespace == t.GetNamespace() && f.Name == t.GetName()
	})
	return item
}

// Recorder records the targets of Gates that release in waves, and enqueues these Gates when their rollout may continue.
type Recorder struct {
	Rollouts *Rollouts
	Queues   enqueue.Enqueuer
}

// Record records a target for its Gates that release in waves, and removes it for all other Gates.
func (r Recorder) Record(key target.Key, targetGates []verdict.Gate, member func(verdict.Gate) waves.Member) {
	var gates []summary.Gate
	for _, g := range targetGates {
		if !g.IsOurs() || !g.Governs || !gate.HasWaves(g.Object) {
			continue
		}
		of := summary.KeyFor(g.Object)
		gates = append(gates, of)
		m := member(g)
		m.Message = format.OneLine(strings.Join(strings.Fields(m.Message), " "), MaxMessage)
		changed, added := r.Rollouts.Put(of, g.Object.Generation, key, m)
		if changed && gate.ReleasesInWaves(g.Object) {
			r.Queues.GateSoon(of.NamespacedName)
		}
		if added { // changes of its readiness have not been observed until now
			r.Queues.Targets(queue.Report, key)
		}
	}
	for _, of := range r.Rollouts.Keep(key, gates...) {
		r.Queues.GateSoon(of.NamespacedName)
	}
}

// PhaseFor returns the phase of a target that is not held. If the target is not ready, it also returns the target's message.
func PhaseFor(obj *target.Object) (waves.Phase, string) {
	switch is, message := target.ReadinessOf(obj); is {
	case target.Ready:
		return waves.Ready, ""
	case target.Failed:
		return waves.Failed, message
	case target.Rechecking:
		return waves.Rechecking, message
	default:
		return waves.Progressing, message
	}
}

// MaxMessage bounds the bytes of a target's message in status.release.waves.
const MaxMessage = 256
