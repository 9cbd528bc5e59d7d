// Package crds evaluates CustomResourceDefinitions.
package crds

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ServedVersion returns the version to watch. It is the previous version if that is still served, otherwise the storage version,
// otherwise any served version. It is empty if the definition is not established or serves no version.
func ServedVersion(definition *apiextensionsv1.CustomResourceDefinition, previous string) string {
	if !slices.ContainsFunc(definition.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}) {
		return ""
	}
	version := ""
	for _, v := range definition.Spec.Versions {
		switch {
		case v.Served && v.Name == previous:
			return previous
		case v.Served && (v.Storage || version == ""):
			version = v.Name
		}
	}
	return version
}
