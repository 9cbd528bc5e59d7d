package gate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	kuberecorder "k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/timetable"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// recorder emits events about Gates.
type recorder struct {
	kuberecorder.EventRecorder
	targets view.TargetReader
}

// announce emits an event and a log line about the new state of a Gate, with the requester, time and reason if a request caused it.
func (n recorder) announce(ctx context.Context, obj *v1alpha1.Gate, decision gate.Decision, now time.Time) {
	details := []any{"state", decision.State, "reason", decision.Reason, "decidedBy", decision.By}
	if next := decision.Next; next != nil {
		details = append(details, "until", next.At.UTC().Format(time.RFC3339))
	}
	if request := decision.Request; request != nil {
		details = append(details, "requestedAt", request.At.UTC().Format(time.RFC3339), "requestedBy", request.By, "requestMessage", request.Reason)
	}
	events.ForDecision(client.ObjectKeyFromObject(obj).String(), decision, now).Emit(n, obj, events.New(events.Normal, decision.Reason, decision.Message))
	ctrl.LoggerFrom(ctx).Info(decision.Message, details...)
}

// overlays emits an event about each overlay whose state has begun or ended.
func (n recorder) overlays(ctx context.Context, before, after *v1alpha1.Gate, now time.Time) {
	emit := func(o *v1alpha1.Overlay, reason, message string) {
		details := events.Details{
			events.GateKey: client.ObjectKeyFromObject(after).String(), events.StateKey: string(o.State), events.ReasonKey: reason,
			events.ExceptionKey: o.Exception, events.RequesterKey: o.RequestedBy, eventv1.MetaTokenKey: events.Token(now),
		}
		details.Emit(n, after, events.New(events.Normal, reason, message))
		ctrl.LoggerFrom(ctx).Info(message, "state", o.State, "reason", reason, "exception", o.Exception, "requestedBy", o.RequestedBy)
	}
	started, ended := gate.OverlayChanges(before, after)
	for _, o := range ended {
		emit(o, v1alpha1.OverlayEndedReason, fmt.Sprintf(msgOverlayEnded, gate.OverlayTargets(o), o.State, gate.OverlayCause(o)))
	}
	for _, o := range started {
		message := fmt.Sprintf(msgOverlayStarted, gate.OverlayTargets(o), o.State, gate.OverlayCause(o))
		if o.Until != nil {
			message += " until " + o.Until.UTC().Format(time.RFC3339)
		}
		emit(o, v1alpha1.OverlayStartedReason, message)
	}
}

// summary emits one event on a Gate with many targets once all of them have reached the new state, because not every target gets an
// event.
func (n recorder) summary(obj *v1alpha1.Gate, s summary.Sums, now time.Time) {
	last := obj.Status.LastTransition
	if s.Total <= events.MaxTargetEvents || last == nil {
		return
	}
	event := events.New(events.Normal, v1alpha1.GateOpenedReason, fmt.Sprintf(msgReleased, s.Total-s.Held))
	switch {
	case obj.Audits() && last.State == v1alpha1.StateOpened:
		return // the Gate held nothing
	case obj.Audits():
		event.Reason, event.Message = v1alpha1.WouldHoldReason, fmt.Sprintf(msgWouldHold, s.WouldHold, s.Total)
	case last.State == v1alpha1.StateClosed:
		event.Reason, event.Message = v1alpha1.GateClosedReason, fmt.Sprintf(msgHeld, s.Held, s.Total)
	}
	events.ForGate(client.ObjectKeyFromObject(obj).String(), obj, now).Emit(n, obj, event)
}

// ambiguities emits a warning about schedules of a Gate that are easily misread.
func (n recorder) ambiguities(obj *v1alpha1.Gate, now time.Time) {
	if message := timetable.SumUp(timetable.Ambiguities(obj)); message != "" {
		events.ForGate(client.ObjectKeyFromObject(obj).String(), obj, now).Emit(n, obj, events.New(events.Warning, v1alpha1.AmbiguousScheduleReason, message))
	}
}

// requests emits an event about each handled request, on the Gate and on targets that it holds.
func (n recorder) requests(ctx context.Context, obj *v1alpha1.Gate, handled []ledger.Request) {
	if len(handled) == 0 {
		return
	}
	name := client.ObjectKeyFromObject(obj).String()
	held := n.heldTargets(ctx, name)
	for _, request := range handled {
		kind, reason := events.Normal, request.EventReason()
		onGate, onTarget := "Gate "+request.String(), fmt.Sprintf(msgRequestOnTarget, name, request)
		switch {
		case request.Err != nil:
			kind = events.Warning
			onGate = fmt.Sprintf(msgRequestRefused, request.Annotation, events.MaxQuoted, request.Value, request.Err)
			onTarget = fmt.Sprintf(msgRefusedOnTarget, name, onGate)
		case request.Emergency:
			kind, reason = events.Warning, v1alpha1.EmergencyOpenedReason
		}
		details := events.Details{
			events.GateKey: name, events.ActionKey: string(request.Action), events.ReasonKey: reason, events.RequesterKey: request.By, events.MessageKey: request.Reason,
			eventv1.MetaTokenKey: requestToken(obj, request),
		}
		details.Emit(n, obj, events.New(kind, reason, onGate))
		ctrl.LoggerFrom(ctx).Info(onGate, "action", request.Action, "reason", reason, "requestedAt", request.Value, "requestedBy", request.By, "requestMessage", request.Reason)
		for _, t := range held {
			details.Emit(n, t, events.New(kind, reason, onTarget))
		}
	}
}

// requestToken returns a token that identifies a request. The same annotation value is the same request, even if it is handled several
// times.
func requestToken(obj *v1alpha1.Gate, request ledger.Request) string {
	sum := sha256.Sum256([]byte(string(obj.UID) + "/" + request.Annotation + "/" + request.Value + request.ApprovedBy))
	return hex.EncodeToString(sum[:8])
}

// heldTargets returns the targets that a Gate holds, sorted, at most events.MaxTargetEvents.
func (n recorder) heldTargets(ctx context.Context, gate string) []*target.Object {
	held, err := n.targets.HeldBy(ctx, gate)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot report the request on targets") // events are best effort
		return nil
	}
	held = slices.DeleteFunc(held, func(t *target.Object) bool {
		state := target.Of(&t.Unstructured).Observe(t, verdict.Us)
		return state == target.Free || state == target.SuspendedByOthers
	})
	slices.SortFunc(held, func(a, b *target.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetKind(), b.GetKind()), strings.Compare(a.GetName(), b.GetName()))
	})
	return held[:min(len(held), events.MaxTargetEvents)]
}
