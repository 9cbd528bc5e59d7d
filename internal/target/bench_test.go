package target_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/target"
)

// typical returns a held Kustomization as the API server sends it, with twenty objects in its inventory.
func typical(tb testing.TB) []byte {
	tb.Helper()
	var inventory []string
	for i := range 20 {
		inventory = append(inventory, fmt.Sprintf(`{"id":"shop_app-%02d_apps_Deployment","v":"v1"}`, i))
	}
	return []byte(`{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"apps","namespace":"shop","uid":"1","resourceVersion":"7",
"annotations":{"gating.toolkit.fluxcd.io/heldBy":"flux-system/production"},"labels":{"kustomize.toolkit.fluxcd.io/name":"flux-system"},
"managedFields":[
{"manager":"gating-controller","operation":"Apply","apiVersion":"kustomize.toolkit.fluxcd.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{"f:gating.toolkit.fluxcd.io/heldBy":{}}},"f:spec":{"f:suspend":{}}}},
{"manager":"kustomize-controller","operation":"Apply","apiVersion":"kustomize.toolkit.fluxcd.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:kustomize.toolkit.fluxcd.io/name":{},"f:kustomize.toolkit.fluxcd.io/namespace":{}}},"f:spec":{"f:dependsOn":{},"f:healthChecks":{},"f:interval":{},"f:path":{},"f:postBuild":{"f:substitute":{"f:cluster":{}},"f:substituteFrom":{}},"f:prune":{},"f:retryInterval":{},"f:sourceRef":{},"f:targetNamespace":{},"f:timeout":{}}}},
{"manager":"gotk-kustomize-controller","operation":"Update","apiVersion":"kustomize.toolkit.fluxcd.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{},"f:inventory":{"f:entries":{}},"f:lastAppliedRevision":{},"f:lastAttemptedRevision":{},"f:observedGeneration":{}}},"subresource":"status"},
{"manager":"gating-controller","operation":"Update","apiVersion":"kustomize.toolkit.fluxcd.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{}}},"subresource":"status"}]},
"spec":{"interval":"10m0s","path":"./apps","prune":true,"suspend":true,"sourceRef":{"kind":"GitRepository","name":"flux-system"}},
"status":{"lastAppliedRevision":"main@sha1:1f0a","inventory":{"entries":[` + strings.Join(inventory, ",") + `]},"conditions":[
{"type":"Ready","status":"True","reason":"ReconciliationSucceeded","message":"Applied revision: main@sha1:1f0a","lastTransitionTime":"2026-11-23T12:00:00Z"},
{"type":"Approved","status":"False","reason":"GateClosed","message":"Held by gate 'flux-system/production': closed by default.","lastTransitionTime":"2026-11-23T12:00:00Z"}]}}`)
}

// BenchmarkTrim measures the work of the controller for each object that the API server sends, compared with decoding the object.
func BenchmarkTrim(b *testing.B) {
	raw := typical(b)
	decode := func(b *testing.B) *unstructured.Unstructured {
		b.Helper()
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw); err != nil {
			b.Fatal(err)
		}
		return obj
	}
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			decode(b)
		}
	})
	b.Run("decode-and-trim", func(b *testing.B) {
		for b.Loop() {
			target.Trim(decode(b), identity)
		}
	})
	trimmed := decode(b)
	target.Trim(trimmed, identity)
	b.Run("observe", func(b *testing.B) {
		for b.Loop() {
			if target.Of(trimmed).Observe(&target.Object{Unstructured: *trimmed}, identity) != target.Held {
				b.Fatal("it is not held")
			}
		}
	})
	b.Run("size", func(b *testing.B) {
		for b.Loop() {
		}
		kept, err := json.Marshal(trimmed.Object)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(kept)), "bytes-kept")
		b.ReportMetric(float64(len(raw)), "bytes-sent")
	})
}
