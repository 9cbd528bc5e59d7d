package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"
	"github.com/fluxcd/pkg/runtime/events"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// withSink makes a world emit events as the real process does, to the API server and to a sink.
func (w *world) withSink() *harness.EventSink {
	w.Helper()
	sink := harness.StartEventSink()
	w.Cleanup(sink.Close)
	scheme, err := harness.Scheme()
	w.Must(err)
	clients, err := kubernetes.NewForConfig(cluster.Config)
	w.Must(err)
	broadcaster := record.NewBroadcaster()
	w.Cleanup(broadcaster.Shutdown)
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")})
	flux, err := events.NewRecorder(funcr.New(func(_, line string) { w.Log(line) }, funcr.Options{}), sink.URL, v1alpha1.FieldManager, events.WithScheme(scheme),
		events.WithLegacyEventRecorder(broadcaster.NewRecorder(scheme, corev1.EventSource{Component: v1alpha1.FieldManager})))
	w.Must(err)
	w.EventRecorder = fluxRecorder{flux}
	return sink
}

// fluxRecorder records the events of a controller with the recorder of Flux.
type fluxRecorder struct{ flux events.Recorder }

// Event implements record.EventRecorder.
func (r fluxRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.AnnotatedEventf(object, nil, eventtype, reason, "%s", message)
}

// Eventf implements record.EventRecorder.
func (r fluxRecorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.AnnotatedEventf(object, nil, eventtype, reason, messageFmt, args...)
}

// AnnotatedEventf implements record.EventRecorder.
func (r fluxRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	r.flux.AnnotatedEventf(object, nil, annotations, eventtype, reason, "Gating", messageFmt, args...)
}

// applied sets the revision that kustomize-controller has applied.
func (w *world) applied(name, revision string) {
	w.Helper()
	obj := inGit(w.Namespace, name, nil)
	w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj))
	before := obj.DeepCopy()
	obj.Object["status"] = map[string]any{"lastAppliedRevision": revision}
	w.Must(cluster.Client.Status().Patch(w.Context(), &obj.Unstructured, client.MergeFrom(before)))
}

// posted is an event that is expected at the sink.
type posted struct {
	object, severity, reason, message string
	// metadata as key=value, in both groups if the object is a target.
	metadata string
}

// expectPosted checks the events at the sink, and returns them.
func (w *world) expectPosted(sink *harness.EventSink, want ...posted) []eventv1.Event {
	w.Helper()
	got, faults := sink.Take()
	if len(faults) > 0 || len(got) != len(want) {
		w.Fatalf("got %d events, want %d, faults %q:\n%+v", len(got), len(want), faults, got)
	}
	for i, event := range got {
		object := event.InvolvedObject
		if object.Namespace != w.Namespace || object.UID == "" || event.ReportingController != "gating-controller" || event.ReportingInstance == "" ||
			time.Since(event.Timestamp.Time).Abs() > time.Hour {
			w.Errorf("%+v", event)
		}
		equal(w.TB, posted{
			object: object.APIVersion + " " + object.Kind + "/" + object.Name, severity: event.Severity, reason: event.Reason, message: event.Message,
		}, posted{want[i].object, want[i].severity, want[i].reason, want[i].message, ""})
		groups := []string{ourGroup}
		if object.Kind == "Kustomization" {
			groups = append(groups, ksGroup)
		}
		metadata := map[string]string{}
		for _, group := range groups {
			for pair := range strings.SplitSeq(want[i].metadata, "|") {
				key, value, _ := strings.Cut(pair, "=")
				metadata[group+"/"+key] = value
			}
			if token := event.Metadata[group+"/token"]; token == "" {
				w.Errorf("no token for %s: %+v", group, event)
			} else {
				metadata[group+"/token"] = token
			}
		}
		equal(w.TB, event.Metadata, metadata)
	}
	return got
}

const (
	onGate = "gating.toolkit.fluxcd.io/v1alpha1 Gate/production"
	onApp  = "kustomize.toolkit.fluxcd.io/v1 Kustomization/apps"
)

func TestSinkReceivesEachTransitionAndRequestOnce(t *testing.T) {
	w := newWorld(t)
	sink := w.withSink()
	w.NewKustomization("apps", nil)
	w.applied("apps", "main@sha1:4ab1")
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{named("apps")}, NotifyBefore: leads(0.5),
		ClosePeriods: []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze",
			From: v1alpha1.NewDateTime(start.Add(time.Hour)), Until: v1alpha1.NewDateTime(start.Add(48 * time.Hour))}}},
	})
	k, revision := key(g), "revision=main@sha1:4ab1|gate="+key(g)
	said, on := "gate="+k+"|", func(i int) time.Time { return w.In(time.Hour + time.Duration(i)*time.Second) }
	frozen, held, freed := "Held by gate '"+k+"' until 2026-11-25T12:00:00Z: close period 'freeze'.", "Held by gate '"+k+"': closed on request of bob: incident 5678.", "Released: gate '"+k+"' is open."
	byAlice, byBob := "|requestedBy=alice|message=hotfix 1234", "|requestedBy=bob|message=incident 5678"
	w.Reconcile(g)
	all := w.expectPosted(sink, posted{onGate, "info", "OutsideClosePeriods", "Gate opened outside its close periods, scheduled for closing at 2026-11-23T13:00:00Z by 'freeze'", said + "state=opened|reason=OutsideClosePeriods"})

	// It is announced that the period closes it.
	w.In(hours(0.5))
	w.Reconcile(g)
	closes := "closes at 2026-11-23T13:00:00Z (in 30m) by 'freeze': 1 target would be held: Kustomization " + w.Namespace + "/apps"
	const byPeriod = "state=closed|reason=ClosePeriod|period=freeze"
	all = append(all, w.expectPosted(sink,
		posted{onGate, "info", "GateClosesSoon", "Gate " + closes, said + byPeriod + "|at=2026-11-23T13:00:00Z"},
		posted{onApp, "info", "GateClosesSoon", "Gate '" + k + "' " + closes, revision + "|" + byPeriod + "|at=2026-11-23T13:00:00Z"})...)

	// The period closes it. An event that the sink has refused is posted again, and is identical.
	sink.Refuse(v1alpha1.GateClosedReason)
	on(0)
	w.Reconcile(g)
	onTarget := posted{onApp, "info", "GateClosed", frozen, revision + "|" + byPeriod}
	closed := w.expectPosted(sink, posted{onGate, "info", "ClosePeriod",
		"Gate closed by close period 'freeze', scheduled for opening at 2026-11-25T12:00:00Z", said + byPeriod}, onTarget, onTarget)
	equal(t, closed[2], closed[1])
	all = append(all, closed[:2]...)

	// A refused request by a known user.
	w.Annotate(g, v1alpha1.OpenRequestedByAnnotation, "mallory")
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, "yesterday")
	w.Reconcile(g)
	refused := `annotation open.gate.fluxcd.io/requestedAt: "yesterday" must be TIME[/DURATION][,only=KIND/NAME]..., such as 2026-12-19T12:00:00Z/30m`
	all = append(all, w.expectPosted(sink,
		posted{onGate, "error", "RequestRefused", refused, said + "action=open|reason=RequestRefused|requestedBy=mallory"},
		posted{onApp, "error", "RequestRefused", "Request for gate '" + k + "' refused, " + refused, revision + "|action=open|reason=RequestRefused|requestedBy=mallory"})...)

	// Open, close, open within two seconds.
	for i := range 2 {
		w.request(g, "open", on(2*i+1), "alice", "hotfix 1234")
		w.Reconcile(g)
		requested := fmt.Sprintf("open requested at 2026-11-23T13:00:0%dZ by alice: hotfix 1234", 2*i+1)
		all = append(all, w.expectPosted(sink,
			posted{onGate, "info", "RequestAccepted", "Gate " + requested, said + "action=open|reason=RequestAccepted" + byAlice},
			posted{onApp, "info", "RequestAccepted", "Request for gate '" + k + "': " + requested, revision + "|action=open|reason=RequestAccepted" + byAlice},
			posted{onGate, "info", "OpenRequested", "Gate " + requested, said + "state=opened|reason=OpenRequested" + byAlice},
			posted{onApp, "info", "GateOpened", freed, revision + "|state=opened|reason=OpenRequested" + byAlice})...)

		// Nothing is held when this one comes.
		w.request(g, "close", on(2*i+2), "bob", "incident 5678")
		w.Reconcile(g)
		requested = fmt.Sprintf("close requested at 2026-11-23T13:00:0%dZ by bob: incident 5678", 2*i+2)
		all = append(all, w.expectPosted(sink,
			posted{onGate, "info", "RequestAccepted", "Gate " + requested, said + "action=close|reason=RequestAccepted" + byBob},
			posted{onGate, "info", "CloseRequested", "Gate " + requested, said + "state=closed|reason=CloseRequested" + byBob},
			posted{onApp, "info", "GateClosed", held, revision + "|state=closed|reason=CloseRequested" + byBob})...)
	}

	keys := map[string]string{}
	for _, event := range all {
		if same, ok := keys[harness.EventKey(event)]; ok {
			t.Errorf("%s %q and %q would be taken for the same", event.Reason, event.Message, same)
		}
		keys[harness.EventKey(event)] = event.Message
	}
	w.onTheAPIServer(all)
}

// onTheAPIServer waits until there are Kubernetes events with the same metadata.
func (w *world) onTheAPIServer(all []eventv1.Event) {
	w.Helper()
	for _, event := range all {
		soon(w.TB, "an event of Kubernetes says "+event.Message, func() bool {
			list := &corev1.EventList{}
			w.Must(cluster.Client.List(w.Context(), list, client.InNamespace(w.Namespace)))
			for _, e := range list.Items {
				if e.Message == event.Message && e.InvolvedObject.UID == event.InvolvedObject.UID && e.Annotations[ourGroup+"/gate"] == event.Metadata[ourGroup+"/gate"] {
					return true
				}
			}
			return false
		})
	}
}

// request requests an action at a time in the name of a user.
func (w *world) request(g *v1alpha1.Gate, action string, at time.Time, by, reason string) {
	w.Helper()
	w.Edit(g, func() {
		if g.Annotations == nil {
			g.Annotations = map[string]string{}
		}
		g.Annotations[action+".gate.fluxcd.io/requestedAt"] = at.Format(time.RFC3339)
		g.Annotations[action+".gate.fluxcd.io/requestedBy"] = by
		g.Annotations[action+".gate.fluxcd.io/reason"] = reason
	})
}
