package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// lockInstalled is true while config/lock is installed.
var lockInstalled bool

// installLock installs config/lock for the duration of a test.
func installLock(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	w.Must(cluster.InstallComponent(w.Context(), "lock"))
	t.Cleanup(func() {
		lockInstalled = false
		if err := cluster.RemoveComponent(context.WithoutCancel(w.Context()), "lock"); err != nil {
			t.Error(err)
		}
	})
	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Kustomization", Name: "*"})
	w.Eventually("the lock is in force", func() error {
		app := (&fleet{world: w}).app()
		app.Object["spec"] = map[string]any{"interval": "1h", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "none"}}
		if err := w.Client.Create(w.Context(), app, client.DryRunAll); err != nil {
			return err
		}
		if held, _, _ := unstructured.NestedBool(app.Object, "spec", "suspend"); !held {
			return errors.New("a new object is not held")
		}
		return nil
	})
	lockInstalled = true
}

// TestInterplayWithTheLock runs all cases again with mode Enforce and the lock.
func TestInterplayWithTheLock(t *testing.T) {
	installLock(t)
	for name, test := range map[string]func(*testing.T){
		"git": gitCases.run, "people": peopleCases.run, "gates": gateCases.run, "some targets": onlyCases.run,
		"deleted gate": TestInterplayOfDeletedGate, "random steps": TestInterplayOfRandomSteps, "restart": TestInterplayOfRestart,
		"no loop": noLoop, "created held": createdHeld, "prune": pruneWaits, "failed first install": failedFirstInstall,
	} {
		t.Run(name, test)
	}
}

// noLoop counts the versions of a held target while its parent reconciles.
func noLoop(t *testing.T) {
	for _, suspend := range []string{"", "false"} {
		t.Run(fmt.Sprintf("suspend %q in Git", suspend), func(t *testing.T) {
			t.Parallel()
			w := newFleet(t, suspendInGit(suspend))
			w.close("production")
			w.Eventually("the hold is reported", func() error { // the condition is written after the hold
				if is, _ := harness.Condition(w.live(), v1alpha1.ApprovedCondition); is != metav1.ConditionFalse {
					return fmt.Errorf("Approved is %q", is)
				}
				return nil
			})
			before := w.live().GetResourceVersion()
			for range 10 {
				w.reconcileFleet()
			}
			if after := w.live().GetResourceVersion(); after != before {
				t.Errorf("written from version %s to %s in 10 reconciliations", before, after)
			}
			w.is(held)
		})
	}
}

// createdHeld checks that the first version of an object is held.
func createdHeld(t *testing.T) {
	w := prepareFleet(t)
	w.newGate("production")
	w.close("production")
	w.Eventually("the GateLock has the gate", func() error {
		lock := &lockv1alpha1.GateLock{}
		if err := w.Client.Get(w.Context(), w.Key(lockv1alpha1.GateLockName), lock); err != nil {
			return err
		}
		if len(lock.Spec.Targets["Kustomization/app"]) != 1 {
			return fmt.Errorf("the GateLock is %v", lock.Spec)
		}
		return nil
	})
	all := watchVersions(w.world, "app")
	w.firstApplied()
	if first := <-all.incoming; first.state() != held {
		t.Errorf("created as %s", first)
	}
	w.is(held)
	w.open("production")
	w.is(free)
}

// pruneWaits removes a held target from Git. Flux retries the pruning until the gate opens, so that its workloads are pruned, too.
func pruneWaits(t *testing.T) {
	w := newFleet(t)
	w.close("production")
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("fleet"), "nothing", map[string]string{"none.yaml": ""}))
	w.Eventually("fleet reports that it cannot prune", w.fleetReports("is held by gate '"+w.Namespace+"/production' and cannot be deleted until it opens"))
	w.is(held)
	w.makeRequest("production", v1alpha1.OpenRequestedAtAnnotation, metav1.ConditionTrue)
	w.suspend(w.app(), false)
	w.reconcileFleet() // instead of waiting for its retry interval
	w.isGone(w.app())
	w.Eventually("the workloads are pruned", func() error {
		if w.applied("v1")() == nil {
			return errors.New("the ConfigMap still exists")
		}
		return nil
	})
}
