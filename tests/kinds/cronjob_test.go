package kinds

import (
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// startingDeadline is the starting deadline of a CronJob that sets one.
const startingDeadline = 10 * time.Second

// cronJob returns a CronJob that runs each minute.
func (w *world) cronJob(name, more string) *unstructured.Unstructured {
	w.Helper()
	return w.object("batch/v1", "CronJob", name, more+`
schedule: "* * * * *"
jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: backup, image: backup}]}}}}
`)
}

// runs returns the instants for which a CronJob has created Jobs.
func (w *world) runs(cronJob *unstructured.Unstructured) (at []time.Time, err error) {
	w.Helper()
	jobs := &batchv1.JobList{}
	w.Must(w.Client.List(w.Context(), jobs, client.InNamespace(w.Namespace)))
	for i := range jobs.Items {
		if owner := metav1.GetControllerOf(&jobs.Items[i]); owner == nil || owner.UID != cronJob.GetUID() {
			continue
		}
		t, err := time.Parse(time.RFC3339, jobs.Items[i].Annotations[batchv1.CronJobScheduledTimestampAnnotation])
		if err != nil {
			return nil, err
		}
		at = append(at, t)
	}
	return at, nil
}

// ran waits until a CronJob has run for an instant that is not before since, and returns that instant.
func (w *world) ran(cronJob *unstructured.Unstructured, since time.Time) (at time.Time) {
	w.Helper()
	w.Must(harness.Eventually(w.Context(), 3*time.Minute, cronJob.GetName()+" runs", func() error {
		all, err := w.runs(cronJob)
		for _, t := range all {
			if at = t; !t.Before(since) {
				return err
			}
		}
		return errors.Join(err, fmt.Errorf("the CronJob has run at %v", all))
	}))
	return at
}

func (w *world) neverRan(cronJob *unstructured.Unstructured) {
	w.Helper()
	w.Throughout(2*time.Second, cronJob.GetName()+" creates no Job", func() error {
		if all, err := w.runs(cronJob); err != nil || len(all) > 0 {
			return fmt.Errorf("the CronJob has run at %v, %w", all, err)
		}
		return nil
	})
}

// A CronJob without a Gate shows when the others would have run.
func TestHeldCronJobRunsMissedJobAfterRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	prompt, late := w.cronJob("prompt", ""), w.cronJob("late", fmt.Sprintf("startingDeadlineSeconds: %d", startingDeadline/time.Second))
	g := w.ClosedGate("production", v1alpha1.TargetReference{Kind: "CronJob", Name: "prompt"}, v1alpha1.TargetReference{Kind: "CronJob", Name: "late"})
	w.Create(prompt)
	w.Create(late)
	w.field(prompt, "suspend", true)
	w.field(late, "suspend", true)
	control := w.cronJob("control", "")
	w.Create(control)
	missed := w.ran(control, time.Now().Truncate(time.Minute).Add(time.Minute))
	w.neverRan(prompt)
	w.neverRan(late)

	w.Must(harness.Eventually(w.Context(), time.Minute, "the starting deadline has passed", func() error {
		if wait := time.Until(missed.Add(startingDeadline + time.Second)); wait > 0 {
			return fmt.Errorf("it passes in %s", wait)
		}
		return nil
	}))
	opened := time.Now()
	w.open(g)
	w.field(prompt, "suspend", false)
	w.field(late, "suspend", false)
	if at := w.ran(prompt, missed); !at.Before(opened) {
		t.Errorf("the CronJob runs for %s, want the missed run before %s", at, opened)
	}
	if next := opened.Truncate(time.Minute).Add(time.Minute); w.ran(late, next).Before(next) {
		t.Error("the CronJob runs too early")
	}
	all, err := w.runs(late)
	w.Must(err)
	for _, at := range all {
		if at.Before(opened) {
			t.Errorf("the CronJob runs for %s although its starting deadline has passed", at)
		}
	}
}

// The status of a CronJob has no conditions. It is left to the CronJob controller, and not written repeatedly.
func TestCronJobStatusIsNotWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := w.cronJob("backup", "suspend: false")
	w.Create(job)
	g := w.ClosedGate("production", v1alpha1.TargetReference{APIVersion: "batch/v1", Kind: "CronJob", Name: v1alpha1.AnyName})
	w.field(job, "suspend", true)
	w.Eventually("the gate is settled", func() error {
		if w.Read(g); g.Status.Targets == nil || g.Status.Targets.Held != 1 || g.Status.Targets.Pending != 0 || len(g.Status.TargetFailures()) > 0 {
			return fmt.Errorf("%+v", g.Status.Targets)
		}
		return nil
	})
	version := job.GetResourceVersion()
	w.Decided(g)
	w.Read(job)
	if _, has, _ := unstructured.NestedFieldNoCopy(job.Object, "status", "conditions"); has || job.GetResourceVersion() != version {
		t.Errorf("the status was written: %v", job.Object["status"])
	}
	w.Eventually("an event reports the hold", func() error {
		out, err := w.Kubectl(w.Context(), "get", "events", "-n", w.Namespace, "--field-selector=involvedObject.kind=CronJob", "-o=jsonpath={.items[*].message}")
		if err == nil && out == "" {
			err = errors.New("there is no such event")
		}
		return err
	})
}

func TestCronJobSuspendedByUserStaysSuspended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := w.cronJob("backup", "suspend: true")
	w.Create(job)
	g := w.ClosedGate("production", v1alpha1.TargetReference{Kind: "CronJob", Name: "backup"})
	w.Eventually("the gate reports it as suspended by others", func() error {
		if w.Read(g); g.Status.Targets == nil || g.Status.Targets.SuspendedByOthers != 1 {
			return fmt.Errorf("%+v", g.Status.Targets)
		}
		return nil
	})
	w.open(g)
	w.Opened("production", metav1.ConditionTrue)
	w.Decided(g)
	if w.Read(job); !harness.Suspended(job) || harness.HeldBy(job) != "" {
		t.Errorf("%v", job.Object["spec"])
	}
}

// kubectl gate kinds generates the policies.
func TestLockHoldsCronJobsFromCreation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "CronJob", Name: "backup"}, v1alpha1.TargetReference{Kind: "Deployment", Name: "web"})
	web := w.object("apps/v1", "Deployment", "web", `
selector: {matchLabels: {app: web}}
template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
`)
	for field, obj := range map[string]*unstructured.Unstructured{"suspend": w.cronJob("backup", ""), "paused": web} {
		held := func(obj *unstructured.Unstructured) error {
			if got, _, _ := unstructured.NestedBool(obj.Object, "spec", field); !got || harness.HeldBy(obj) != w.Namespace+"/production" {
				return fmt.Errorf("%v, held by %q", obj.Object["spec"], harness.HeldBy(obj))
			}
			return nil
		}
		w.Eventually("the lock is in force", func() error {
			probe := obj.DeepCopy()
			w.Must(w.Client.Create(w.Context(), probe, client.DryRunAll))
			return held(probe)
		})
		w.Create(obj)
		w.Must(held(obj))
		for _, patch := range []string{`{"spec":{%q:false}}`, `{"spec":{%q:null}}`} {
			w.Must(w.Client.Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, field))))
			w.Must(held(obj))
		}
		if err := w.Client.Delete(w.Context(), obj.DeepCopy()); err == nil {
			t.Errorf("a held %s was deleted", obj.GetKind())
		}
	}
	w.open(w.ReadGate("production"))
	w.field(web, "paused", false)
}
