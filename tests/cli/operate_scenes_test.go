package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// calm has the manifests of a namespace without problems. No Gate governs tools, and production is closed until a user opens it.
var calm = kustomization("apps") + kustomization("tools") + kustomization("gates") +
	strings.Replace(gateOf("opened", "", "apps"), "name: production", "name: staging", 1) + gate("closed", "", "")

// receiver returns a GateReceiver that opens the Gate production, or closes it for type generic, which cannot open. More fields can be
// added to its spec.
func receiver(name, kind, more string) string {
	action := "open"
	if kind == v1alpha1.GenericReceiver {
		action = "close"
	}
	return fmt.Sprintf(`---
apiVersion: gating.toolkit.fluxcd.io/v1alpha1
kind: GateReceiver
metadata:
  name: %s
spec:
  type: %s
  secretRef: {name: %s}
  gateRefs: [{name: production}]
  action: %s
%s`, name, kind, name, action, more)
}

// with switches to a user with roles in the namespace.
func with(name string, roles ...string) func(w *world) *world {
	return func(w *world) *world {
		for _, role := range roles {
			w.may(name, role)
		}
		return w.as(name)
	}
}

// opensAs returns a function that opens the Gate production as a user.
func opensAs(name string) func(w *world) {
	return func(w *world) {
		who := with(name, "gate-opener")(w)
		w.expect(who.gate("open", "production", "--for", "1h", "--reason", "hotfix 1234"), 0, "", "")
	}
}

// tokens creates the Secrets of receivers, and waits until their webhooks are accepted.
func tokens(names ...string) func(w *world) {
	return func(w *world) {
		for _, name := range names {
			w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": "s3cr3t-0123456789abcdef"}})
			w.ok("kubectl -n %[1]s annotate --overwrite gatereceiver/%[2]s reconcile.fluxcd.io/requestedAt=now && kubectl -n %[1]s wait --for=condition=ready --timeout=1m gatereceiver/%[2]s", w.Namespace, name)
		}
	}
}

// ok runs commands that must succeed.
func (w *world) ok(format string, args ...any) {
	w.Helper()
	if got := w.shell(fmt.Sprintf(format, args...)); got.code != 0 {
		w.Fatalf("%+v", got)
	}
}

func closedByHand(w *world) {
	tokens("signed")(w)
	w.expect(w.gate("close", "production", "--reason", "incident 77"), 0, "", "")
}

func suspendedReceiver(w *world) {
	tokens("ci")(w)
	w.ok(`kubectl -n %[1]s patch gatereceiver/ci --type=merge -p '{"spec":{"suspend":true}}'`, w.Namespace)
}

func isOpen(w *world) { w.Opened("production", metav1.ConditionTrue) }

// passed expects that only the waiting revision was applied.
func passed(w *world) {
	apps := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key("apps"))
	w.applies(apps, "v2")
	w.Opened("production", metav1.ConditionFalse)
	w.isHeldBy(apps, "production")
}

// restorePolicies installs the policies again and waits until they are in force.
func restorePolicies(w *world) {
	w.applied(gate("closed", "", ""))
	w.Must(w.InstallComponent(w.Context(), "policies"))
	edith := with("edith", "gate-editor")(w)
	w.Eventually("the policy is in force", func() error {
		got := edith.shell("kubectl -n " + w.Namespace + " annotate gate/production --dry-run=server open.gate.fluxcd.io/requestedAt=" + time.Now().UTC().Format(time.RFC3339))
		if got.code == 0 {
			return errors.New(got.out)
		}
		return nil
	})
}

// lockedAndDown uses the lock to hold the Kustomization apps while no controller runs.
func lockedAndDown(w *world) {
	w.Must(w.InstallComponent(w.Context(), "lock"))
	w.Eventually("the API server serves the GateLocks that the lock reads", func() error {
		got := w.shell("kubectl create --dry-run=server -f - <<'EOT'\n" + strings.ReplaceAll(kustomization("apps"), "flux-system", w.Namespace) + "\nEOT")
		if got.code != 0 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	w.applied(kustomization("apps") + gateOf("closed", "", "apps"))
	holds("apps")(w)
	w.Eventually("the lock reverts a resume", func() error {
		got := w.shell("kubectl -n " + w.Namespace + ` patch kustomization/apps --type=merge -p '{"spec":{"suspend":false}}' --dry-run=server -o jsonpath={.spec.suspend}`)
		if got.out != "true" {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	w.Must(theOperated.gating.Stop())
}

// staysReleased expects that a resumed object is not held again when the controller runs again.
func staysReleased(w *world) {
	apps := w.Kustomization("apps")
	free := func() error {
		if w.Read(apps); harness.Suspended(apps) {
			return fmt.Errorf("%v", apps.Object)
		}
		return nil
	}
	w.Eventually("the API server no longer enforces the deleted bindings", func() error {
		err := free()
		if err != nil {
			w.shell("kubectl -n " + w.Namespace + ` patch kustomization/apps --type=merge -p '{"spec":{"suspend":null}}'`)
		}
		return err
	})
	theOperated.starts()
	w.Opened("production", metav1.ConditionTrue)
	w.Eventually("the object is no longer held", func() error {
		if w.Read(apps); harness.HeldBy(apps) != "" {
			return errors.New(harness.HeldBy(apps))
		}
		return nil
	})
	w.Throughout(2*time.Second, "the object stays released", free)
	w.unlocks()
}

// unlocks deletes the rest of the lock.
func (w *world) unlocks() {
	w.Helper()
	w.ok("kubectl delete --ignore-not-found -k %s/config/lock", harness.Root())
}

// deploysFlux creates the Deployment of kustomize-controller, which has no Pods in this test.
func deploysFlux(w *world) {
	w.ok("kubectl -n %s create deployment kustomize-controller --image=kustomize-controller", w.Namespace)
}

func isFrozen(w *world) {
	w.Opened("staging", metav1.ConditionFalse)
	for _, name := range []string{"apps", "tools"} {
		obj := w.Kustomization(name)
		w.Eventually(name+" is suspended", func() error {
			if w.Read(obj); !harness.Suspended(obj) {
				return fmt.Errorf("%v", obj.Object)
			}
			return nil
		})
	}
}

// inAnIncident does what the sections before the one about the undo describe.
func inAnIncident(w *world) {
	deploysFlux(w)
	w.expect(w.gate("freeze", "staging", "--for", "4h", "--reason", "incident 77"), 0, "", "")
	w.expect(w.gate("open", "production", "--for", "4h", "--reason", "incident 77"), 0, "", "")
	w.ok(`kubectl -n %[1]s patch kustomization/gates kustomization/tools --type=merge -p '{"spec":{"suspend":true}}' && kubectl delete validatingadmissionpolicybinding gate-request-verb`, w.Namespace)
}

func asBefore(w *world) {
	w.Opened("staging", metav1.ConditionTrue)
	w.Opened("production", metav1.ConditionFalse)
	w.ok("kubectl get validatingadmissionpolicybinding gate-request-verb && kubectl get mutatingadmissionpolicybinding gate-hold")
	for _, name := range []string{"apps", "tools", "gates"} {
		obj := w.Kustomization(name)
		if w.Read(obj); harness.Suspended(obj) {
			w.Errorf("%v", obj.Object)
		}
	}
	w.unlocks()
}

// cleared deletes the objects of other sections.
func cleared(w *world) {
	w.ok("kubectl delete gateexceptions --all -A && kubectl delete gates --all -A")
}

// down waits until the controller holds its targets, and stops it.
func down(w *world) {
	holds("apps")(w)
	holds("tools")(w)
	w.Must(theOperated.gating.Stop())
}

// lastIsReleased starts the controller again. It must release the target of the deleted Gate.
func lastIsReleased(w *world) {
	theOperated.starts()
	tools := w.Kustomization("tools")
	w.Eventually("the target is released", func() error {
		if w.Read(tools); harness.Suspended(tools) {
			return fmt.Errorf("%v", tools.Object)
		}
		return nil
	})
}

// inLog returns an error unless a line of a file contains all texts.
func inLog(path string, texts ...string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(content)) {
		missing := 0
		for _, text := range texts {
			if !strings.Contains(line, text) {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
	}
	return fmt.Errorf("no line of %s contains %q", path, texts)
}
