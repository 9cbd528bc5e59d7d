package target_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/internal/target"
)

func TestSchemaDeterminesWhetherFieldHolds(t *testing.T) {
	kinds, err := target.ParseKinds([]string{"example.org/Widget"})
	if err != nil {
		t.Fatal(err)
	}
	widget := kinds[0]
	const another = ": name the field that suspends it, as in --suspend-kinds=example.org/Widget=spec.paused"
	for name, tc := range map[string]struct{ spec, root, want string }{
		"a boolean":                    {`"properties":{"suspend":{"type":"boolean"}}`, "", ""},
		"false by default":             {`"required":["suspend"],"properties":{"suspend":{"type":"boolean","default":false}}`, "", ""},
		"a boolean beside open fields": {`"x-kubernetes-preserve-unknown-fields":true,"properties":{"suspend":{"type":"boolean"}}`, "", ""},
		"no such field":                {`"properties":{"paused":{"type":"boolean"}}`, "", "kind Widget of example.org has no boolean field spec.suspend" + another},
		"no fields":                    {``, "", "kind Widget of example.org has no boolean field spec.suspend" + another},
		"a string":                     {`"properties":{"suspend":{"type":"string"}}`, "", "spec.suspend of kind Widget of example.org has type string, but must be a boolean field" + another},
		"of no type": {`"properties":{"suspend":{"x-kubernetes-preserve-unknown-fields":true}}`, "",
			"spec.suspend of kind Widget of example.org has type any, but must be a boolean field" + another},
		"open fields": {`"x-kubernetes-preserve-unknown-fields":true`, "",
			"the schema of kind Widget of example.org does not declare spec.suspend: gates need a declared boolean field"},
		"true by default": {`"properties":{"suspend":{"type":"boolean","default":true}}`, "",
			"spec.suspend of kind Widget of example.org is true by default: released objects would stay suspended"},
		"required": {`"required":["suspend"],"properties":{"suspend":{"type":"boolean"}}`, "",
			"spec.suspend of kind Widget of example.org is required and has no default: gates release by removing the field"},
		"a field beside conditions of all": {`"allOf":[{"required":["suspend"]}],"properties":{"suspend":{"type":"boolean","default":false,"allOf":[{"enum":[true,false]}]}}`, "", ""},
		"an open root": {"", `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`,
			"the schema of kind Widget of example.org does not declare spec.suspend: gates need a declared boolean field"},
		"no spec": {"", `{"type":"object"}`, "kind Widget of example.org has no boolean field spec.suspend" + another},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.root == "" {
				comma := ","
				if tc.spec == "" {
					comma = ""
				}
				tc.root = fmt.Sprintf(`{"type":"object","properties":{"spec":{"type":"object"%s%s}}}`, comma, tc.spec)
			}
			s, err := target.ReadSchema([]byte(tc.root))
			if err != nil {
				t.Fatal(err)
			}
			if got := widget.Fault(s, true); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			if got := widget.Fault(s, false); got != "kind Widget of example.org is not namespaced: gates hold only namespaced objects" {
				t.Errorf("of a cluster it says %q", got)
			}
		})
	}
}

func TestConditionNeedsSchemaThatKeepsIt(t *testing.T) {
	const fields = `"type":{"type":"string"},"status":{"type":"string","enum":["True","False","Unknown"]},"message":{"type":"string"},"lastTransitionTime":{"type":"string"}`
	for name, tc := range map[string]struct {
		conditions string
		want       bool
	}{
		"conditions of Kubernetes":     {`{"type":"array","items":{"type":"object","required":["type","status"],"properties":{` + fields + `,"reason":{"type":"string"},"observedGeneration":{"type":"integer"}}}}`, true},
		"without a generation":         {`{"type":"array","items":{"type":"object","properties":{` + fields + `,"reason":{"type":"string"}}}}`, true},
		"open conditions":              {`{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`, true},
		"without a reason":             {`{"type":"array","items":{"type":"object","properties":{` + fields + `}}}`, false},
		"a reason of few":              {`{"type":"array","items":{"type":"object","properties":{` + fields + `,"reason":{"type":"string","enum":["Done"]}}}}`, false},
		"another field that is needed": {`{"type":"array","items":{"type":"object","required":["severity"],"properties":{` + fields + `,"reason":{"type":"string"},"severity":{"type":"string"}}}}`, false},
		"a list of strings":            {`{"type":"array","items":{"type":"string"}}`, false},
		"a map":                        {`{"type":"object"}`, false},
		"no conditions":                {`{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := target.ReadSchema([]byte(`{"properties":{"status":{"type":"object","properties":{"conditions":` + tc.conditions + `}}}}`))
			if err != nil || s.AcceptsConditions() != tc.want {
				t.Errorf("got %t, %v", s.AcceptsConditions(), err)
			}
		})
	}
	if s, err := target.ReadSchema([]byte(`{"type":"object"}`)); err != nil || s.AcceptsConditions() {
		t.Error("a kind without a status has conditions")
	}
}

func TestSchemaIsFoundInOpenAPIDocument(t *testing.T) {
	document := []byte(`{"components":{"schemas":{
"io.k8s.api.batch.v1.CronJob":{"type":"object","x-kubernetes-group-version-kind":[{"group":"batch","kind":"CronJob","version":"v1"}],
 "properties":{"spec":{"default":{},"allOf":[{"$ref":"#/components/schemas/io.k8s.api.batch.v1.CronJobSpec"}]}}},
"io.k8s.api.batch.v1.CronJobSpec":{"type":"object","properties":{"suspend":{"type":"boolean"},"schedule":{"type":"string"}}}}}}`)
	if _, err := target.FindSchema(document, schema.GroupVersionKind{Group: "batch", Version: "v2", Kind: "CronJob"}); err == nil {
		t.Error("a schema of another version is taken for one")
	}
	kinds, err := target.ParseKinds([]string{"batch/CronJob"})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[target.Kind]string{
		kinds[0]: "",
		{GroupKind: kinds[0].GroupKind, Field: "spec.schedule"}: "spec.schedule of kind CronJob of batch has type string, but must be a boolean field: name the field that suspends it, as in --suspend-kinds=batch/CronJob=spec.paused",
	} {
		s, err := target.FindSchema(document, schema.GroupVersionKind{Group: kind.Group, Version: "v1", Kind: kind.Kind})
		if got := kind.Fault(s, true); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", kind, got, err, want)
		}
	}
	if _, err := target.FindSchema([]byte("<html>"), schema.GroupVersionKind{}); err == nil {
		t.Error("what is not a document is taken for one")
	}
}
