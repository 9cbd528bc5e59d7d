package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/rollout"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// maxWaiting bounds how many targets status.release.waves names.
const maxWaiting = 10

// waveDecision is a decision on the waves of a release, with its inputs.
type waveDecision struct {
	waves.Decision
	before waves.Progress
	// proceed is the request to proceed that was handled, nil if there was none.
	proceed *proceed
}

// inWaves grants slots to the targets that the waves of a Gate permit.
func (r releaser) inWaves(obj *v1alpha1.Gate, done released, s summary.Sums, now time.Time) released {
	opened := obj.Status.LastTransition.At
	if s.Awaits || !r.summary.IsComplete() || !r.state.isReconciled(obj, s.IsSettled()) {
		return done
	}
	status := &v1alpha1.ReleaseStatus{}
	if done.status != nil {
		status = done.status.DeepCopy()
	}
	if w := status.Waves; w == nil || !w.OpenedAt.Equal(&opened) {
		status.Waves = &v1alpha1.WavesStatus{OpenedAt: &opened, Current: obj.Spec.Release.Waves[0].Name}
		status.Released, status.Total, status.NextAt = 0, 0, nil
	}
	if status.Waves.Current == "" {
		return r.afterWaves(obj, status, now)
	}
	members, current := r.rollouts.Members(obj.UID, obj.Generation)
	if !current {
		return done
	}
	release := &waves.Release{Members: members, Settled: s.IsSettled()}
	for i := range obj.Spec.Release.Waves {
		release.Soaks = append(release.Soaks, obj.Spec.Release.Waves[i].Soak.Or(0))
	}
	d := &waveDecision{before: waveProgress(obj, status.Waves, members)}
	if len(status.Waves.Done) == 0 && status.Waves.Total == 0 && !release.IsNeeded() {
		status.Waves.Current = ""
		return r.afterWaves(obj, status, now)
	}
	if release.Settled { // otherwise, the request is handled once all targets are known
		d.proceed = takeProceed(obj, status)
	}
	d.Decision = release.Decide(d.before, d.proceed != nil && d.proceed.err == "", now)
	recordWaves(obj, status.Waves, d.Decision)
	done = r.grantSlots(obj, released{status: status, stop: releaseStop(obj, d.Decision), waves: d}, now, rollout.Eligible{All: d.Over, Some: d.May})
	if !d.Again.IsZero() && (done.recheck.IsZero() || d.Again.Before(done.recheck)) {
		done.recheck = d.Again
	}
	return done
}

// afterWaves grants slots to all waiting targets, after the last wave.
func (r releaser) afterWaves(obj *v1alpha1.Gate, status *v1alpha1.ReleaseStatus, now time.Time) released {
	done := released{status: status}
	if p := takeProceed(obj, status); p != nil {
		n := len(gate.WaveNames(obj))
		done.waves = &waveDecision{before: waves.Progress{Done: n}, Decision: waves.Decision{Progress: waves.Progress{Done: n}}, proceed: p}
	}
	if waiting, n := r.slots.Counts(obj.UID); waiting == 0 && n == 0 {
		status.NextAt = nil
		return done
	}
	return r.grantSlots(obj, done, now, rollout.Eligible{All: true})
}

// waveProgress returns the progress of a release from the status of a Gate. Finished waves are counted until the first one that does not
// match the waves in the spec.
func waveProgress(obj *v1alpha1.Gate, w *v1alpha1.WavesStatus, members map[target.Key]waves.Member) waves.Progress {
	names := gate.WaveNames(obj)
	p := waves.Progress{ReadySince: timeOrZero(w.ReadySince), Accepted: w.FaultsAccepted}
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

// recordWaves records a decision in the status of a Gate.
func recordWaves(obj *v1alpha1.Gate, w *v1alpha1.WavesStatus, d waves.Decision) {
	names := gate.WaveNames(obj)
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
}

// phases maps the phases of targets that a release waits for to their names.
var phases = map[waves.Phase]string{
	waves.Held: "Held", waves.Blocked: "HeldByOthers", waves.Progressing: "Progressing", waves.Rechecking: "Progressing", waves.Failed: "Failed",
}

// releaseStop returns why a release has stopped, with the next step. It is zero if the release has not stopped.
func releaseStop(obj *v1alpha1.Gate, d waves.Decision) gate.Stop {
	names := gate.WaveNames(obj)
	proceed := fmt.Sprintf("kubectl gate proceed %s -n %s", obj.Name, obj.Namespace)
	switch {
	case d.Fault != nil:
		return gate.Stop{Reason: v1alpha1.InvalidWavesReason, Message: faultMessage(names, d.Fault) + msgUntilFixed + proceed}
	case len(d.Stops) > 0:
		first, more := d.Stops[0], ""
		if n := len(d.Stops) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		return gate.Stop{Reason: v1alpha1.WaveFailedReason, Message: fmt.Sprintf(msgWaveFailed,
			names[d.Done], first.Key, more, strings.TrimSuffix(first.Message, "."), proceed)}
	}
	return gate.Stop{}
}

// faultMessage returns a message about a fault of the waves, with the next step.
func faultMessage(names []string, f *waves.Fault) string {
	switch f.Kind {
	case waves.Overlap:
		return fmt.Sprintf(msgWavesOverlap, names[f.Waves[0]], names[f.Waves[1]], f.Targets[0])
	case waves.Empty:
		return fmt.Sprintf(msgWaveEmpty, names[f.Waves[0]])
	default:
		var all []string
		for _, key := range append(slices.Clone(f.Targets[:min(len(f.Targets), maxWaiting)]), f.Targets[0]) {
			all = append(all, key.String())
		}
		return fmt.Sprintf(msgCycle, strings.Join(all, ", "))
	}
}
