package policies

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	passAt  = v1alpha1.PassRequestedAtAnnotation
	passBy  = v1alpha1.PassRequestedByAnnotation
	passWhy = v1alpha1.PassReasonAnnotation
)

// heldApp returns a Kustomization that closed Gates hold, once the policies of passes are in force.
func (w *world) heldApp(gates ...string) *unstructured.Unstructured {
	w.Helper()
	app := w.Kustomization("app")
	w.Create(app)
	for _, name := range gates {
		w.ClosedGate(name, v1alpha1.TargetReference{Kind: "Kustomization", Name: "app"})
	}
	w.Eventually("it is held", func() error {
		w.Read(app)
		if n := len(strings.Split(harness.HeldBy(app), ",")); !harness.Suspended(app) || n != len(gates) {
			return fmt.Errorf("held by %q", harness.HeldBy(app))
		}
		return nil
	})
	for policy, patch := range map[string]string{
		"gate-pass-verb":  `{"metadata":{"annotations":{"` + v1alpha1.PassAnnotation + `":"x"}}}`,
		"gate-pass-stamp": `{"metadata":{"annotations":{"` + passBy + `":"x"}}}`,
	} {
		w.Eventually(policy+" is in force", func() error {
			out, err := cluster.Kubectl(w.Context(), "-n", w.Namespace, "patch", "kustomization", "app", "--type=merge", "-p", patch, "--dry-run=server", "-o=yaml")
			if err == nil && (strings.Contains(out, passBy) || strings.Contains(out, v1alpha1.PassAnnotation)) {
				return fmt.Errorf("not yet: %s", out)
			}
			return nil
		})
	}
	return app
}

// annotationsOf returns an annotation of an object as it is.
func (w *world) annotationOf(app *unstructured.Unstructured, name string) string {
	w.Helper()
	w.Read(app)
	return app.GetAnnotations()[name]
}

func TestAPassNeedsTheVerbOpenOnEachGateThatHolds(t *testing.T) {
	w := newWorld(t)
	app := w.heldApp("production", "freeze")
	mallory := w.as("mallory", "gate-viewer")
	w.mayOn("mallory", "patch", apps)
	w.mayOn("mallory", "get", apps)
	w.mayOn("mallory", "create", apps)
	for _, only := range []string{"", "production", "freeze"} {
		if only != "" {
			defer w.bind("mallory", false, "open", []string{only}, "gates.gating.toolkit.fluxcd.io")()
		}
		if only == "freeze" {
			break // and now both
		}
		for _, args := range []string{
			"annotate kustomization app " + passAt + "=NOW",
			"annotate kustomization app " + passWhy + "=hotfix",
			"annotate kustomization app " + passAt + "=NOW " + passBy + "=alice",
			`patch kustomization app --type=json -p [{"op":"add","path":"/metadata/annotations/pass.gate.fluxcd.io~1requestedAt","value":"NOW"}]`,
			`patch kustomization app --type=merge -p {"metadata":{"annotations":{"gating.toolkit.fluxcd.io/heldBy":"x/y","` + passAt + `":"NOW"}}}`,
			`patch kustomization app --type=merge -p {"metadata":{"annotations":{"gating.toolkit.fluxcd.io/heldBy":null,"` + passAt + `":"NOW"}}}`,
		} {
			out, err := mallory.kubectl(w.Context(), w.Namespace, strings.Fields(strings.ReplaceAll(args, "NOW", nowNano()))...)
			if err == nil || !strings.Contains(out, "user mallory may not let Kustomization "+w.Namespace+"/app pass: it needs the verb open") {
				t.Errorf("with the verb on %q: %s: %s", only, args, out)
			}
		}
	}
	w.allowed(mallory, "annotate", "kustomization", "app", passAt+"="+nowNano(), passBy+"=alice", passWhy+"=hotfix")
	if by := w.annotationOf(app, passBy); by != "mallory" {
		t.Errorf("requested by %q", by)
	}
	w.Eventually("it passes", func() error {
		if note := w.annotationOf(app, v1alpha1.PassAnnotation); !strings.HasPrefix(note, "state=Passing\n") || !strings.Contains(note, "\nrequestedBy=mallory\n") || !strings.HasSuffix(note, "\nreason=hotfix") {
			return fmt.Errorf("noted %q", note)
		}
		return nil
	})
	note := w.annotationOf(app, v1alpha1.PassAnnotation)
	for _, patch := range []string{`null`, `"x"`, `"state=Ended"`} {
		args := []string{"patch", "kustomization", "app", "--type=merge", "-p", `{"metadata":{"annotations":{"` + v1alpha1.PassAnnotation + `":` + patch + `,"` + passBy + `":"alice"}}}`}
		w.allowed(mallory, args...)
		if now := w.annotationOf(app, v1alpha1.PassAnnotation); now != note || app.GetAnnotations()[passBy] != "mallory" {
			t.Errorf("it is noted %q by %q", now, app.GetAnnotations()[passBy])
		}
	}
	bob := w.as("bob", opener)
	w.mayOn("bob", "patch", apps)
	w.mayOn("bob", "get", apps)
	w.allowed(bob, "annotate", "--overwrite", "kustomization", "app", passAt+"="+nowNano())
	if by, why := w.annotationOf(app, passBy), w.annotationOf(app, passWhy); by != "bob" || why != "" {
		t.Errorf("requested by %q: %s", by, why)
	}
}

// An object that nobody holds has nothing to let pass, and a manifest would ask again each time that it is applied.
func TestAPassIsAskedForByHandAndOfWhatIsHeld(t *testing.T) {
	w := newWorld(t)
	app := w.heldApp("production")
	free := w.Kustomization("free")
	w.Create(free)
	admin := func(args ...string) string {
		out, err := cluster.Kubectl(w.Context(), append([]string{"-n", w.Namespace}, args...)...)
		if err == nil {
			t.Errorf("%q is allowed", args)
		}
		return out + fmt.Sprint(err)
	}
	if out := admin("annotate", "kustomization", "free", passAt+"="+nowNano()); !strings.Contains(out, "no gate holds Kustomization "+w.Namespace+"/free") {
		t.Error(out)
	}
	manifest := w.file(fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app, namespace: %s, annotations: {%s: %q}}\n",
		w.Namespace, passAt, nowNano()))
	if out := admin("apply", "--server-side", "-f", manifest); !strings.Contains(out, "is asked for by hand, with kubectl gate pass, and not by a manifest") {
		t.Error(out)
	}
	copied := w.Kustomization("copied")
	copied.SetAnnotations(map[string]string{
		passAt: nowNano(), passBy: "alice", v1alpha1.PassAnnotation: "state=Passing", v1alpha1.HeldByAnnotation: w.Namespace + "/production", "team": "shop",
	})
	w.Must(w.Client.Create(w.Context(), copied, client.FieldOwner("velero")))
	w.Read(copied)
	for _, name := range []string{passAt, passBy, v1alpha1.PassAnnotation} {
		if value, ok := copied.GetAnnotations()[name]; ok {
			t.Errorf("a new object has %s: %s", name, value)
		}
	}
	w.Annotate(app.DeepCopy(), passAt, nowNano())
	w.Annotate(app.DeepCopy(), passAt, "") // kustomize-controller removes what kubectl has set
}

// A policy has to know many Gates, and cannot ask for each of them.
func TestAPassOfWhatManyGatesHold(t *testing.T) {
	w := newWorld(t)
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprintf("gate-%d", i))
	}
	w.heldApp(names...)
	rita := w.as("rita", opener)
	w.mayOn("rita", "patch", apps)
	w.mayOn("rita", "get", apps)
	out, err := rita.kubectl(w.Context(), w.Namespace, "annotate", "kustomization", "app", passAt+"="+nowNano())
	if err == nil || !strings.Contains(out, "it is held by more than 8 gates, so it needs the verb open on all gates") {
		t.Error(out)
	}
	defer w.bind("rita", true, "open", nil, "gates.gating.toolkit.fluxcd.io")()
	w.Eventually("she may open all", func() error {
		_, err := rita.kubectl(w.Context(), w.Namespace, "annotate", "--overwrite", "kustomization", "app", passAt+"="+nowNano())
		return err
	})
}

func nowNano() string { return time.Now().UTC().Format(time.RFC3339Nano) }
