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

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	// maxToldOfRequest bounds the targets that a request is told on. A Gate may hold
	// ten thousand, and whoever is alerted needs one.
	maxToldOfRequest = 100

	// maxQuoted is how many characters of a refused value are quoted in an event: any
	// time fits, and an annotation may be of 256 KiB.
	maxQuoted = 64
)

// news is what an event says besides its message, by key.
type news map[string]string

// The keys of news. Those that notification-controller knows are in eventv1.
const (
	gateNews      = "gate"
	stateNews     = "state"
	reasonNews    = "reason"
	byNews        = "by"
	whyNews       = "why"
	periodNews    = "period"
	exceptionNews = "exception"
	actionNews    = "action"
)

// metadata returns the news as metadata of an event on an object. All of it has our
// prefix, and on a target that of its API group as well: notification-controller
// shows no other, and tells events apart by the revision and the token with it alone.
func (n news) metadata(obj client.Object) map[string]string {
	groups, revision := []string{v1alpha1.GroupVersion.Group}, ""
	if t, ok := obj.(*target.Object); ok {
		groups = append(groups, t.GroupVersionKind().Group)
		revision = target.Revision(t)
	}
	metadata := map[string]string{}
	for _, group := range groups {
		for key, value := range n {
			if value != "" {
				metadata[group+"/"+key] = value
			}
		}
		if revision != "" {
			metadata[group+"/"+eventv1.MetaRevisionKey] = revision
		}
	}
	return metadata
}

// tell records an event with its metadata.
func (n news) tell(recorder kuberecorder.EventRecorder, obj client.Object, kind, reason, format string, args ...any) {
	recorder.AnnotatedEventf(obj, n.metadata(obj), kind, reason, format, args...)
}

// token returns a value that no event of another instant has, so that an event which
// reads like one some minutes ago is not taken for that one.
func token(now time.Time) string { return now.UTC().Format(time.RFC3339Nano) }

// newsOf says what a Gate is since an instant, and who or what decided that.
func newsOf(name string, d gate.Decision, now time.Time) news {
	said := news{gateNews: name, stateNews: string(d.State), reasonNews: d.Reason, eventv1.MetaTokenKey: token(now)}
	if d.Request != nil {
		said[byNews], said[whyNews] = d.Request.By, d.Request.Reason
	}
	by := periodNews
	if d.Reason == v1alpha1.ExceptionAppliesReason {
		by = exceptionNews
	}
	said[by] = d.By
	return said
}

// newsOfException says which exception and Gate an event is about, and who approved the
// exception if somebody did.
func newsOfException(obj *v1alpha1.GateException, by string, now time.Time) news {
	return news{gateNews: gateOf(obj).String(), exceptionNews: obj.Name, byNews: by, eventv1.MetaTokenKey: token(now)}
}

// announce says in an event and in the log that the Gate has another state, and
// who requested it, when and why if a request did it.
func (r *GateReconciler) announce(ctx context.Context, obj *v1alpha1.Gate, decision gate.Decision, now time.Time) {
	details := []any{"state", decision.State, "reason", decision.Reason}
	if request := decision.Request; request != nil {
		details = append(details, "requestedAt", request.At.UTC().Format(time.RFC3339), "by", request.By, "requestReason", request.Reason)
	}
	newsOf(client.ObjectKeyFromObject(obj).String(), decision, now).tell(r, obj, eventNormal, decision.Reason, "%s", decision.Message)
	ctrl.LoggerFrom(ctx).Info(decision.Message, details...)
}

// recordRequests tells what became of requests, on the Gate and on what it holds.
func (r *GateReconciler) recordRequests(ctx context.Context, obj *v1alpha1.Gate, handled []gate.Request) {
	if len(handled) == 0 {
		return
	}
	name := client.ObjectKeyFromObject(obj).String()
	held := r.toldOfRequests(ctx, name)
	for _, request := range handled {
		kind, reason := eventNormal, v1alpha1.RequestAcceptedReason
		onGate, onTarget := fmt.Sprintf("Gate %s", request), fmt.Sprintf("Request for gate '%s': %s", name, request)
		if request.Err != nil {
			kind, reason = eventWarning, v1alpha1.RequestRefusedReason
			onGate = fmt.Sprintf("annotation %s: %.*q %s", request.Annotation, maxQuoted, request.Value, request.Err)
			onTarget = fmt.Sprintf("Request for gate '%s' refused, %s", name, onGate)
		}
		said := news{
			gateNews: name, actionNews: string(request.Action), reasonNews: reason, byNews: request.By, whyNews: request.Reason,
			eventv1.MetaTokenKey: requestToken(obj, request),
		}
		said.tell(r, obj, kind, reason, "%s", onGate)
		for _, t := range held {
			said.tell(r, t, kind, reason, "%s", onTarget)
		}
	}
}

// requestToken identifies a request: the same value of an annotation is the same
// request, however often it is looked at.
func requestToken(obj *v1alpha1.Gate, request gate.Request) string {
	sum := sha256.Sum256([]byte(string(obj.UID) + "/" + request.Annotation + "/" + request.Value))
	return hex.EncodeToString(sum[:8])
}

// toldOfRequests returns the targets that a Gate holds, in order, at most
// maxToldOfRequest of them.
func (r *GateReconciler) toldOfRequests(ctx context.Context, gate string) []*target.Object {
	held, err := r.Targets.HeldBy(ctx, gate)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "No target is told of the request") // events are best effort
		return nil
	}
	held = slices.DeleteFunc(held, func(t *target.Object) bool {
		state := target.Of(&t.Unstructured).Observe(t, us)
		return isMachine(&t.Unstructured) || state == target.Free || state == target.Foreign
	})
	slices.SortFunc(held, func(a, b *target.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetKind(), b.GetKind()), strings.Compare(a.GetName(), b.GetName()))
	})
	return held[:min(len(held), maxToldOfRequest)]
}

// tell records an event on a target if the step changed something.
func (r *GateReconciler) tell(s settled) {
	obj, state, step, want := s.obj, s.state, s.step, s.want
	switch {
	case step.Outcome == target.OutcomeExempt:
	case step.Again:
		want.repeatable().tell(r, obj, eventWarning, v1alpha1.HeldAgainReason,
			"Resumed while gate '%s' is closed, held again. Open the gate instead.", want.Gate)
	case step.Hold && want.Refusal != "" && state == target.Free:
		want.news(step).tell(r, obj, eventWarning, want.Refusal, "%s", refusal(want.Refusal, want.Gate))
	case step.Hold && (state == target.Free || state == target.Locked):
		want.news(step).tell(r, obj, eventNormal, v1alpha1.GateClosedReason, "%s", waiting(step.HeldBy))
	case state != target.Free && state != target.Foreign && !step.Hold:
		want.news(step).tell(r, obj, eventNormal, v1alpha1.GateOpenedReason, "%s", released(want.Want))
	}
}

// news says of a target what its Gate is, or why it is held or released if that is
// not the reason.
func (o order) news(step target.Step) news {
	switch {
	case step.Hold && !o.Closed: // the lock held it for others, whose turn to tell this would be
		return news{gateNews: target.FormatHeldBy(step.HeldBy), eventv1.MetaTokenKey: token(o.now)}
	case o.decision == nil || o.Gate == "":
		return news{gateNews: o.Gate, reasonNews: o.Refusal, eventv1.MetaTokenKey: token(o.now)}
	}
	return newsOf(o.Gate, *o.decision, o.now)
}

// repeatable is news without a token: what resumes a target again and again is told
// once in five minutes.
func (o order) repeatable() news {
	said := o.news(target.Step{})
	delete(said, eventv1.MetaTokenKey)
	return said
}
