package crds

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestWatchedVersionIsServed(t *testing.T) {
	const served, stored = true, true
	version := func(name string, served, stored bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: served, Storage: stored}
	}
	for name, tc := range map[string]struct {
		established apiextensionsv1.ConditionStatus
		versions    []apiextensionsv1.CustomResourceDefinitionVersion
		before      string
		want        string
	}{
		"that of storage": {"True", []apiextensionsv1.CustomResourceDefinitionVersion{
			version("v1", served, false), version("v2", served, stored), version("v3", served, false)}, "", "v2"},
		"the one before, although storage has moved on": {"True", []apiextensionsv1.CustomResourceDefinitionVersion{
			version("v1", served, false), version("v2", served, stored)}, "v1", "v1"},
		"another if the one before is gone": {"True", []apiextensionsv1.CustomResourceDefinitionVersion{
			version("v1", false, false), version("v2", served, stored)}, "v1", "v2"},
		"any if that of storage is not served": {"True", []apiextensionsv1.CustomResourceDefinitionVersion{
			version("v1", served, false), version("v2", false, stored)}, "", "v1"},
		"none if none is served":        {"True", []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false, stored)}, "", ""},
		"none before it is established": {"False", []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", served, stored)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Spec.Versions = tc.versions
			crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: tc.established}}
			if got := ServedVersion(crd, tc.before); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
