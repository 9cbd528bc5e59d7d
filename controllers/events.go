package controllers

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	kuberecorder "k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	eventNormal  = corev1.EventTypeNormal
	eventWarning = corev1.EventTypeWarning
)

const (
	// maxTold bounds the targets that a transition of a Gate, or a request, is told on. A Gate may hold ten thousand, and
	// whoever is alerted needs one.
	maxTold = 100

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
	requesterNews = "requestedBy"
	approverNews  = "approvedBy"
	messageNews   = "message"
	periodNews    = "period"
	exceptionNews = "exception"
	actionNews    = "action"
	atNews        = "at"
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
func (n news) tell(recorder kuberecorder.EventRecorder, obj client.Object, said notice) {
	recorder.AnnotatedEventf(obj, n.metadata(obj), said.kind, said.reason, "%s", said.message)
}

// notice is what an event says to people: its type, its reason in CamelCase and its message.
type notice struct{ kind, reason, message string }

// token returns a value that no event of another instant has, so that an event which
// reads like one some minutes ago is not taken for that one.
func token(now time.Time) string { return now.UTC().Format(time.RFC3339Nano) }

// newsOf says what a Gate is since an instant, and who or what decided that.
func newsOf(name string, d gate.Decision, now time.Time) news {
	said := news{gateNews: name, stateNews: string(d.State), reasonNews: d.Reason, eventv1.MetaTokenKey: token(now)}
	if d.Request != nil {
		said[requesterNews], said[messageNews] = d.Request.By, d.Request.Reason
	}
	by := periodNews
	if d.Reason == v1alpha1.ExceptionAppliesReason {
		by = exceptionNews
	}
	said[by] = d.By
	return said
}

// newsOfGate says what a Gate is by its status, and who or what decided that.
func newsOfGate(name string, g *v1alpha1.Gate, now time.Time) news {
	if g == nil {
		return news{gateNews: name, eventv1.MetaTokenKey: token(now)}
	}
	opened, last := conditions.Get(g, v1alpha1.OpenedCondition), g.Status.LastTransition
	if opened == nil || last == nil {
		return news{gateNews: name, eventv1.MetaTokenKey: token(now)}
	}
	return newsOf(name, gate.Decision{State: last.State, Reason: opened.Reason, By: last.DecidedBy(), Request: ledger.DecidedBy(g, now)}, now)
}

// newsOfException says which exception and Gate an event is about, and who approved the
// exception if somebody did.
func newsOfException(obj *v1alpha1.GateException, by string, now time.Time) news {
	return news{gateNews: gateOf(obj).String(), exceptionNews: obj.Name, approverNews: by, eventv1.MetaTokenKey: token(now)}
}
