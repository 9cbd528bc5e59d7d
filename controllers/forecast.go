package controllers

import (
	"context"
	"time"

	kuberecorder "k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/tally"
)

// foreteller tells in time that Gates open and close.
type foreteller struct {
	selector   *Selector
	tally      *tally.Tally
	events     kuberecorder.EventRecorder
	background *background
}

// look tells what is to come of a Gate, and when to look again. The status says first what is told: what is told is never told again, even
// if this process ends before it has told it. While not all targets have been looked at, nobody knows what is held.
func (t foreteller) look(ctx context.Context, obj *v1alpha1.Gate, writer *gateWriter, with besides, d *decision) error {
	if len(obj.Spec.NotifyBefore)+len(obj.Status.Announced) == 0 || !t.tally.IsComplete() {
		return nil
	}
	f := with.calendars.Forecast(obj, d.at, with.exceptions...)
	d.edges = append(d.edges, f.Next)
	obj.Status.Announced = f.Announced
	if f.IsSilent() {
		return nil
	}
	if err := writer.status(ctx, obj); err != nil {
		return err
	}
	seen, at, log := obj.DeepCopy(), d.at, ctrl.LoggerFrom(ctx) // the status changes from here on
	t.background.do(ctx, func(ctx context.Context) { t.tell(ctrl.LoggerInto(ctx, log), seen, f, at) })
	return nil
}

// tell tells a forecast of an instant.
func (t foreteller) tell(ctx context.Context, obj *v1alpha1.Gate, f gate.Forecast, at time.Time) {
	p, err := prospectsOf(ctx, t.selector, obj, f, at)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Nobody knows what the gate governs")
	}
	name := client.ObjectKeyFromObject(obj).String()
	if len(f.CalledOff) > 0 {
		said := news{gateNews: name, reasonNews: v1alpha1.AnnouncementCalledOffReason, eventv1.MetaTokenKey: token(at)}
		text := calledOff(f.CalledOff) + conditions.GetMessage(obj, v1alpha1.OpenedCondition)
		t.say(ctx, obj, p.heralds(), said, notice{eventNormal, v1alpha1.AnnouncementCalledOffReason, text})
	}
	for _, n := range f.Notices {
		reason := v1alpha1.GateClosesSoonReason
		if n.State == v1alpha1.StateOpened {
			reason = v1alpha1.GateOpensSoonReason
		}
		said := newsOf(name, gate.Decision{State: n.State, Reason: n.Reason, By: n.By}, at)
		said[atNews] = n.At.UTC().Format(time.RFC3339)
		text := announced(obj, n, at)
		if err == nil {
			text += p.concern(obj, n.State)
		}
		t.say(ctx, obj, p.heralds(), said, notice{eventNormal, reason, text})
	}
}

// say says something on a Gate and on targets: an alert hears of those alone. The message follows the name of the Gate.
func (t foreteller) say(ctx context.Context, obj *v1alpha1.Gate, heralds []client.Object, said news, n notice) {
	said.tell(t.events, obj, notice{n.kind, n.reason, "Gate " + n.message})
	ctrl.LoggerFrom(ctx).Info("Gate "+n.message, "reason", n.reason)
	for _, herald := range heralds {
		said.tell(t.events, herald, notice{n.kind, n.reason, "Gate '" + said[gateNews] + "' " + n.message})
	}
}
