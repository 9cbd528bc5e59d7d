package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
	"github.com/fluxcd/gating-controller/receivers"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

func TestClosedGateHoldsNewRevisionUntilOpen(t *testing.T) {
	w := newWorld(t)
	w.publish("v1")
	app := w.kustomization("app", "ExternalArtifact", "app")
	w.arrives("v1")

	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Kustomization", Name: "app"})
	w.Opened("production", metav1.ConditionFalse)
	w.suspend(app, true)
	w.publish("v2")
	w.reconcileNow(app)
	w.stays("v1")

	w.request("open", "production")
	w.Opened("production", metav1.ConditionTrue)
	w.suspend(app, false)
	w.arrives("v2")

	w.request("close", "production")
	w.Opened("production", metav1.ConditionFalse)
	w.suspend(app, true)
	w.publish("v3")
	w.stays("v2")

	w.Must(w.Client.Delete(w.Context(), &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: w.Namespace}}))
	w.suspend(app, false)
	w.arrives("v3")
}

func TestHoldSurvivesRestartAndPendingRequestsAreHandled(t *testing.T) {
	w := newWorld(t)
	app := w.heldApp()

	w.Must(gating.Kill())
	w.publish("v2")
	w.reconcileNow(app)
	w.stays("v1")
	w.request("open", "production")

	var err error
	gating, err = cluster.StartGatingController(w.Context())
	w.Must(err)
	w.Opened("production", metav1.ConditionTrue)
	w.suspend(app, false)
	w.arrives("v2")
}

func TestFluxResumeIsRevertedAndReported(t *testing.T) {
	w := newWorld(t)
	app := w.heldApp()

	resume := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":null}}`))
	w.Must(w.Client.Patch(w.Context(), app, resume, client.FieldOwner("flux")))
	w.suspend(app, true)
	w.Eventually("a warning event names the gate", func() error {
		events := &corev1.EventList{}
		if err := w.Client.List(w.Context(), events, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.InvolvedObject.Kind == "Kustomization" && event.Reason == v1alpha1.HeldAgainReason &&
				event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, w.Namespace+"/production") {
				return nil
			}
		}
		return fmt.Errorf("none of %d events", len(events.Items))
	})
}

func TestGateFromGitKeepsStrippedOpenRequest(t *testing.T) {
	w := newWorld(t)
	manifest := fmt.Sprintf("apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata:\n  name: production\n  namespace: %s\n"+
		"spec:\n  default: closed\n  window: 1h\n  targets:\n  - kind: Kustomization\n    name: app\n", w.Namespace)
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("gates"), "v1", map[string]string{"gate.yaml": manifest}))
	gates := w.kustomization("gates", "ExternalArtifact", "gates")
	w.publish("v1")
	app := w.kustomization("app", "ExternalArtifact", "app")
	w.Opened("production", metav1.ConditionFalse)
	w.suspend(app, true)

	states := w.transitions("production")
	w.request("open", "production")
	w.Opened("production", metav1.ConditionTrue)
	w.Eventually("kustomize-controller strips the annotation", func() error {
		w.reconcileNow(gates)
		if value, ok := w.ReadGate("production").Annotations[v1alpha1.OpenRequestedAtAnnotation]; ok {
			return fmt.Errorf("the annotation still exists: %s", value)
		}
		return nil
	})
	g := w.ReadGate("production")
	if w.Decided(g); g.Status.RequestedAt == nil {
		t.Error("status.requestedAt is missing")
	}
	w.suspend(app, false)
	w.arrives("v1")
	w.request("close", "production")
	w.Opened("production", metav1.ConditionFalse)
	if got := strings.Join(states(), ", "); got != "False Default, True OpenRequested, False CloseRequested" {
		t.Errorf("the states of the gate were %s", got)
	}
}

func TestAPIServerAcceptsShippedManifests(t *testing.T) {
	w := newWorld(t)
	for _, folder := range []string{"config/default", "config/policies", "config/activation", "config/calendars", "config/webhooks", "config/samples"} {
		rendered, err := harness.Kustomize(filepath.Join(harness.Root(), folder))
		w.Must(err)
		if folder == "config/samples" {
			w.sound(rendered)
			for _, namespace := range []string{"flux-system", "apps"} {
				rendered = strings.ReplaceAll(rendered, "namespace: "+namespace+"\n", "namespace: "+w.Namespace+"\n")
			}
		}
		file := filepath.Join(t.TempDir(), "manifests.yaml")
		w.Must(os.WriteFile(file, []byte(rendered), 0o600))
		out, err := cluster.Kubectl(w.Context(), "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", file)
		w.Must(err)
		if !strings.Contains(out, "serverside-applied") {
			t.Errorf("%s: %s", folder, out)
		}
	}
}

func TestAPIServerAcceptsGatesInDocs(t *testing.T) {
	w := newWorld(t)
	found := map[string]int{}
	var docs []string
	for _, pattern := range []string{"README.md", "docs/*/*.md"} {
		matches, err := filepath.Glob(filepath.Join(harness.Root(), pattern))
		w.Must(err)
		docs = append(docs, matches...)
	}
	for _, doc := range docs {
		for _, block := range markdown.Blocks(markdown.Page(t, strings.TrimPrefix(doc, harness.Root())), "yaml") {
			kinds := regexp.MustCompile(`kind: (Gate|GateException|GateReceiver)\n`).FindAllStringSubmatch(block.Text, -1)
			if len(kinds) == 0 || !strings.Contains(block.Text, "apiVersion: gating.") { // the block is about the kind, or for kustomize
				continue
			}
			for _, kind := range kinds {
				found[kind[1]]++
			}
			w.sound(block.Text)
			file := filepath.Join(t.TempDir(), "gate.yaml")
			parts := slices.DeleteFunc(strings.Split(block.Text, "---\n"), func(part string) bool { // config/machines is not installed
				return strings.Contains(part, "kind: "+v1alpha1.MachineCertificateRefreshKind)
			})
			manifest := regexp.MustCompile(`([ {,]namespace: )[^,}\n]*`).ReplaceAllString(strings.Join(parts, "---\n"), "${1}"+w.Namespace)
			w.Must(os.WriteFile(file, []byte(manifest), 0o600))
			_, err := cluster.Kubectl(w.Context(), "apply", "--server-side", "--dry-run=server", "-f", file)
			w.Must(err)
		}
	}
	if found[v1alpha1.GateKind] < 5 || found[v1alpha1.GateExceptionKind] < 5 || found[v1alpha1.GateReceiverKind] < 1 {
		t.Errorf("found %v in the docs", found)
	}
}

// aToken is a client that returns a token for each Secret.
type aToken struct{ client.Reader }

func (aToken) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if secret, ok := obj.(*corev1.Secret); ok {
		secret.Data = map[string][]byte{v1alpha1.ReceiverTokenKey: []byte("token")}
	}
	return nil
}

// sound fails if the controller would find errors in the Gates, GateExceptions and GateReceivers of some manifests. The API server does
// not find all of them.
func (w *world) sound(manifests string) {
	w.Helper()
	for _, document := range strings.Split(manifests, "\n---\n") {
		kind := &metav1.TypeMeta{}
		w.Must(yaml.Unmarshal([]byte(document), kind))
		var errs field.ErrorList
		switch kind.Kind {
		case v1alpha1.GateKind:
			obj := &v1alpha1.Gate{}
			w.Must(yaml.UnmarshalStrict([]byte(document), obj))
			errs = gate.Validate(obj)
		case v1alpha1.GateExceptionKind:
			obj := &v1alpha1.GateException{}
			w.Must(yaml.UnmarshalStrict([]byte(document), obj))
			errs = timetable.ValidateException(obj)
		case v1alpha1.GateReceiverKind:
			obj := &v1alpha1.GateReceiver{}
			w.Must(yaml.UnmarshalStrict([]byte(document), obj))
			if _, err := receivers.NewTable(aToken{}).Load(w.Context(), obj); err != nil {
				w.Errorf("%v in\n%s", err, document)
			}
		}
		if len(errs) > 0 {
			w.Errorf("%v in\n%s", errs.ToAggregate(), document)
		}
	}
}
