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
	"sigs.k8s.io/yaml"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// definition returns the CustomResourceDefinition of a resource, read from the API server.
func definition(w *harness.World, resource string) *apiextensionsv1.CustomResourceDefinition {
	w.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: resource + ".gating.toolkit.fluxcd.io"}}
	w.Read(crd)
	return crd
}

func TestKindNames(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	for resource, short := range map[string]string{"gates": "gt", "gateexceptions": "gtex", "gatereceivers": "gtrcv", "calendarfeeds": "gtcal"} {
		spec := definition(w, resource).Spec
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

func TestGateDefaults(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"default":      "closed",
		"closePeriods": []any{map[string]any{"name": "a", "start": "08:00", "end": "09:00"}},
	}}}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
	obj.SetName("defaults")
	w.Create(obj)
	g := w.ReadGate("defaults")
	switch {
	case g.Status.ObservedGeneration != -1:
		t.Errorf("observedGeneration %d, want -1", g.Status.ObservedGeneration)
	case g.Spec.Interval.Duration != time.Minute || g.GetInterval() != time.Minute:
		t.Errorf("interval %s, want 1m", g.Spec.Interval.Duration)
	case g.Spec.Mode != v1alpha1.ModeEnforce:
		t.Errorf("mode %q, want Enforce", g.Spec.Mode)
	case g.Spec.ClosePeriods[0].Override != "":
		t.Errorf("override %q: applying the same period without it would cause a conflict", g.Spec.ClosePeriods[0].Override)
	case g.Spec.Window != nil || g.Spec.TimeZone != "" || g.Spec.Suspend:
		t.Errorf("more defaults than expected: %+v", g.Spec)
	}
}

func TestGoEncodedGateIsAccepted(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	g := w.Gate("go", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	g.Labels = map[string]string{"a": "b"}
	w.Must(w.Client.Update(t.Context(), g))
}

// The control plane starts before Go begins to record which files a test reads, so its cache of test results would not detect another
// definition.
func TestCommittedCRDsAreInstalled(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	for _, resource := range []string{"gates", "gateexceptions", "gatereceivers", "calendarfeeds"} {
		file, err := os.ReadFile(filepath.Join(harness.Root(), "config", "crd", "bases", "gating.toolkit.fluxcd.io_"+resource+".yaml"))
		w.Must(err)
		want := &apiextensionsv1.CustomResourceDefinition{}
		w.Must(yaml.Unmarshal(file, want))
		if !reflect.DeepEqual(definition(w, resource).Spec.Versions[0].Schema, want.Spec.Versions[0].Schema) {
			t.Errorf("the schema of %s on the API server differs from the file in the repository", resource)
		}
	}
}
