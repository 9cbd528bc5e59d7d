package policies

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestRequestsWithTargetsAreBounded(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice := w.as("alice", opener)
	request := func(annotation, suffix string) string {
		return "annotate --overwrite gate production " + annotation + "=" + now() + suffix
	}
	for i := range v1alpha1.MaxLimitedRequests {
		w.allowed(alice, request(openAt, fmt.Sprintf("/1h,only=Kustomization/app-%d", i)))
		w.decided(g, metav1.ConditionFalse)
	}
	w.is("requests", len(g.Status.Requests), v1alpha1.MaxLimitedRequests)
	full := "user alice must wait or withdraw a request: gate " + w.Namespace + "/production has 12 requests with targets, which is the maximum"
	w.refused(alice, full, request(openAt, "/1h,only=Kustomization/more"))
	w.refused(alice, full, request(openAt, "/1h,only=Kustomization/0,only=Kustomization/more"))
	w.refused(alice, full, request(closeAt, ",only=Kustomization/more"))
	w.allowed(alice, request(closeAt, "/0h0m,only=Kustomization/app-0"))
	w.decided(g, metav1.ConditionFalse)
	w.allowed(alice, request(openAt, "/1h,only=Kustomization/more"))
	w.decided(g, metav1.ConditionFalse)
	w.allowed(alice, request(openAt, "/1h"))
	w.decided(g, metav1.ConditionTrue)
}

// A line must keep the longest valid value, or a close of many targets would be lost.
func TestReplacedCloseKeepsItsTargets(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, bob := w.as("alice", opener), w.as("bob", opener)
	start := w.stopController()
	value := now() + "/1h"
	for i := range v1alpha1.MaxRequestTargets {
		value += fmt.Sprintf(",only=Kustomization/%d-%s", i, strings.Repeat("n", 100))
	}
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+value)
	w.allowed(bob, "annotate", "--overwrite", "gate", "production", closeAt+"="+now()+"/2h,only=Kustomization/app")
	w.is("lines", w.unhandled(g), []string{"close annotation alice "})
	start()
	w.decided(g, metav1.ConditionFalse)
	targets := map[string]int{}
	for _, r := range g.Status.Requests {
		targets[r.RequestedBy] = len(r.Targets)
	}
	w.is("targets", targets, map[string]int{"alice": v1alpha1.MaxRequestTargets, "bob": 1})
}
