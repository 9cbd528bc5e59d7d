package verdict_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

const requestedAtNoon = "2026-11-24T12:00:00Z"

// filled adds an annotation, so that all annotations have the size that the API server allows.
func filled(obj *target.Object) {
	size := len("filler")
	for name, value := range obj.GetAnnotations() {
		size += len(name) + len(value)
	}
	annotated("filler", strings.Repeat("x", 256<<10-size))(obj)
}

// TestPassWithoutSpaceForRecordCountsOnce checks a user with permission to patch, who fills the annotations while a pass is in progress,
// and removes the filler after it.
func TestPassWithoutSpaceForRecordCountsOnce(t *testing.T) {
	held := heldBy("shop/a", suspension)
	granted := rule(kustomization("apps", requesting(requestedAtNoon, "shop/a"), held), governing(closed("a")), handles, noon).Step
	token := granted.Pass.Since.Format(time.RFC3339Nano)
	passes := kustomization("apps", requesting(requestedAtNoon, "shop/a"), passing(granted.Pass), annotated(fluxmeta.ReconcileRequestAnnotation, token),
		heldBy("shop/a", map[string]any{"suspend": false}), reports(token, "v2", "True", 8), filled)
	later := noon.Add(time.Minute)
	end := rule(passes, governing(closed("a")), handles, later).Step
	if granted.Outcome != verdict.Passing || !end.Hold || !end.Write || end.Pass.State != verdict.PassEnded || end.Ends.Outcome != verdict.PassSucceeded {
		t.Fatalf("%+v; %+v", granted, end)
	}
	again := rule(kustomization("apps", requesting(requestedAtNoon, "shop/a"), passing(end.Pass), held), governing(closed("a")), handles, later).Step
	if again.Outcome == verdict.Passing || again.Write {
		t.Errorf("%+v", again)
	}
}

// ownedBy has another manager own the record of passes alone.
func ownedBy(manager string) edit {
	return func(obj *target.Object) {
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{
			{
				Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + v1alpha1.HeldByAnnotation + `":{}}},"f:spec":{"f:suspend":{}}}`),
			},
			{
				Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + v1alpha1.PassAnnotation + `":{}}}}`),
			},
		})
		target.Trim(&obj.Unstructured, verdict.Us)
	}
}

// TestRecordOfAnotherManagerOnlyBlocks has another manager own the record of a pass that has ended, and of one that is in progress.
func TestRecordOfAnotherManagerOnlyBlocks(t *testing.T) {
	pass := before
	pass.Value, pass.Gates, pass.Since, pass.Until = requestedAtNoon, "shop/a", noon, noon.Add(time.Hour)
	ended := pass
	ended.State, ended.Ended, ended.Outcome = verdict.PassEnded, noon, verdict.PassSucceeded
	now := noon.Add(time.Minute)
	for name, tc := range map[string]struct {
		value string
		edits []edit
		want  verdict.Outcome
	}{
		"it has ended":                {requestedAtNoon, []edit{passing(ended), heldBy("shop/a", suspension)}, verdict.Held},
		"it has ended, a new request": {"2026-11-24T12:00:30Z", []edit{passing(ended), heldBy("shop/a", suspension)}, verdict.Passing},
		"it is in progress":           {requestedAtNoon, []edit{passing(pass), heldBy("shop/a", map[string]any{"suspend": false})}, verdict.Held},
	} {
		obj := kustomization("apps", append(tc.edits, requesting(tc.value, "shop/a"), annotated(fluxmeta.ReconcileRequestAnnotation, noon.Format(time.RFC3339Nano)), ownedBy("evil"))...)
		if step := rule(obj, governing(closed("a", since(-time.Hour))), handles, now).Step; step.Outcome != tc.want {
			t.Errorf("%s: %+v", name, step)
		}
	}
}

// TestPassIsNotGrantedOnceDue requests a pass at noon for a time five hours later. The Gate closes in between.
func TestPassIsNotGrantedOnceDue(t *testing.T) {
	const value = "2026-11-24T17:00:00Z"
	obj := kustomization("apps", requesting(value, "shop/a"), heldBy("shop/a", suspension))
	refused := rule(obj, governing(closed("a")), handles, noon).Step
	if refused.Pass.State != verdict.PassRefused || !refused.Write {
		t.Fatalf("%+v", refused)
	}
	at := noon.Add(5 * time.Hour)
	gates := []verdict.Gate{verdict.Governing("shop/a", closed("a", func(g *v1alpha1.Gate) { closedBy(g, noon.Add(4*time.Hour)) }, since(4*time.Hour)), at)}
	obj = kustomization("apps", requesting(value, "shop/a"), passing(refused.Pass), heldBy("shop/a", suspension))
	if step := rule(obj, gates, handles, at).Step; step.Outcome == verdict.Passing {
		t.Errorf("%+v", step)
	}
	obj = kustomization("apps", requesting("2026-11-24T16:30:00Z", "shop/a"), passing(refused.Pass), heldBy("shop/a", suspension))
	if step := rule(obj, gates, handles, at.Add(-30*time.Minute)).Step; step.Outcome != verdict.Passing {
		t.Errorf("a later request whose time is earlier: %+v", step)
	}
}

func TestOldPassIsNotGranted(t *testing.T) {
	for ago, want := range map[time.Duration]verdict.Outcome{59 * time.Minute: verdict.Passing, 61 * time.Minute: verdict.Held} {
		obj := kustomization("apps", requesting(noon.Add(-ago).Format(time.RFC3339), "shop/a"), heldBy("shop/a", suspension))
		if step := rule(obj, governing(closed("a", func(g *v1alpha1.Gate) { closedBy(g, noon.Add(-2*time.Hour)) }, since(-2*time.Hour))), handles, noon).Step; step.Outcome != want || step.Refused != "" {
			t.Errorf("%s ago: %+v", ago, step)
		}
	}
}

// TestSecondRevisionOfSourceEndsPass has Flux report new artifacts, and never the request.
func TestSecondRevisionOfSourceEndsPass(t *testing.T) {
	pass := before
	pass.Value, pass.Gates, pass.Until = requestedAtNoon, "shop/a", pass.Since.Add(time.Hour)
	pass.Was = target.Progress{"old", "main@sha1:" + strings.Repeat("a", 40), "8"}
	pass.Is = pass.Was
	for i, revision := range []string{"a", "b", "c"} {
		obj := newObject("source.toolkit.fluxcd.io/v1", "GitRepository", "apps", map[string]any{}, passing(pass), heldBy("shop/a", map[string]any{"suspend": false}),
			annotated(fluxmeta.ReconcileRequestAnnotation, pass.Since.Format(time.RFC3339Nano)), func(obj *target.Object) {
				obj.Object["status"] = map[string]any{"lastHandledReconcileAt": "old", "observedGeneration": int64(8), "artifact": map[string]any{"revision": "main@sha1:" + strings.Repeat(revision, 40)}}
				obj.SetConditions([]metav1.Condition{{Type: "Ready", Status: "True", Reason: "Succeeded"}})
			})
		step := rule(obj, governing(closed("a")), handles, noon.Add(time.Minute)).Step
		if pass = step.Pass; step.Hold != (i == 2) {
			t.Errorf("revision %s: %+v", revision, step)
		}
	}
}
