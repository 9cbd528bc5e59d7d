package check_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// finds fails the test unless the findings begin with want, each as "severity object: message".
func finds(t *testing.T, got []check.Finding, want ...string) {
	t.Helper()
	var texts []string
	for _, f := range got {
		texts = append(texts, string(f.Severity)+" "+f.Object+": "+f.Message)
	}
	if !slices.EqualFunc(texts, want, strings.HasPrefix) {
		t.Errorf("got  %q\nwant %q", texts, want)
	}
}

// object returns the object in a manifest.
func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

// gate returns a Gate that is closed by default and governs Kustomizations by name.
func gate(name string, targets ...string) v1alpha1.Gate {
	g := v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name}, Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}}
	for _, target := range targets {
		g.Spec.Targets = append(g.Spec.Targets, v1alpha1.TargetReference{Kind: "Kustomization", Name: target})
	}
	return g
}

// daily adds a daily open period to a Gate.
func daily(g v1alpha1.Gate, start, end string) v1alpha1.Gate {
	g.Spec.OpenPeriods = []v1alpha1.Period{{Name: "daily", Start: &start, End: &end}}
	return g
}

func kustomization(t *testing.T, name, more string) *unstructured.Unstructured {
	t.Helper()
	return object(t, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {namespace: flux-system, name: "+name+more)
}
