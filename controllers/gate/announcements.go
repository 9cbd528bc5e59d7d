package gate

import (
	"context"
	"time"

	kuberecorder "k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/summary"
)

// announcer announces the state changes of Gates.
type announcer struct {
	selector   *view.Selector
	summary    *summary.Summary
	events     kuberecorder.EventRecorder
	background *Background
}

// settleFor bounds how long an announcement waits for the targets of a Gate that has just changed its state.
const settleFor = time.Minute

// forecast returns the changes to announce, and the time of the next check. It announces nothing while targets are being held or
// released, or before all targets are reconciled, because the number of held targets is still unknown.
func (t announcer) forecast(obj *v1alpha1.Gate, s *gate.Snapshot, now time.Time) gate.Forecast {
	unchanged := gate.Forecast{Announced: obj.Status.Memory.Announced}
	if len(obj.Spec.NotifyBefore)+len(obj.Status.Memory.Announced) == 0 || !t.summary.IsComplete() {
		return unchanged
	}
	if last := obj.Status.LastTransition; last != nil && !t.summary.Sums(summary.KeyFor(obj)).IsSettled() {
		if settled := last.At.Add(settleFor); now.Before(settled) {
			unchanged.Next = settled
			return unchanged
		}
	}
	return s.WithGate(obj).Forecast(now)
}

// start emits the events of a forecast in the background. The status must already contain the forecast, because announcements in the
// status are never repeated, even if this process terminates before it emits the events.
func (t announcer) start(ctx context.Context, obj *v1alpha1.Gate, f gate.Forecast, at time.Time) {
	if f.IsEmpty() {
		return
	}
	seen, log := obj.DeepCopy(), ctrl.LoggerFrom(ctx) // obj may change after this
	t.background.do(ctx, func(ctx context.Context) { t.announce(ctrl.LoggerInto(ctx, log), seen, f, at) })
}

// announce emits the events of a forecast that was made at an instant.
func (t announcer) announce(ctx context.Context, obj *v1alpha1.Gate, f gate.Forecast, at time.Time) {
	p, err := findImpact(ctx, t.selector, obj, f, at)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot list the targets of the gate")
	}
	name := client.ObjectKeyFromObject(obj).String()
	if len(f.Canceled) > 0 {
		details := events.Details{events.GateKey: name, events.ReasonKey: v1alpha1.AnnouncementCalledOffReason, eventv1.MetaTokenKey: events.Token(at)}
		text := cancellationText(f.Canceled) + conditions.GetMessage(obj, v1alpha1.OpenedCondition)
		t.emit(obj, p, details, v1alpha1.AnnouncementCalledOffReason, func(*Impact) string { return text })
	}
	for _, n := range f.Notices {
		reason := v1alpha1.GateClosesSoonReason
		if n.State == v1alpha1.StateOpened {
			reason = v1alpha1.GateOpensSoonReason
		}
		details := events.ForDecision(name, gate.Decision{State: n.State, Reason: n.Reason, By: n.DecidedBy()}, at)
		details[events.AtKey] = n.At.UTC().Format(time.RFC3339)
		t.emit(obj, p, details, reason, func(p *Impact) string {
			if err != nil {
				return announcementText(obj, n, at)
			}
			return announcementText(obj, n, at) + p.Describe(obj, n.State)
		})
	}
}

// emit emits an event on a Gate and on some of its targets, because alerts select events by their object. An event on a target in another
// namespace names only targets in that namespace. text returns the text after the name of the Gate.
func (t announcer) emit(obj *v1alpha1.Gate, p Impact, details events.Details, reason string, text func(*Impact) string) {
	details.Emit(t.events, obj, events.New(events.Normal, reason, "Gate "+text(&p)))
	for _, governed := range p.eventTargets() {
		about := p
		if namespace := governed.GetNamespace(); namespace != obj.Namespace {
			about = p.inNamespace(namespace)
		}
		details.Emit(t.events, governed, events.New(events.Normal, reason, "Gate '"+details[events.GateKey]+"' "+text(&about)))
	}
}
