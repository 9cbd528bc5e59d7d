package controllers

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
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/timetable"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// gateTeller tells in events what becomes of Gates.
type gateTeller struct {
	kuberecorder.EventRecorder
	targets TargetReader
}

// announce emits an event and a log line about the new state of a Gate, with the requester, time and reason if a request caused it.
func (n gateTeller) announce(ctx context.Context, obj *v1alpha1.Gate, decision gate.Decision, now time.Time) {
	details := []any{"state", decision.State, "reason", decision.Reason, "decidedBy", decision.By}
	if next := decision.Next; next != nil {
		details = append(details, "until", next.At.UTC().Format(time.RFC3339))
	}
	if request := decision.Request; request != nil {
		details = append(details, "requestedAt", request.At.UTC().Format(time.RFC3339), "requestedBy", request.By, "requestMessage", request.Reason)
	}
	newsOf(client.ObjectKeyFromObject(obj).String(), decision, now).tell(n, obj, notice{eventNormal, decision.Reason, decision.Message})
	ctrl.LoggerFrom(ctx).Info(decision.Message, details...)
}

// summary tells on a Gate with many targets that all of them are as its new state wants them: not each of them is told.
func (n gateTeller) summary(obj *v1alpha1.Gate, s summary.Sums, now time.Time) {
	last := obj.Status.LastTransition
	if s.Total <= maxTold || last == nil {
		return
	}
	said := notice{eventNormal, v1alpha1.GateOpenedReason, fmt.Sprintf("%d targets released", s.Total-s.Held)}
	switch {
	case obj.Audits() && last.State == v1alpha1.StateOpened:
		return // it has held nothing
	case obj.Audits():
		said.reason, said.message = v1alpha1.WouldHoldReason, fmt.Sprintf("%d of %d targets would be held. The gate has mode Audit and holds nothing.", s.WouldHold, s.Total)
	case last.State == v1alpha1.StateClosed:
		said.reason, said.message = v1alpha1.GateClosedReason, fmt.Sprintf("%d of %d targets held", s.Held, s.Total)
	}
	newsOfGate(client.ObjectKeyFromObject(obj).String(), obj, now).tell(n, obj, said)
}

// ambiguities tells that schedules of a Gate may mean something else than its author thinks.
func (n gateTeller) ambiguities(obj *v1alpha1.Gate, now time.Time) {
	if message := timetable.SumUp(timetable.Ambiguities(obj)); message != "" {
		newsOfGate(client.ObjectKeyFromObject(obj).String(), obj, now).tell(n, obj, notice{eventWarning, v1alpha1.AmbiguousScheduleReason, message})
	}
}

// requests tells what became of requests, on the Gate and on what it holds.
func (n gateTeller) requests(ctx context.Context, obj *v1alpha1.Gate, handled []ledger.Request) {
	if len(handled) == 0 {
		return
	}
	name := client.ObjectKeyFromObject(obj).String()
	held := n.toldOfRequests(ctx, name)
	for _, request := range handled {
		kind, reason := eventNormal, request.EventReason()
		onGate, onTarget := fmt.Sprintf("Gate %s", request), fmt.Sprintf("Request for gate '%s': %s", name, request)
		switch {
		case request.Err != nil:
			kind = eventWarning
			onGate = fmt.Sprintf("annotation %s: %.*q %s", request.Annotation, maxQuoted, request.Value, request.Err)
			onTarget = fmt.Sprintf("Request for gate '%s' refused, %s", name, onGate)
		case request.Emergency:
			kind, reason = eventWarning, v1alpha1.EmergencyOpenedReason
		}
		said := news{
			gateNews: name, actionNews: string(request.Action), reasonNews: reason, requesterNews: request.By, messageNews: request.Reason,
			eventv1.MetaTokenKey: requestToken(obj, request),
		}
		said.tell(n, obj, notice{kind, reason, onGate})
		ctrl.LoggerFrom(ctx).Info(onGate, "action", request.Action, "reason", reason, "requestedAt", request.Value, "requestedBy", request.By, "requestMessage", request.Reason)
		for _, t := range held {
			said.tell(n, t, notice{kind, reason, onTarget})
		}
	}
}

// requestToken identifies a request: the same value of an annotation is the same
// request, however often it is looked at.
func requestToken(obj *v1alpha1.Gate, request ledger.Request) string {
	sum := sha256.Sum256([]byte(string(obj.UID) + "/" + request.Annotation + "/" + request.Value + request.ApprovedBy))
	return hex.EncodeToString(sum[:8])
}

// toldOfRequests returns the targets that a Gate holds, in order, at most
// maxTold of them.
func (n gateTeller) toldOfRequests(ctx context.Context, gate string) []*target.Object {
	held, err := n.targets.HeldBy(ctx, gate)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot report the request on targets") // events are best effort
		return nil
	}
	held = slices.DeleteFunc(held, func(t *target.Object) bool {
		state := target.Of(&t.Unstructured).Observe(t, verdict.Us)
		return state == target.Free || state == target.Foreign
	})
	slices.SortFunc(held, func(a, b *target.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetKind(), b.GetKind()), strings.Compare(a.GetName(), b.GetName()))
	})
	return held[:min(len(held), maxTold)]
}
