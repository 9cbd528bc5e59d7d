package check

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Leftovers finds held objects of kinds that no controller has in its flag --suspend-kinds.
func Leftovers(objects []*unstructured.Unstructured) (findings []Finding) {
	for _, obj := range objects {
		gates := verdict.HeldBy(obj)
		if len(gates) == 0 {
			continue
		}
		kind := obj.GroupVersionKind()
		findings = append(findings, Finding{
			Error, nameOf(obj),
			fmt.Sprintf("it is held by gate '%s', and no controller has its kind in --suspend-kinds any longer: it stays held when the gate opens", strings.Join(gates, "', '")),
			fmt.Sprintf("start the controller with --suspend-kinds=%s/%s again, with =spec.FIELD if it had a field, and open the gate before you remove the kind, see docs/guides/more-kinds.md", kind.Group, kind.Kind),
		})
	}
	return findings
}
