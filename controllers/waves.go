package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// maxWaiting is how many targets status.release.waves names, and maxSaid how many bytes it quotes of what each says.
const maxWaiting, maxSaid = 10, 256

// wavesOf returns the names of the waves of a Gate, with that of the targets that no wave matches.
func wavesOf(g *v1alpha1.Gate) []string {
	var names []string
	for i := range g.Spec.Release.Waves {
		names = append(names, g.Spec.Release.Waves[i].Name)
	}
	return append(names, v1alpha1.RestOfTargets)
}

// inWaves gives those targets their turn that may have it by the waves of a Gate.
func (r releaser) inWaves(obj *v1alpha1.Gate, s tally.Sums, now time.Time) released {
	opened := obj.Status.LastTransition.At
	if s.Awaits || !r.tally.IsComplete() || !r.memory.isLookedAt(obj, s.IsSettled()) {
		return released{}
	}
	status := v1alpha1.ReleaseStatus{}
	if obj.Status.Release != nil {
		status = *obj.Status.Release.DeepCopy()
	}
	if w := status.Waves; w == nil || !w.OpenedAt.Equal(&opened) {
		status.Waves = &v1alpha1.WavesStatus{OpenedAt: &opened, Current: obj.Spec.Release.Waves[0].Name}
		status.Released, status.Total, status.NextAt = 0, 0, nil
	}
	if status.Waves.Current == "" {
		return r.released(obj, status, now)
	}
	members, current := r.book.Members(tallied(obj), obj.Generation)
	if !current {
		return released{}
	}
	release := &waves.Release{Members: members, Settled: s.IsSettled()}
	for i := range obj.Spec.Release.Waves {
		release.Soaks = append(release.Soaks, obj.Spec.Release.Waves[i].Soak.Or(0))
	}
	before := progressOf(obj, status.Waves, members)
	if len(status.Waves.Done) == 0 && status.Waves.Total == 0 && !release.Begins() {
		status.Waves.Current = ""
		return r.released(obj, status, now)
	}
	var asks *proceed
	if release.Settled { // else it is looked at when all is known
		asks = takeProceed(obj, &status)
	}
	d := release.Decide(before, asks != nil && asks.err == "", now)
	noteWaves(obj, status.Waves, d)
	told := tellWaves(wavesOf(obj), before, d, asks)
	done := r.call(obj, status, now, func(key target.Key) bool { return d.Over || d.May[key] })
	done.told = told
	if !d.Again.IsZero() && (done.wake.IsZero() || d.Again.Before(done.wake)) {
		done.wake = d.Again
	}
	return done
}

// released gives all their turn that wait, because all waves are released.
func (r releaser) released(obj *v1alpha1.Gate, status v1alpha1.ReleaseStatus, now time.Time) released {
	var told []waveNews
	if asks := takeProceed(obj, &status); asks != nil {
		told = append(told, asks.refused("no release is on"))
	}
	conditions.Delete(obj, v1alpha1.ReleaseStoppedCondition)
	if waiting, n := r.turns.Counts(tallied(obj)); waiting == 0 && n == 0 {
		status.NextAt = nil
		obj.Status.Release = &status
		return released{told: told}
	}
	done := r.call(obj, status, now, func(target.Key) bool { return true })
	done.told = told
	return done
}

// progressOf returns how far a release is by the status of a Gate. Finished waves count as far as the waves are still those of
// the spec.
func progressOf(obj *v1alpha1.Gate, w *v1alpha1.WavesStatus, members map[target.Key]waves.Member) waves.Progress {
	names := wavesOf(obj)
	p := waves.Progress{ReadySince: timeOf(w.ReadySince), Accepted: w.FaultsAccepted}
	for p.Done < len(w.Done) && p.Done < len(names) && w.Done[p.Done] == names[p.Done] {
		p.Done++
	}
	if p.Done < len(w.Done) || p.Done == len(names) || names[p.Done] != w.Current {
		p.ReadySince = time.Time{}
	}
	if i := slices.Index(names, w.ProceededPast); i < p.Done {
		p.Excused = i + 1
	}
	for _, waits := range w.WaitingFor {
		for key := range members {
			if waits.State == phases[waves.Failed] && key.Kind == waits.Kind && key.Namespace == waits.Namespace && key.Name == waits.Name {
				p.Failed = append(p.Failed, key)
			}
		}
	}
	return p
}

// noteWaves notes a decision in the status of a Gate.
func noteWaves(obj *v1alpha1.Gate, w *v1alpha1.WavesStatus, d waves.Decision) {
	names := wavesOf(obj)
	w.Done, w.Current, w.Ready, w.Total, w.ReadySince, w.ProceededPast = names[:d.Done:d.Done], "", 0, 0, nil, ""
	w.FaultsAccepted = d.Accepted
	if !d.Over {
		w.Current, w.Ready, w.Total = names[d.Done], int64(d.Ready), int64(d.Sizes[d.Done])
	}
	if !d.ReadySince.IsZero() {
		w.ReadySince = ptr.To(metav1.NewMicroTime(d.ReadySince))
	}
	if d.Excused > 0 {
		w.ProceededPast = names[d.Excused-1]
	}
	w.WaitingFor = nil
	for _, waits := range d.Waiting[:min(len(d.Waiting), maxWaiting)] {
		w.WaitingFor = append(w.WaitingFor, v1alpha1.WaitingTarget{
			Kind: waits.Key.Kind, Namespace: waits.Key.Namespace, Name: waits.Key.Name, State: phases[waits.Phase], Message: waits.Message,
		})
	}
	reason, message := stopOf(obj, names, d)
	if reason == "" {
		conditions.Delete(obj, v1alpha1.ReleaseStoppedCondition)
		return
	}
	conditions.MarkTrue(obj, v1alpha1.ReleaseStoppedCondition, reason, "%s", message)
}

// phases are the states of targets for which a release waits.
var phases = map[waves.Phase]string{
	waves.Held: "Held", waves.Blocked: "HeldByOthers", waves.Progressing: "Progressing", waves.Rechecking: "Progressing", waves.Failed: "Failed",
}

// stopOf says why a release does not go on by itself, and what to do. The reason is empty if it does.
func stopOf(obj *v1alpha1.Gate, names []string, d waves.Decision) (reason, message string) {
	proceed := fmt.Sprintf("kubectl gate proceed %s -n %s", obj.Name, obj.Namespace)
	switch {
	case d.Fault != nil:
		return v1alpha1.InvalidWavesReason, faultOf(names, d.Fault) + " Nothing more is released until that is fixed, or until a user runs " + proceed
	case len(d.Stops) > 0:
		first, more := d.Stops[0], ""
		if n := len(d.Stops) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		return v1alpha1.WaveFailedReason, fmt.Sprintf("wave %s: %s%s has failed: %s. Nothing more is released until it is ready, or until a user runs %s",
			names[d.Done], first.Key, more, strings.TrimSuffix(first.Message, "."), proceed)
	}
	return "", ""
}

// faultOf says what is wrong with waves, and how to mend it.
func faultOf(names []string, f *waves.Fault) string {
	switch f.Kind {
	case waves.Overlap:
		return fmt.Sprintf("waves %s and %s both match %s: change its labels or the waves.", names[f.Waves[0]], names[f.Waves[1]], f.Targets[0])
	case waves.Empty:
		return fmt.Sprintf("wave %s matches no target: compare its labels with those of the targets, or take it out.", names[f.Waves[0]])
	default:
		var all []string
		for _, key := range append(slices.Clone(f.Targets[:min(len(f.Targets), maxWaiting)]), f.Targets[0]) {
			all = append(all, key.String())
		}
		return fmt.Sprintf("targets depend on each other in a circle: %s: change their spec.dependsOn.", strings.Join(all, ", "))
	}
}

// waveText says how far the current wave of a Gate is, for the condition Ready.
func waveText(obj *v1alpha1.Gate) string {
	if obj.Status.Release == nil || obj.Status.Release.Waves == nil || obj.Status.Release.Waves.OpenedAt == nil {
		return ""
	}
	w := obj.Status.Release.Waves
	text := fmt.Sprintf("wave %s: %d of %d ready", w.Current, w.Ready, w.Total)
	names := wavesOf(obj)
	if i := slices.Index(names, w.Current); w.ReadySince != nil && i >= 0 && i < len(names)-1 {
		soak := obj.Spec.Release.Waves[i].Soak.Or(0)
		text += fmt.Sprintf(", wave %s follows at %s", names[i+1], w.ReadySince.Add(soak).UTC().Format(time.RFC3339))
	}
	return text + "; "
}
