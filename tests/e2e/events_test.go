package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// sinkFor restarts the controller with an address for events, for the duration of a test.
func sinkFor(w *world) *harness.EventSink {
	w.Helper()
	sink := harness.StartEventSink()
	restart := func(ctx context.Context, args ...string) error {
		err := gating.Stop()
		if err == nil {
			gating, err = cluster.StartGatingController(ctx, args...)
		}
		return err
	}
	w.Cleanup(func() {
		if err := restart(context.Background()); err != nil { // the context of the test has ended
			w.Error(err)
		}
		sink.Close()
	})
	w.Must(restart(w.Context(), "--events-addr="+sink.URL))
	return sink
}

// receives waits for an event on a kind. It fails if an event was not posted correctly.
func (w *world) receives(sink *harness.EventSink, kind, reason string) eventv1.Event {
	w.Helper()
	var found eventv1.Event
	w.Eventually(fmt.Sprintf("an event %s on a %s", reason, kind), func() error {
		events, faults := sink.Take()
		if len(faults) > 0 {
			return harness.Permanent(fmt.Errorf("faults: %q", faults))
		}
		for _, event := range events {
			if event.InvolvedObject.Namespace == w.Namespace && event.InvolvedObject.Kind == kind && event.Reason == reason {
				found = event
				return nil
			}
		}
		return errors.New("not yet")
	})
	return found
}

func (w *world) hasMetadata(event eventv1.Event, want map[string]string) {
	w.Helper()
	for _, group := range []string{"kustomize.toolkit.fluxcd.io", "gating.toolkit.fluxcd.io"} {
		for key, value := range want {
			if got := event.Metadata[group+"/"+key]; got != value {
				w.Errorf("%s: %s of %s is %q, want %q", event.Message, key, group, got, value)
			}
		}
	}
}

func TestNotificationsNameRequesterGateAndRevision(t *testing.T) {
	w := newWorld(t)
	sink := sinkFor(w)
	w.publish("v1")
	app := w.kustomization("app", "ExternalArtifact", "app")
	w.arrives("v1")
	w.Eventually("the revision is in the status", func() error { return w.at(app, "v1") })
	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Kustomization", Name: "app"})
	gate := w.Namespace + "/production"
	closed := w.receives(sink, "Kustomization", "GateClosed")
	w.hasMetadata(closed, map[string]string{"gate": gate, "state": "closed", "reason": "Default", "revision": "v1", "requestedBy": ""})

	w.publish("v2")
	w.Annotate(w.ReadGate("production"), "open.gate.fluxcd.io/requestedBy", "alice", "open.gate.fluxcd.io/reason", "hotfix 1234",
		"open.gate.fluxcd.io/requestedAt", time.Now().UTC().Format(time.RFC3339))
	w.hasMetadata(w.receives(sink, "Kustomization", "GateOpened"), map[string]string{
		"gate": gate, "state": "opened", "reason": "OpenRequested", "revision": "v1", "requestedBy": "alice", "message": "hotfix 1234"})
	w.arrives("v2")
	w.Eventually("the revision is in the status", func() error { return w.at(app, "v2") })
	w.Opened("production", metav1.ConditionTrue)

	w.request("close", "production")
	again := w.receives(sink, "Kustomization", "GateClosed")
	w.hasMetadata(again, map[string]string{"gate": gate, "state": "closed", "reason": "CloseRequested", "revision": "v2"})
	if harness.EventKey(closed) == harness.EventKey(again) {
		t.Errorf("the events would be deduplicated: %+v, %+v", closed, again)
	}

	w.Annotate(w.ReadGate("production"), "open.gate.fluxcd.io/requestedAt", "soon")
	refused := w.receives(sink, "Kustomization", "RequestRefused")
	w.hasMetadata(refused, map[string]string{"gate": gate, "action": "open", "revision": "v2", "reason": "RequestRefused"})
	if refused.Severity != eventv1.EventSeverityError {
		t.Errorf("severity %s", refused.Severity)
	}
}

func TestAnnouncementListsWaitingTargets(t *testing.T) {
	w := newWorld(t)
	sink, registry := sinkFor(w), harness.StartRegistry()
	t.Cleanup(registry.Stop)
	push := func(revision string) {
		w.Must(registry.Push("app", "latest", map[string]string{"app.yaml": w.configMap(revision)}))
	}
	push("v1")
	source := harness.Object("source.toolkit.fluxcd.io/v1", "OCIRepository", w.Key("app"))
	source.Object["spec"] = map[string]any{
		"interval": "1h", "insecure": true, "url": registry.URL("app"), "ref": map[string]any{"tag": "latest"},
	}
	w.Create(source)
	w.kustomization("app", "OCIRepository", "app")
	w.arrives("v1")

	opens := time.Now().Add(80 * time.Second).Truncate(time.Second)
	w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "app"}},
		NotifyBefore: []v1alpha1.Duration{{Duration: time.Minute}},
		OpenPeriods:  []v1alpha1.Period{{Name: "release", From: v1alpha1.NewDateTime(opens), Until: v1alpha1.NewDateTime(opens.Add(time.Hour))}},
	})
	w.receives(sink, "Kustomization", "GateClosed")
	push("v2")
	w.reconcileNow(source)

	soon := w.receives(sink, "Kustomization", "GateOpensSoon")
	at := opens.UTC().Format(time.RFC3339)
	want := fmt.Sprintf("^Gate '%s/production' opens at %s \\(in (1m|[1-5]?[0-9]s)\\) by 'release': 1 target is held, with pending changes for 1: Kustomization %s/app$",
		w.Namespace, at, w.Namespace)
	if !regexp.MustCompile(want).MatchString(soon.Message) { // several seconds may pass on a busy machine
		t.Errorf("got  %q\nwant %q", soon.Message, want)
	}
	w.hasMetadata(soon, map[string]string{"gate": w.Namespace + "/production", "state": "opened", "reason": "OpenPeriod", "period": "release", "at": at})
	w.stays("v1")
}

// at returns nil if kustomize-controller has applied a revision.
func (w *world) at(app *unstructured.Unstructured, revision string) error {
	if err := w.TryRead(app); err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedString(app.Object, "status", "lastAppliedRevision"); got != revision {
		return fmt.Errorf("the revision is %q", got)
	}
	return nil
}
