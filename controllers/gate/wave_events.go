package gate

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// waves emits the events about the release of a Gate. The only target that gets an event is the one that has stopped the release, for
// alerts that select targets.
func (n recorder) waves(ctx context.Context, obj *v1alpha1.Gate, all []waveEvent, now time.Time) {
	name := client.ObjectKeyFromObject(obj).String()
	for i, one := range all {
		details := events.ForGate(name, obj, now)
		details[eventv1.MetaTokenKey] = fmt.Sprintf("%s/%d", events.Token(now), i)
		if one.requestedBy != "" || one.requestMessage != "" {
			details[events.RequesterKey], details[events.MessageKey] = one.requestedBy, one.requestMessage
		}
		details.Emit(n, obj, one.Event)
		if one.target == nil {
			continue
		}
		adapter, err := target.For("", one.target.Kind)
		if err != nil {
			continue
		}
		key := target.Key{GroupKind: adapter.GroupKind(), NamespacedName: types.NamespacedName{Namespace: one.target.Namespace, Name: one.target.Name}}
		if t, err := n.targets.Get(ctx, key); err == nil && t != nil {
			details.Emit(n, t, events.New(one.Type, one.Reason, fmt.Sprintf(msgStopsRelease, name, one.target.Message)))
		}
	}
}

// waveEvent is an event about a release in waves.
type waveEvent struct {
	events.Event
	// requestedBy is the user who continues the release, and requestMessage is the reason.
	requestedBy, requestMessage string
	// target is the target that also gets the event, nil if there is none.
	target *v1alpha1.WaitingTarget
}

// releaseEvents returns the events about the release of a Gate, from its status before and after a pass.
func releaseEvents(before, after *v1alpha1.Gate, d *waveDecision) []waveEvent {
	var all []waveEvent
	if d != nil {
		all = progressEvents(gate.WaveNames(after), d)
	}
	return append(all, stopEvents(before, after, len(all) > 0)...)
}

// progressEvents returns the events about a decision on waves. names are the names of the waves.
func progressEvents(names []string, d *waveDecision) (all []waveEvent) {
	add := func(kind, reason, format string, args ...any) {
		all = append(all, waveEvent{Event: events.New(kind, reason, fmt.Sprintf(format, args...))})
	}
	if d.proceed != nil {
		all = append(all, d.proceed.event(names, d.before, d.Decision))
	}
	for wave := d.before.Done; wave < d.Done; wave++ {
		switch next := wave + 1; {
		case wave < d.Excused || d.Sizes[wave] == 0:
		case next < len(names) && d.Sizes[next] > 0:
			add(events.Normal, v1alpha1.WaveReleasedReason, msgWaveReleasedNext, names[wave], d.Sizes[wave], names[next], d.Sizes[next])
		default:
			add(events.Normal, v1alpha1.WaveReleasedReason, msgWaveReleased, names[wave], d.Sizes[wave])
		}
	}
	return all
}

// refusal returns the event about a refused request to proceed.
func (p *proceed) refusal(why string) waveEvent {
	return waveEvent{events.New(events.Warning, v1alpha1.ProceedRefusedReason, fmt.Sprintf(msgProceedRefused,
		v1alpha1.ProceedRequestedAtAnnotation, p.Value, cmp.Or(p.err, why))), p.RequestedBy, p.Message, nil}
}

// event returns the event about a request to proceed.
func (p *proceed) event(names []string, before waves.Progress, d waves.Decision) waveEvent {
	if p.err != "" || before.Done == len(names) {
		return p.refusal(msgNoRelease)
	}
	text := msgContinues
	if d.Excused > before.Excused {
		text = fmt.Sprintf(msgContinuesPast, names[d.Excused-1])
	}
	if p.RequestedBy != "" {
		text += ", by " + p.RequestedBy
	}
	if p.Message != "" {
		text += ": " + p.Message
	}
	return waveEvent{events.New(events.Normal, v1alpha1.ReleaseContinuedReason, text), p.RequestedBy, p.Message, nil}
}

// stopEvents returns the event that the release of a Gate stops or continues, or none if neither has happened. continued is true if
// another event already reports that the release continues.
func stopEvents(before, obj *v1alpha1.Gate, continued bool) (all []waveEvent) {
	was, is := conditions.Get(before, v1alpha1.ReleaseStoppedCondition), conditions.Get(obj, v1alpha1.ReleaseStoppedCondition)
	switch {
	case is != nil && (was == nil || was.Reason != is.Reason || stopCause(before, was) != stopCause(obj, is)):
		stopped := waveEvent{Event: events.New(events.Warning, v1alpha1.ReleaseStoppedCondition, upperFirst(is.Message))}
		if is.Reason == v1alpha1.WaveFailedReason {
			stopped.target = &obj.Status.Release.Waves.WaitingFor[0]
		}
		return []waveEvent{stopped}
	case is == nil && was != nil && !continued && conditions.IsTrue(obj, v1alpha1.OpenedCondition):
		return []waveEvent{{Event: events.New(events.Normal, v1alpha1.ReleaseContinuedReason, msgContinuesAgain)}}
	}
	return nil
}

// stopCause identifies why the release of a Gate has stopped. It is the first failed target, or the fault of the waves.
func stopCause(g *v1alpha1.Gate, stop *metav1.Condition) string {
	if stop.Reason != v1alpha1.WaveFailedReason || g.Status.Release == nil || g.Status.Release.Waves == nil || len(g.Status.Release.Waves.WaitingFor) == 0 {
		return stop.Message
	}
	w := g.Status.Release.Waves.WaitingFor[0]
	return w.Kind + "/" + w.Namespace + "/" + w.Name
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
