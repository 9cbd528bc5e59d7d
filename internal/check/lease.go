package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const leasePrefix = v1alpha1.FieldManager + "-leader-election"

// Leases finds controllers with leader election that have no leader. leases are the Leases in the namespaces of the controllers.
func Leases(controllers []Controller, leases []unstructured.Unstructured, now time.Time) (findings []Finding) {
	var namespaces []string
	for _, c := range controllers {
		if c.elects && c.Replicas > 0 && !slices.Contains(namespaces, c.Namespace) {
			namespaces = append(namespaces, c.Namespace)
		}
	}
	for _, namespace := range namespaces {
		wanted, held := 0, 0
		for _, c := range controllers {
			if c.elects && c.Replicas > 0 && c.Namespace == namespace {
				wanted++
			}
		}
		object, state := "Lease "+namespace+"/"+leasePrefix, "it does not exist"
		for i := range leases {
			l := &leases[i]
			if l.GetNamespace() != namespace || !strings.HasPrefix(l.GetName(), leasePrefix) {
				continue
			}
			is, ok := stateOf(l, now)
			if ok {
				held++
				continue
			}
			object, state = "Lease "+namespace+"/"+l.GetName(), is
		}
		if held < wanted {
			findings = append(findings, Finding{Error, object, state + ": no controller leads, so Gates are not opened or closed", "kubectl -n " + namespace + " logs -l " + ControllerLabel})
		}
	}
	return findings
}

// stateOf returns whether a lease is held. If it is not held, state is the reason.
func stateOf(l *unstructured.Unstructured, now time.Time) (state string, held bool) {
	holder, _, _ := unstructured.NestedString(l.Object, "spec", "holderIdentity")
	text, _, _ := unstructured.NestedString(l.Object, "spec", "renewTime")
	seconds, _, _ := unstructured.NestedInt64(l.Object, "spec", "leaseDurationSeconds")
	renewed, err := time.Parse(time.RFC3339, text)
	switch {
	case holder == "" || err != nil:
		return "it has no holder", false
	case now.Sub(renewed) > 2*time.Duration(seconds)*time.Second: // clocks may differ
		return fmt.Sprintf("%s renewed it last at %s", holder, renewed.UTC().Format(time.RFC3339)), false
	}
	return "", true
}

// overdue is how late a transition of a Gate may be before its controller counts as not running.
const overdue = time.Minute

// SignOfLife returns whether a controller is running. If there are leases, one of them must be held. Otherwise, there must be Gates that
// are not suspended, and all of these must be up to date, without an overdue transition.
func SignOfLife(gates []v1alpha1.Gate, leases []unstructured.Unstructured, now time.Time) bool {
	elected := false
	for i := range leases {
		if strings.HasPrefix(leases[i].GetName(), leasePrefix) {
			if _, held := stateOf(&leases[i], now); held {
				return true
			}
			elected = true
		}
	}
	decided := 0
	for i := range gates {
		g := &gates[i]
		if g.Spec.Suspend {
			continue
		}
		next := g.Status.NextTransition
		if g.Status.ObservedGeneration != g.Generation || len(g.Status.Conditions) == 0 || next != nil && now.Sub(next.At.Time) > overdue {
			return false
		}
		decided++
	}
	return !elected && decided > 0
}
