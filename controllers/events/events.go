// Package events emits the events on Gates and targets, and defines the metrics of Gates.
package events

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	kuberecorder "k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/target"
)

// The types of events.
const (
	Normal  = corev1.EventTypeNormal
	Warning = corev1.EventTypeWarning
)

const (
	// MaxTargetEvents bounds the number of events on targets for one transition or request of a Gate. One event is enough for an alert.
	MaxTargetEvents = 100

	// MaxQuoted bounds the number of characters of a refused value in an event, because an annotation may have 256 KiB. Every valid time
	// fits.
	MaxQuoted = 64
)

// Details are the metadata of an event, by key.
type Details map[string]string

// The keys of Details. The keys defined by notification-controller are in eventv1.
const (
	GateKey      = "gate"
	StateKey     = "state"
	ReasonKey    = "reason"
	RequesterKey = "requestedBy"
	ApproverKey  = "approvedBy"
	MessageKey   = "message"
	PeriodKey    = "period"
	ExceptionKey = "exception"
	ActionKey    = "action"
	AtKey        = "at"
)

// metadata returns the metadata of an event on an object, with our prefix and, if the object is a target, also with the prefix of its API
// group. notification-controller shows only metadata with the prefix of the object, and deduplicates only by the revision and token with
// that prefix.
func (n Details) metadata(obj client.Object) map[string]string {
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

// Emit emits an event with its metadata.
func (n Details) Emit(recorder kuberecorder.EventRecorder, obj client.Object, details Event) {
	recorder.AnnotatedEventf(obj, n.metadata(obj), details.Type, details.Reason, "%s", details.Message)
}

// Event is the type, the reason in CamelCase and the message of an event.
type Event struct{ Type, Reason, Message string }

// New returns an event.
func New(kind, reason, message string) Event { return Event{kind, reason, message} }

// Token returns a token for an instant. It prevents notification-controller from discarding an event as a repetition of an earlier one.
func Token(now time.Time) string { return now.UTC().Format(time.RFC3339Nano) }

// ForDecision returns the details of an event about a decision on a Gate.
func ForDecision(name string, d gate.Decision, now time.Time) Details {
	details := Details{GateKey: name, StateKey: string(d.State), ReasonKey: d.Reason, eventv1.MetaTokenKey: Token(now)}
	if d.Request != nil {
		details[RequesterKey], details[MessageKey] = d.Request.By, d.Request.Reason
	}
	by := PeriodKey
	if d.Reason == v1alpha1.ExceptionAppliesReason {
		by = ExceptionKey
	}
	details[by] = d.By
	return details
}

// ForGate returns the details of an event about the state of a Gate, from its status.
func ForGate(name string, g *v1alpha1.Gate, now time.Time) Details {
	if g == nil {
		return Details{GateKey: name, eventv1.MetaTokenKey: Token(now)}
	}
	opened, last := conditions.Get(g, v1alpha1.OpenedCondition), g.Status.LastTransition
	if opened == nil || last == nil {
		return Details{GateKey: name, eventv1.MetaTokenKey: Token(now)}
	}
	return ForDecision(name, gate.Decision{State: last.State, Reason: opened.Reason, By: last.DecidedBy(), Request: ledger.DecidedBy(g, now)}, now)
}

// ForException returns the details of an event on an exception: its name, its Gate, and the approver by, which may be empty.
func ForException(obj *v1alpha1.GateException, by string, now time.Time) Details {
	return Details{GateKey: view.GateKeyFor(obj).String(), ExceptionKey: obj.Name, ApproverKey: by, eventv1.MetaTokenKey: Token(now)}
}
