package api_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// definition returns the definition of a resource as the API server has it.
func definition(t *testing.T, resource string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: resource + ".gating.toolkit.fluxcd.io"}, obj); err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func TestNamesOfKinds(t *testing.T) {
	for resource, short := range map[string]string{"gates": "gt", "gateexceptions": "gtex", "gatereceivers": "gtrcv"} {
		spec := definition(t, resource).Spec
		if !slices.Equal(spec.Names.ShortNames, []string{short}) {
			t.Errorf("%s: short names %q", resource, spec.Names.ShortNames)
		}
		if !slices.Equal(spec.Names.Categories, []string{"all", "fluxcd", "fluxcd-gates"}) {
			t.Errorf("%s: categories %q", resource, spec.Names.Categories)
		}
		if spec.Scope != apiextensionsv1.NamespaceScoped {
			t.Errorf("%s: scope %s", resource, spec.Scope)
		}
	}
}

func TestDefaultsOfGates(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"default":      "closed",
		"closePeriods": []any{map[string]any{"name": "a", "start": "08:00", "end": "09:00"}},
	}}}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
	obj.SetNamespace(metav1.NamespaceDefault)
	obj.SetGenerateName("defaults-")
	must(t, cluster.Client.Create(t.Context(), obj))
	g := &v1alpha1.Gate{}
	must(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), g))
	switch {
	case g.Status.ObservedGeneration != -1:
		t.Errorf("observedGeneration %d, want -1", g.Status.ObservedGeneration)
	case g.Spec.Interval.Duration != time.Minute || g.GetInterval() != time.Minute:
		t.Errorf("interval %s, want 1m", g.Spec.Interval.Duration)
	case g.Spec.ResumePolicy != v1alpha1.ResumePolicyEnforce:
		t.Errorf("resumePolicy %q, want Enforce", g.Spec.ResumePolicy)
	case g.Spec.ClosePeriods[0].ManualOpen != "":
		t.Errorf("manualOpen %q: whoever applies the same period without it would be in conflict", g.Spec.ClosePeriods[0].ManualOpen)
	case g.Spec.Window != nil || g.Spec.TimeZone != "" || g.Spec.Suspend:
		t.Errorf("more defaults than expected: %+v", g.Spec)
	}
}

func TestAGateFromGoIsAccepted(t *testing.T) {
	g := &v1alpha1.Gate{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "go-", Namespace: metav1.NamespaceDefault},
		Spec:       v1alpha1.GateSpec{Default: v1alpha1.StateOpened},
	}
	must(t, cluster.Client.Create(t.Context(), g))
	g.Labels = map[string]string{"a": "b"}
	must(t, cluster.Client.Update(t.Context(), g))
}

// The control plane starts before Go begins to note what files a test reads,
// so that its cache of results would not notice another definition.
func TestTheDefinitionInTheRepositoryIsTheOneOnTrial(t *testing.T) {
	for _, resource := range []string{"gates", "gateexceptions", "gatereceivers"} {
		file, err := os.ReadFile(filepath.Join(harness.Root(), "config", "crd", "bases", "gating.toolkit.fluxcd.io_"+resource+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		want := &apiextensionsv1.CustomResourceDefinition{}
		must(t, yaml.Unmarshal(file, want))
		if !reflect.DeepEqual(definition(t, resource).Spec.Versions[0].Schema, want.Spec.Versions[0].Schema) {
			t.Errorf("the API server has another schema of %s", resource)
		}
	}
}
