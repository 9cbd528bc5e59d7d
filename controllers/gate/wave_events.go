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

// waves tells what is new of the release of a Gate. An Alert of Flux hears of targets alone: the one that has stopped the release is told.
func (n recorder) waves(ctx context.Context, obj *v1alpha1.Gate, all []waveEvent, now time.Time) {
	name := client.ObjectKeyFromObject(obj).String()
	for i, one := range all {
		said := events.ForGate(name, obj, now)
		said[eventv1.MetaTokenKey] = fmt.Sprintf("%s/%d", events.Token(now), i)
		if one.requestedBy != "" || one.requestMessage != "" {
			said[events.RequesterKey], said[events.MessageKey] = one.requestedBy, one.requestMessage
		}
		said.Emit(n, obj, one.Event)
		if one.target == nil {
			continue
		}
		adapter, err := target.For("", one.target.Kind)
		if err != nil {
			continue
		}
		key := target.Key{GroupKind: adapter.GroupKind(), NamespacedName: types.NamespacedName{Namespace: one.target.Namespace, Name: one.target.Name}}
		if t, err := n.targets.Get(ctx, key); err == nil && t != nil {
			said.Emit(n, t, events.New(one.Type, one.Reason, fmt.Sprintf("Stops the release of gate '%s': %s", name, one.target.Message)))
		}
	}
}

// waveEvent is an event about a release in waves.
type waveEvent struct {
	events.Event
	// requestedBy is the user who continues the release, why the reason.
	requestedBy, requestMessage string
	// target is the target that gets an event, too, nil if there is none.
	target *v1alpha1.WaitingTarget
}

// releaseEvents returns the events about the release of a Gate, from its status before and after a pass.
func releaseEvents(before, after *v1alpha1.Gate, d *waveDecision) []waveEvent {
	var told []waveEvent
	if d != nil {
		told = progressEvents(gate.WaveNames(after), d)
	}
	return append(told, stopEvents(before, after, len(told) > 0)...)
}

// progressEvents returns the events about a decision on waves with some names.
func progressEvents(names []string, d *waveDecision) (told []waveEvent) {
	say := func(kind, reason, format string, args ...any) {
		told = append(told, waveEvent{Event: events.New(kind, reason, fmt.Sprintf(format, args...))})
	}
	if d.proceed != nil {
		told = append(told, d.proceed.event(names, d.before, d.Decision))
	}
	for wave := d.before.Done; wave < d.Done; wave++ {
		switch next := wave + 1; {
		case wave < d.Excused || d.Sizes[wave] == 0:
		case next < len(names) && d.Sizes[next] > 0:
			say(events.Normal, v1alpha1.WaveReleasedReason, "Wave %s is released, %d targets are ready. Next is wave %s with %d targets.", names[wave], d.Sizes[wave], names[next], d.Sizes[next])
		default:
			say(events.Normal, v1alpha1.WaveReleasedReason, "Wave %s is released, %d targets are ready.", names[wave], d.Sizes[wave])
		}
	}
	return told
}

// refusal says why a proceed has done nothing.
func (p *proceed) refusal(why string) waveEvent {
	return waveEvent{events.New(events.Warning, v1alpha1.ProceedRefusedReason, fmt.Sprintf("annotation %s: %q changes nothing: %s",
		v1alpha1.ProceedRequestedAtAnnotation, p.Value, cmp.Or(p.err, why))), p.RequestedBy, p.Message, nil}
}

// event says what a proceed has done.
func (p *proceed) event(names []string, before waves.Progress, d waves.Decision) waveEvent {
	if p.err != "" || before.Done == len(names) {
		return p.refusal("no release is on")
	}
	text := "The release continues with its waves as they are"
	if d.Excused > before.Excused {
		text = fmt.Sprintf("The release continues without waiting for wave %s", names[d.Excused-1])
	}
	if p.RequestedBy != "" {
		text += ", by " + p.RequestedBy
	}
	if p.Message != "" {
		text += ": " + p.Message
	}
	return waveEvent{events.New(events.Normal, v1alpha1.ReleaseContinuedReason, text), p.RequestedBy, p.Message, nil}
}

// stopEvents returns what is new of what stops the release of a Gate, which was as it is in before. That it goes on may be told already.
func stopEvents(before, obj *v1alpha1.Gate, goesOn bool) (told []waveEvent) {
	was, is := conditions.Get(before, v1alpha1.ReleaseStoppedCondition), conditions.Get(obj, v1alpha1.ReleaseStoppedCondition)
	switch {
	case is != nil && (was == nil || was.Reason != is.Reason || stopCause(before, was) != stopCause(obj, is)):
		stopped := waveEvent{Event: events.New(events.Warning, v1alpha1.ReleaseStoppedCondition, upperFirst(is.Message))}
		if is.Reason == v1alpha1.WaveFailedReason {
			stopped.target = &obj.Status.Release.Waves.WaitingFor[0]
		}
		return []waveEvent{stopped}
	case is == nil && was != nil && !goesOn && conditions.IsTrue(obj, v1alpha1.OpenedCondition):
		return []waveEvent{{Event: events.New(events.Normal, v1alpha1.ReleaseContinuedReason, "Nothing stops the release any more, it continues.")}}
	}
	return nil
}

// stopCause returns what has stopped the release of a Gate: the first target that has failed, or what is wrong with the waves.
func stopCause(g *v1alpha1.Gate, stop *metav1.Condition) string {
	if stop.Reason != v1alpha1.WaveFailedReason || g.Status.Release == nil || g.Status.Release.Waves == nil || len(g.Status.Release.Waves.WaitingFor) == 0 {
		return stop.Message
	}
	w := g.Status.Release.Waves.WaitingFor[0]
	return w.Kind + "/" + w.Namespace + "/" + w.Name
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
