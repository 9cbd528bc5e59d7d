package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// traces returns an object without its status, which the controllers may write at any time.
func traces(obj *unstructured.Unstructured) []any {
	var owners []metav1.ManagedFieldsEntry
	for _, f := range obj.GetManagedFields() {
		if f.Subresource == "" {
			owners = append(owners, f)
		}
	}
	return []any{obj.GetGeneration(), obj.GetAnnotations(), obj.GetLabels(), obj.Object["spec"], owners}
}

func TestInterplayWithPeople(t *testing.T) { peopleCases.run(t) }

var peopleCases = cases{
	"flux-suspend-before": func(t *testing.T) {
		w := newFleet(t)
		w.fluxSuspend()
		w.close("production")
		w.is(suspended)
		w.parentReconciles()
		w.open("production")
		w.is(suspended)
		w.fluxResume()
		w.is(free)
	},
	"flux-suspend-before-resume-during": func(t *testing.T) {
		w := newFleet(t)
		w.fluxSuspend()
		w.close("production")
		w.fluxResume()
		w.is(held)
		w.warned(0)
		w.open("production")
		w.is(free)
	},
	"flux-suspend-during": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		before := traces(w.live())
		w.fluxSuspend()
		if got := traces(w.live()); !equality.Semantic.DeepEqual(got, before) {
			t.Errorf("flux suspend left a trace: %v, was %v", got, before)
		}
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"flux-suspend-after": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.open("production")
		w.fluxSuspend()
		w.parentReconciles()
		w.is(suspended)
		w.close("production")
		w.open("production")
		w.is(suspended)
	},
	"flux-resume-enforced": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.fluxResume()
		w.is(held)
		w.warned(1)
		w.reported()
		w.open("production")
		w.is(free)
	},
	"flux-resume-respected": func(t *testing.T) {
		w := newFleet(t, respecting)
		w.close("production")
		w.fluxResume()
		w.is(free)
		w.parentReconciles()
		w.push()
		w.is(free)
		w.warned(0)
		w.open("production")
		w.is(free)
		w.close("production")
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"flux-resume-and-suspend": func(t *testing.T) {
		w := newFleet(t, respecting)
		w.close("production")
		w.fluxResume()
		w.fluxSuspend()
		w.is(suspended)
		w.open("production")
		w.is(suspended)
		w.fluxResume()
		w.is(free)
	},
	"flux-resume-suspend-resume": func(t *testing.T) {
		w := newFleet(t, respecting)
		w.close("production")
		w.fluxResume()
		w.fluxSuspend()
		w.fluxResume()
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"flux-resume-of-git-true": func(t *testing.T) {
		w := newFleet(t, suspendInGit("true"))
		w.close("production")
		w.is(suspended)
		w.fluxResume()
		w.is(held)
		w.parentReconciles()
		w.is(unlessLocked(w, held, both)) // Flux sees no difference in a dry run
		w.open("production")
		w.is(unlessLocked(w, free, suspended))
		w.parentReconciles()
		w.is(suspended)
	},
	"own-manager-during": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.applyAs(alice)
		w.is(both)
		w.parentReconciles()
		w.is(both)
		w.open("production")
		w.is(suspended)
		w.fluxResume()
		w.is(free)
	},
	"kubectl-patch-before": func(t *testing.T) {
		w := newFleet(t)
		w.kubectlPatch("true")
		w.close("production")
		w.is(suspended)
		w.parentReconciles() // removes the fields of kubectl
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"kubectl-patch-false-during": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.kubectlPatch("false")
		w.is(held)
		w.warned(1)
		w.parentReconciles()
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"kubectl-patch-during": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.kubectlPatch("true")
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"kubectl-patch-after": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.open("production")
		w.kubectlPatch("true")
		w.close("production")
		w.open("production")
		w.is(suspended)
		w.parentReconciles() // removes the fields of kubectl
		w.is(free)
	},
	"kubectl-edit-before": func(t *testing.T) {
		w := newFleet(t)
		w.kubectlEdit("true")
		w.is(suspended)
		w.close("production")
		w.is(suspended)
		w.parentReconciles()
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"kubectl-edit-during": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.kubectlEdit("")
		w.is(held)
		w.warned(1)
		w.open("production")
		w.is(free)
	},
}
