package target_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// read returns a trimmed object from a manifest in flow style.
func read(t *testing.T, apiVersion, kind, manifest string) *target.Object {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(manifest), &content); err != nil {
		t.Fatal(err)
	}
	obj := &target.Object{Unstructured: unstructured.Unstructured{Object: integers(content)}}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace("apps")
	target.Trim(&obj.Unstructured, verdict.Us)
	return obj
}

// integers converts floats to integers, because YAML decodes all numbers as floats.
func integers(content map[string]any) map[string]any {
	for name, value := range content {
		switch value := value.(type) {
		case float64:
			content[name] = int64(value)
		case map[string]any:
			integers(value)
		case []any:
			for _, item := range value {
				if fields, ok := item.(map[string]any); ok {
					integers(fields)
				}
			}
		}
	}
	return content
}

func TestReadinessWithCurrentSpec(t *testing.T) {
	const kustomize, certs = "kustomize.toolkit.fluxcd.io/v1", "cert-manager.io/v1"
	for name, tc := range map[string]struct {
		apiVersion, kind, manifest string
		want                       target.Readiness
		says                       string
	}{
		"ready": {kustomize, "Kustomization", "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True', observedGeneration: 2, message: Applied}]}}", target.Ready, "Applied"},
		"ready with the spec before, as after a release": {
			kustomize, "Kustomization", "{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True', observedGeneration: 2}]}}", target.Progressing, ""},
		"ready, but the status is not written yet": {
			kustomize, "Kustomization", "{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True', observedGeneration: 3}]}}", target.Progressing, ""},
		"failed with the spec before": {
			kustomize, "Kustomization", "{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'False', observedGeneration: 2}]}}", target.Progressing, ""},
		"failed": {
			kustomize, "Kustomization", "{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'False', reason: BuildFailed, observedGeneration: 3, message: no path}]}}", target.Failed, "no path"},
		"failed and tried again": {
			kustomize, "Kustomization", "{metadata: {generation: 3}, status: {conditions: [{type: Ready, status: 'False', reason: BuildFailed, observedGeneration: 3, message: no path}, {type: Reconciling, status: 'True', observedGeneration: 3}]}}", target.Failed, "no path"},
		"stalled": {
			kustomize, "Kustomization", "{metadata: {generation: 3}, status: {observedGeneration: 3, conditions: [{type: Stalled, status: 'True', observedGeneration: 3, message: bad}, {type: Ready, status: 'True', observedGeneration: 3}]}}", target.Failed, "bad"},
		"waits for what it depends on": {
			kustomize, "Kustomization", "{metadata: {generation: 3}, status: {conditions: [{type: Ready, status: 'False', reason: DependencyNotReady, observedGeneration: 3, message: b is not ready}]}}", target.Progressing, "b is not ready"},
		"the health checks of a revision give way to the next one": {
			kustomize, "Kustomization", "{metadata: {generation: 3}, status: {observedGeneration: 3, conditions: [{type: Ready, status: 'False', reason: HealthCheckCanceled, observedGeneration: 3}]}}", target.Rechecking, ""},
		"at its interval": {
			kustomize, "Kustomization", "{metadata: {generation: 3}, status: {observedGeneration: 3, conditions: [{type: Ready, status: Unknown, observedGeneration: 3}, {type: Reconciling, status: 'True', observedGeneration: 3}]}}", target.Rechecking, ""},
		"for the first time": {
			kustomize, "Kustomization", "{metadata: {generation: 1}, status: {observedGeneration: -1, conditions: [{type: Ready, status: Unknown, observedGeneration: 1}]}}", target.Progressing, ""},
		"nobody has looked at it":                       {kustomize, "Kustomization", "{metadata: {generation: 1}}", target.Progressing, ""},
		"a certificate that is ready":                   {certs, "Certificate", "{metadata: {generation: 4}, status: {conditions: [{type: Ready, status: 'True', observedGeneration: 4}]}}", target.Ready, ""},
		"a certificate that was ready":                  {certs, "Certificate", "{metadata: {generation: 5}, status: {conditions: [{type: Ready, status: 'True', observedGeneration: 4}]}}", target.Progressing, ""},
		"a kind that says nothing":                      {"batch/v1", "CronJob", "{metadata: {generation: 7}, status: {}}", target.Ready, ""},
		"a kind that says it without a generation":      {"argoproj.io/v1alpha1", "Rollout", "{metadata: {generation: 7}, status: {conditions: [{type: Ready, status: 'False', message: bad}]}}", target.Failed, "bad"},
		"a kind that says it and has seen another spec": {"argoproj.io/v1alpha1", "Rollout", "{metadata: {generation: 7}, status: {observedGeneration: 6, conditions: [{type: Ready, status: 'True'}]}}", target.Progressing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, err := target.ParseKinds([]string{"batch/CronJob", "argoproj.io/Rollout=spec.paused"})
			if err != nil {
				t.Fatal(err)
			}
			target.SetKinds(kinds...)
			t.Cleanup(func() { target.SetKinds() })
			is, says := target.ReadinessOf(read(t, tc.apiVersion, tc.kind, tc.manifest))
			if is != tc.want || says != tc.says {
				t.Errorf("it is %d %q, want %d %q", is, says, tc.want, tc.says)
			}
		})
	}
}

func TestNeedsOfObject(t *testing.T) {
	obj := read(t, "helm.toolkit.fluxcd.io/v2", "HelmRelease", "{spec: {dependsOn: [{name: a}, {name: b, namespace: infra}, {}, 3]}}")
	if got, want := fmt.Sprint(target.Needs(obj)), "[HelmRelease apps/a HelmRelease infra/b]"; got != want {
		t.Errorf("it needs %s, want %s", got, want)
	}
	for _, other := range []*target.Object{
		read(t, "helm.toolkit.fluxcd.io/v2", "HelmRelease", "{spec: {dependsOn: a}}"),
		read(t, "cert-manager.io/v1", "Certificate", "{spec: {dependsOn: [{name: a}]}}"),
	} {
		if got := target.Needs(other); len(got) > 0 {
			t.Errorf("%s needs %v", other.GetKind(), got)
		}
	}
}

func TestDependencyIsReadyOnlyWithCurrentSpec(t *testing.T) {
	const kustomize = "kustomize.toolkit.fluxcd.io/v1"
	for name, tc := range map[string]struct {
		apiVersion, kind, manifest string
		was                        bool
		// message is empty if the object is ready.
		message string
	}{
		"ready": {kustomize, "Kustomization", "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}}", false, ""},
		"ready with the previous spec": {
			kustomize, "Kustomization", "{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}}", true, "has not reported on generation 3 yet"},
		"a certificate that was ready with the previous spec": {
			"cert-manager.io/v1", "Certificate", "{metadata: {generation: 3}, status: {conditions: [{type: Ready, status: 'True', observedGeneration: 2}]}}", true, "has not reported on generation 3 yet"},
		"suspended": {
			kustomize, "Kustomization", "{metadata: {generation: 2}, spec: {suspend: true}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}}", true, "is suspended"},
		"suspended by the field of its kind": {
			"argoproj.io/v1alpha1", "Rollout", "{metadata: {generation: 2}, spec: {paused: true}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}}", true, "is suspended"},
		"stalled": {
			kustomize, "Kustomization", "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Stalled, status: 'True', message: bad}, {type: Ready, status: 'True', reason: Succeeded}]}}", true, "is stalled: bad"},
		"being deleted": {
			kustomize, "Kustomization", "{metadata: {generation: 2, deletionTimestamp: '2026-11-23T12:00:00Z'}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}}", true, "is being deleted"},
		"failed": {
			kustomize, "Kustomization", "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'False', reason: BuildFailed, message: no path}]}}", true, "BuildFailed: no path"},
		"failed while its dependency is not ready": {
			kustomize, "Kustomization", "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'False', reason: DependencyNotReady, message: b}]}}", true, "DependencyNotReady: b"},
		"reconciled again, ready before": {
			kustomize, "Kustomization", "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: Unknown, reason: Progressing}, {type: Reconciling, status: 'True'}]}}", true, ""},
		"reconciled again, not ready before": {
			kustomize, "Kustomization", "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: Unknown, reason: Progressing, message: building}]}}", false, "Progressing: building"},
		"unknown for another reason": {
			kustomize, "Kustomization", "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: Unknown, reason: Stuck, message: no answer}]}}", true, "Stuck: no answer"},
		"without a status":    {kustomize, "Kustomization", "{metadata: {generation: 1}}", true, "has no condition Ready"},
		"with another schema": {kustomize, "Kustomization", "{metadata: {generation: 1}, status: {conditions: Ready}}", true, "has no condition Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, err := target.ParseKinds([]string{"argoproj.io/Rollout=spec.paused"})
			if err != nil {
				t.Fatal(err)
			}
			target.SetKinds(kinds...)
			t.Cleanup(func() { target.SetKinds() })
			ready, message := target.IsReady(read(t, tc.apiVersion, tc.kind, tc.manifest), tc.was)
			if ready != (tc.message == "") || message != tc.message {
				t.Errorf("ready is %t: %q, want %q", ready, message, tc.message)
			}
		})
	}
}
