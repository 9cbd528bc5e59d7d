package controllers_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

const day = 24 * time.Hour

// expiry and margin are those of the certificates in these tests. A certificate is released a day before it expires.
var (
	expiry = start.Add(60 * day)
	margin = start.Add(59 * day)
)

var certificates = v1alpha1.TargetReference{Kind: "Certificate", Name: v1alpha1.AnyName}

// certificate creates a Certificate that was issued a month ago for ninety days.
func (w *world) certificate(name string, spec map[string]any) *target.Object {
	w.Helper()
	obj := &target.Object{}
	obj.SetGroupVersionKind(target.Certificate.WithVersion("v1"))
	obj.SetNamespace(w.Namespace)
	obj.SetName(name)
	all := map[string]any{"secretName": name, "dnsNames": []any{"example.com"}, "issuerRef": map[string]any{"name": "ca"}}
	maps.Copy(all, spec)
	obj.Object["spec"] = all
	w.Must(cluster.Client.Create(w.Context(), &obj.Unstructured, client.FieldOwner("kustomize-controller")))
	w.issue(obj, start.Add(-30*day), expiry)
	return w.Reload(obj)
}

// issue sets the status of a Certificate as cert-manager does after issuing it.
func (w *world) issue(obj *target.Object, notBefore, notAfter time.Time) {
	w.Helper()
	w.report(obj, func(status map[string]any) {
		status["notBefore"], status["notAfter"] = notBefore.Format(time.RFC3339), notAfter.Format(time.RFC3339)
	}, "Ready")
}

// report updates the status of a Certificate as cert-manager does. The given conditions are True, and it removes the others of
// cert-manager.
func (w *world) report(obj *target.Object, change func(status map[string]any), conditions ...string) {
	w.Helper()
	w.Reload(obj)
	status, _, _ := unstructured.NestedMap(obj.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	if change != nil {
		change(status)
	}
	list := slices.DeleteFunc(obj.GetConditions(), func(c metav1.Condition) bool { return c.Type == "Ready" || c.Type == "Issuing" })
	for _, name := range conditions {
		list = append(list, metav1.Condition{Type: name, Status: "True", Reason: name, LastTransitionTime: metav1.NewTime(start), ObservedGeneration: obj.GetGeneration() - 1})
	}
	obj.Object["status"] = status
	obj.SetConditions(list)
	w.Must(cluster.Client.Status().Update(w.Context(), &obj.Unstructured, client.FieldOwner("cert-manager-certificates-issuing")))
}

// expectRenewal checks how the renewal of a Certificate is held, "until" a time, "never" or "", and our conditions as "Type=Status Reason".
func (w *world) expectRenewal(obj *target.Object, held string, heldBy string, conditions ...string) {
	w.Helper()
	w.Reload(obj)
	policy, _, _ := unstructured.NestedString(obj.Object, "spec", "renewal", "policy")
	windows, _, _ := unstructured.NestedSlice(obj.Object, "spec", "renewal", "windows")
	before, _, _ := unstructured.NestedString(obj.Object, "spec", "renewBefore")
	got := map[string]string{"": "", "Disabled": "never"}[policy]
	if len(windows) > 0 {
		got = windows[0].(map[string]any)["cron"].(string) //nolint:forcetypeassert // by the schema
	}
	if got += before; got != held {
		w.Errorf("the renewal is held %q, want %q", got, held)
	}
	if got := obj.GetAnnotations()[v1alpha1.HeldByAnnotation]; got != heldBy {
		w.Errorf("held by %q, want %q", got, heldBy)
	}
	var ours []string
	for _, c := range obj.GetConditions() {
		if slices.Contains(verdict.ConditionTypes, c.Type) {
			ours = append(ours, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
		}
	}
	slices.Sort(ours)
	if !slices.Equal(ours, conditions) {
		w.Errorf("the conditions are\n%q, want\n%q", ours, conditions)
	}
}

// counted returns the value of a counter of renewals.
func (w *world) counted(what, reason string) float64 {
	w.Helper()
	families, err := w.Registry.Gather()
	w.Must(err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "gating_certificate_renewal_"+what+"_total" && metric.GetLabel()[0].GetValue() == reason {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func (w *world) expectMessage(obj *target.Object, condition, want string) {
	w.Helper()
	w.Reload(obj)
	for _, c := range obj.GetConditions() {
		if c.Type == condition {
			if c.Message != want {
				w.Errorf("%s says\n%s, want\n%s", condition, c.Message, want)
			}
			return
		}
	}
	w.Errorf("no condition %s", condition)
}
