package controllers

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberecorder "k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// waveNews is what is told of a release by waves.
type waveNews struct {
	notice
	// by is who has it go on, and why.
	by, why string
}

// tellAll tells what is new of the release of a Gate.
func tellAll(recorder kuberecorder.EventRecorder, obj *v1alpha1.Gate, all []waveNews, now time.Time) {
	for i, one := range all {
		said := newsOfGate(client.ObjectKeyFromObject(obj).String(), obj, now)
		said[eventv1.MetaTokenKey] = fmt.Sprintf("%s/%d", token(now), i)
		if one.by != "" || one.why != "" {
			said[byNews], said[whyNews] = one.by, one.why
		}
		said.tell(recorder, obj, one.notice)
	}
}

// tellWaves returns what is new since a release was as far as a progress. The status of the Gate is as before.
func tellWaves(obj *v1alpha1.Gate, before waves.Progress, d waves.Decision, asks *proceed) (told []waveNews) {
	names := wavesOf(obj)
	say := func(kind, reason, format string, args ...any) {
		told = append(told, waveNews{notice: notice{kind, reason, fmt.Sprintf(format, args...)}})
	}
	if asks != nil {
		told = append(told, asks.told(names, before, d))
	}
	for wave := before.Done; wave < d.Done; wave++ {
		switch next := wave + 1; {
		case wave < d.Excused || d.Sizes[wave] == 0:
		case next < len(names) && d.Sizes[next] > 0:
			say(eventNormal, v1alpha1.WaveReleasedReason, "Wave %s is released, %d targets are ready. Next is wave %s with %d targets.", names[wave], d.Sizes[wave], names[next], d.Sizes[next])
		default:
			say(eventNormal, v1alpha1.WaveReleasedReason, "Wave %s is released, %d targets are ready.", names[wave], d.Sizes[wave])
		}
	}
	return told
}

// tellStop returns what is new of what stops the release of a Gate, which was as it is in before.
func tellStop(before, obj *v1alpha1.Gate) (told []waveNews) {
	was, is := conditions.Get(before, v1alpha1.ReleaseStoppedCondition), conditions.Get(obj, v1alpha1.ReleaseStoppedCondition)
	switch {
	case is != nil && (was == nil || was.Reason != is.Reason || firstWaiting(before) != firstWaiting(obj)):
		return []waveNews{{notice: notice{eventWarning, v1alpha1.ReleaseStoppedCondition, upperFirst(is.Message)}}}
	case is == nil && was != nil && conditions.IsTrue(obj, v1alpha1.OpenedCondition):
		return []waveNews{{notice: notice{eventNormal, v1alpha1.ReleaseResumedReason, "Nothing stops the release any more, it goes on."}}}
	}
	return nil
}

// firstWaiting returns the first target for which the release of a Gate waits.
func firstWaiting(g *v1alpha1.Gate) string {
	if g.Status.Release == nil || g.Status.Release.Waves == nil || len(g.Status.Release.Waves.WaitingFor) == 0 {
		return ""
	}
	w := g.Status.Release.Waves.WaitingFor[0]
	return w.Kind + "/" + w.Namespace + "/" + w.Name
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// proceed is what somebody asks with the annotation v1alpha1.ProceedAnnotation.
type proceed struct {
	value, by, reason string
	// err says why it does not count.
	err string
}

// ahead is how far the clock of who has a release go on may be ahead.
const ahead = time.Minute

// newProceed takes note of the annotation v1alpha1.ProceedAnnotation in the status of an open Gate. It returns nil if it is missing or
// was looked at before. What Flux puts back from Git is older than what came since, or than the opening of the Gate.
func newProceed(obj *v1alpha1.Gate, status *v1alpha1.ReleaseStatus, now time.Time) *proceed {
	annotations := obj.GetAnnotations()
	value := cutTo(annotations[v1alpha1.ProceedAnnotation], maxProceed)
	if value == "" || value == status.LastHandledProceed {
		return nil
	}
	status.LastHandledProceed = value
	p := &proceed{value: value, by: cutTo(annotations[v1alpha1.ProceedByAnnotation], maxBy), reason: cutTo(annotations[v1alpha1.ProceedReasonAnnotation], maxWhy)}
	stamp, wave, named := strings.Cut(value, ",wave=")
	at, err := time.Parse(time.RFC3339, stamp)
	before := timeOf(status.Waves.ProceededAt)
	switch {
	case err != nil:
		p.err = "it is not a time in RFC 3339, or such a time and ,wave= with the name of a wave"
	case at.After(now.Add(ahead)):
		p.err = "it is in the future"
	case at.Before(obj.Status.LastTransition.At.Truncate(time.Second)):
		p.err = "it is from before the gate opened"
	case !at.After(before):
		p.err = "it is not later than the one that counted last, " + before.UTC().Format(time.RFC3339Nano)
	case named && wave != status.Waves.Current:
		p.err = "the current wave is another one by now: " + cmp.Or(status.Waves.Current, "all are released")
	default:
		status.Waves.ProceededAt = ptr.To(metav1.NewMicroTime(at))
	}
	return p
}

// Bounds in bytes of what is copied from annotations.
const maxProceed, maxBy, maxWhy = 128, 340, 512

// cutTo returns the beginning of a text, at most so many bytes.
func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}

// refused says why a proceed has done nothing.
func (p *proceed) refused(why string) waveNews {
	return waveNews{notice{eventWarning, v1alpha1.ProceedRefusedReason, fmt.Sprintf("annotation %s: %q changes nothing: %s",
		v1alpha1.ProceedAnnotation, p.value, cmp.Or(p.err, why))}, p.by, p.reason}
}

// told says what a proceed has done.
func (p *proceed) told(names []string, before waves.Progress, d waves.Decision) waveNews {
	if p.err != "" || before.Done == len(names) {
		return p.refused("no release is on")
	}
	text := "The release goes on with its waves as they are"
	if d.Excused > before.Excused {
		text = fmt.Sprintf("The release goes on without waiting for wave %s", names[d.Excused-1])
	}
	if p.by != "" {
		text += ", by " + p.by
	}
	if p.reason != "" {
		text += ": " + p.reason
	}
	return waveNews{notice{eventNormal, v1alpha1.ReleaseProceedsReason, text}, p.by, p.reason}
}
