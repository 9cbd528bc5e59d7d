package controllers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// rollout records the targets of Gates that release in waves, and enqueues the Gates whose rollout may continue.
type rollout struct {
	book *Book
	wake Waker
}

func (r *TargetReconciler) rollout() rollout { return rollout{r.Book, r.Wake} }

// record records a target for those of its Gates that release in waves, and deletes it for all others.
func (r rollout) record(key target.Key, targetGates []verdict.Gate, member func(verdict.Gate) waves.Member) {
	var gates []summary.Gate
	for _, g := range targetGates {
		if !g.IsOurs() || !g.Governs || !gate.HasWaves(g.Object) {
			continue
		}
		of := tallied(g.Object)
		gates = append(gates, of)
		m := member(g)
		m.Message = format.OneLine(strings.Join(strings.Fields(m.Message), " "), maxSaid)
		changed, added := r.book.Put(of, g.Object.Generation, key, m)
		if changed && gate.ReleasesInWaves(g.Object) {
			r.wake.GateSoon(of.NamespacedName)
		}
		if added { // its changes of readiness were not observed before
			r.wake.Targets(queue.Tell, key)
		}
	}
	for _, of := range r.book.Keep(key, gates...) {
		r.wake.GateSoon(of.NamespacedName)
	}
}

// member returns what a target is for a Gate that releases it in waves.
func (s *targetResult) member(g verdict.Gate) waves.Member {
	obj, step := s.Ruling.Object, s.Ruling.Step
	m := waves.Member{Matches: verdict.WavesOf(g.Object, &obj.Unstructured), Needs: target.Needs(obj)}
	held := s.Ruling.Observed.State != target.Free && s.Ruling.Observed.State != target.Foreign
	switch {
	case s.Ruling.Wait == verdict.ForSlot:
	case s.Ruling.Wait != verdict.NoWait:
		m.Message = "waits until it is unlocked"
	case held && s.Failure != nil && !s.Wrote:
		m.Message = s.Failure.Message
	case step.Outcome == verdict.Passing && g.Stand == verdict.Open:
		m.Phase, m.Message = waves.Blocked, "held by "+strings.Join(step.Names, ", ")+", one reconciliation passes"
	case step.Outcome == verdict.Passing: // it is held again
	case step.Hold && g.Stand == verdict.Open:
		others := slices.DeleteFunc(slices.Clone(step.Names), func(name string) bool { return name == g.Name })
		m.Phase, m.Message = waves.Blocked, "held by "+strings.Join(others, ", ")
	case step.Hold:
	case step.Outcome == verdict.Foreign || step.Outcome == verdict.Exempt:
		m.Phase = waves.Skipped
	case s.Wrote && s.Ruling.Releases():
		m.Phase = waves.Progressing
	default:
		m.Phase, m.Message = readinessOf(obj)
	}
	return m
}

// readinessOf returns the phase of a target that nobody holds, and what it says if it is not ready.
func readinessOf(obj *target.Object) (waves.Phase, string) {
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

// wakeReleased has a target looked at that is released in waves, if it says something else than before of whether it is ready.
func wakeReleased(book *Book, wake Waker, before, after *unstructured.Unstructured) {
	if book.IsEmpty() {
		return
	}
	obj := &target.Object{Unstructured: *after}
	if key := target.KeyOf(obj); book.Has(key) {
		was, said := target.ReadinessOf(&target.Object{Unstructured: *before})
		if is, says := target.ReadinessOf(obj); is != was || says != said {
			wake.Targets(queue.Tell, key)
		}
	}
}
