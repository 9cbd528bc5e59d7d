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

// recorder tells in events what becomes of Gates.
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

// summary tells on a Gate with many targets that all of them are as its new state wants them: not each of them is told.
func (n recorder) summary(obj *v1alpha1.Gate, s summary.Sums, now time.Time) {
	last := obj.Status.LastTransition
	if s.Total <= events.MaxTargetEvents || last == nil {
		return
	}
	said := events.New(events.Normal, v1alpha1.GateOpenedReason, fmt.Sprintf("%d targets released", s.Total-s.Held))
	switch {
	case obj.Audits() && last.State == v1alpha1.StateOpened:
		return // it has held nothing
	case obj.Audits():
		said.Reason, said.Message = v1alpha1.WouldHoldReason, fmt.Sprintf("%d of %d targets would be held. The gate has mode Audit and holds nothing.", s.WouldHold, s.Total)
	case last.State == v1alpha1.StateClosed:
		said.Reason, said.Message = v1alpha1.GateClosedReason, fmt.Sprintf("%d of %d targets held", s.Held, s.Total)
	}
	events.ForGate(client.ObjectKeyFromObject(obj).String(), obj, now).Emit(n, obj, said)
}

// ambiguities tells that schedules of a Gate may mean something else than its author thinks.
func (n recorder) ambiguities(obj *v1alpha1.Gate, now time.Time) {
	if message := timetable.SumUp(timetable.Ambiguities(obj)); message != "" {
		events.ForGate(client.ObjectKeyFromObject(obj).String(), obj, now).Emit(n, obj, events.New(events.Warning, v1alpha1.AmbiguousScheduleReason, message))
	}
}

// requests tells what became of requests, on the Gate and on what it holds.
func (n recorder) requests(ctx context.Context, obj *v1alpha1.Gate, handled []ledger.Request) {
	if len(handled) == 0 {
		return
	}
	name := client.ObjectKeyFromObject(obj).String()
	held := n.heldTargets(ctx, name)
	for _, request := range handled {
		kind, reason := events.Normal, request.EventReason()
		onGate, onTarget := fmt.Sprintf("Gate %s", request), fmt.Sprintf("Request for gate '%s': %s", name, request)
		switch {
		case request.Err != nil:
			kind = events.Warning
			onGate = fmt.Sprintf("annotation %s: %.*q %s", request.Annotation, events.MaxQuoted, request.Value, request.Err)
			onTarget = fmt.Sprintf("Request for gate '%s' refused, %s", name, onGate)
		case request.Emergency:
			kind, reason = events.Warning, v1alpha1.EmergencyOpenedReason
		}
		said := events.Details{
			events.GateKey: name, events.ActionKey: string(request.Action), events.ReasonKey: reason, events.RequesterKey: request.By, events.MessageKey: request.Reason,
			eventv1.MetaTokenKey: RequestToken(obj, request),
		}
		said.Emit(n, obj, events.New(kind, reason, onGate))
		ctrl.LoggerFrom(ctx).Info(onGate, "action", request.Action, "reason", reason, "requestedAt", request.Value, "requestedBy", request.By, "requestMessage", request.Reason)
		for _, t := range held {
			said.Emit(n, t, events.New(kind, reason, onTarget))
		}
	}
}

// RequestToken identifies a request: the same value of an annotation is the same
// request, however often it is looked at.
func RequestToken(obj *v1alpha1.Gate, request ledger.Request) string {
	sum := sha256.Sum256([]byte(string(obj.UID) + "/" + request.Annotation + "/" + request.Value + request.ApprovedBy))
	return hex.EncodeToString(sum[:8])
}

// heldTargets returns the targets that a Gate holds, in order, at most
// maxTold of them.
func (n recorder) heldTargets(ctx context.Context, gate string) []*target.Object {
	held, err := n.targets.HeldBy(ctx, gate)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot report the request on targets") // events are best effort
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
