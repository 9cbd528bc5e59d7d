package chaos

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/chaos/checker"
)

// Annotations that determine the first issuance of a certificate: its lifetime, and its end.
const lives, expires = "example.com/lives", "example.com/expires"

// age issues a certificate whose margin begins soon, or has just begun.
func (w *walk) age(obj *unstructured.Unstructured, random *rand.Rand) {
	whole := []time.Duration{3 * time.Hour, 6 * time.Hour, 24 * time.Hour, 90 * 24 * time.Hour, 200 * 24 * time.Hour}[random.IntN(5)]
	margin := min(whole/6, []time.Duration{24 * time.Hour, checker.SmallMargin}[random.IntN(2)])
	until := time.Now().UTC().Truncate(time.Second).Add(margin + time.Duration(random.IntN(150)-60)*time.Second)
	if random.IntN(3) == 0 {
		until = time.Now().UTC().Truncate(time.Second).Add(whole - time.Minute)
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[lives], annotations[expires] = whole.String(), until.Format(time.RFC3339)
	obj.SetAnnotations(annotations)
}

// nearMargin issues the certificate of a held target again, so that its margin begins with the next minute.
func (w *walk) nearMargin(random *rand.Rand) {
	w.Helper()
	s := slots[len(slots)-1-random.IntN(certificateSlots)]
	spec, margin := v1alpha1.GateSpec{
		Mode:    v1alpha1.ModeEnforce,
		Targets: []v1alpha1.TargetReference{{Kind: s.kind, Name: s.name, Namespace: w.namespaces[s.namespace]}},
	}, time.Hour
	whole := 6 * margin
	if random.IntN(2) == 0 { // only the controller ends that hold
		whole, margin = 200*24*time.Hour, 24*time.Hour
	}
	if random.IntN(2) == 0 {
		spec.Certificates, margin = &v1alpha1.CertificatePolicy{SafetyMargin: &v1alpha1.Duration{Duration: checker.SmallMargin}}, checker.SmallMargin
	}
	w.closes(random.IntN(gateCount), spec)
	w.remove(w.target(s))
	deadline := time.Now().UTC().Add(70 * time.Second).Truncate(time.Minute)
	w.margin = deadline
	obj := w.target(s)
	obj.Object["spec"] = (&unstructured.Unstructured{Object: specs[s.kind]}).DeepCopy().Object
	obj.SetAnnotations(map[string]string{lives: whole.String(), expires: deadline.Add(margin).Format(time.RFC3339)})
	w.logf("%s: held until %s", s.name, deadline.Format(time.RFC3339))
	w.create(obj, "kustomize-controller")
	w.Must(w.try(w.certManager))
}

// setRenewal acts as a user who sets or removes spec.renewal.
func (w *walk) setRenewal(random *rand.Rand) {
	renewal := any(nil)
	if random.IntN(2) == 0 {
		renewal = map[string]any{"policy": "Disabled"}
	}
	w.patch(w.target(slots[len(slots)-1-random.IntN(certificateSlots)]), types.MergePatchType, map[string]any{"spec": map[string]any{"renewal": renewal}}, "kubectl-edit")
}

// certManager acts as cert-manager: it issues missing certificates, and renews due ones according to spec.renewal.
func (w *walk) certManager() error {
	list, err := w.list(kinds["Certificate"], "Certificate")
	if err != nil {
		return err
	}
	for i := range list.Items {
		obj := &list.Items[i]
		before := obj.GetResourceVersion()
		status, err := issued(obj, time.Now().UTC().Truncate(time.Second))
		if err != nil {
			return err
		}
		if status == nil {
			continue
		}
		obj.Object["status"] = status
		err = w.Client.Status().Update(w.Context(), obj, client.FieldOwner("cert-manager"))
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if obj.GetResourceVersion() != before {
			w.log.Wrote(obj, time.Now())
		}
	}
	return nil
}

// issued returns the new status of a Certificate, nil if it does not change.
func issued(obj *unstructured.Unstructured, now time.Time) (map[string]any, error) {
	whole, err := time.ParseDuration(obj.GetAnnotations()[lives])
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", obj.GetName(), err)
	}
	before, _, _ := unstructured.NestedMap(obj.Object, "status")
	status := runtime.DeepCopyJSON(before)
	if status == nil {
		status = map[string]any{}
	}
	text, ok := status["notAfter"].(string)
	if !ok {
		text = obj.GetAnnotations()[expires]
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, err
	}
	at, has := renewalTime(obj, until.Add(-whole), until)
	if ok && has && !now.Before(at) {
		until = now.Add(whole)
		at, has = renewalTime(obj, now, until)
	}
	revision, _ := status["revision"].(int64)
	if text != until.Format(time.RFC3339) || !ok {
		revision++
	}
	status["notBefore"], status["notAfter"], status["revision"] = until.Add(-whole).Format(time.RFC3339), until.Format(time.RFC3339), revision
	delete(status, "renewalTime")
	if has {
		status["renewalTime"] = at.Format(time.RFC3339)
	}
	status["conditions"] = ready(status, obj.GetGeneration())
	if fmt.Sprint(before) == fmt.Sprint(status) {
		return nil, nil
	}
	return status, nil
}

// ready returns conditions with Ready for a generation.
func ready(status map[string]any, generation int64) []any {
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == "Ready" {
			c["observedGeneration"] = generation
			return list
		}
	}
	return append(list, map[string]any{
		"type": "Ready", "status": string(metav1.ConditionTrue), "reason": "Ready", "message": "issued",
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": generation,
	})
}

// renewalTime returns when a certificate is renewed: after two thirds of its lifetime, or at the next start of the window in spec.renewal
// after that.
func renewalTime(obj *unstructured.Unstructured, from, until time.Time) (time.Time, bool) {
	at := until.Add(-until.Sub(from) / 3).Truncate(time.Second)
	policy, _, _ := unstructured.NestedString(obj.Object, "spec", "renewal", "policy")
	windows, _, _ := unstructured.NestedSlice(obj.Object, "spec", "renewal", "windows")
	if policy == "Disabled" {
		return time.Time{}, false
	}
	if len(windows) == 0 {
		return at, true
	}
	window, _ := windows[0].(map[string]any)
	cron, _ := window["cron"].(string)
	fields := strings.Fields(cron)
	numbers := make([]int, 5)
	for i := range fields[:4] {
		numbers[i], _ = strconv.Atoi(fields[i])
	}
	for _, year := range []int{from.Year(), until.Year()} {
		begin := time.Date(year, time.Month(numbers[3]), numbers[2], numbers[1], numbers[0], 0, 0, time.UTC)
		if begin.After(from) && begin.Before(until) {
			return begin, true
		}
	}
	return at, true // the window is that of the previous certificate
}
