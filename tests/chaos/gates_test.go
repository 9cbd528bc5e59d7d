package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/chaos/checker"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// gateCount is the maximum number of Gates, of which the last two are in the second namespace.
const gateCount = 7

func (w *walk) gate(i int) *v1alpha1.Gate {
	g := &v1alpha1.Gate{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.GateKind}}
	g.Name, g.Namespace = fmt.Sprintf("g%d", i), w.namespaces[i/5]
	return g
}

// soon is a time in whole seconds.
func soon(random *rand.Rand, from, to int) metav1.Time {
	return metav1.NewTime(time.Now().UTC().Truncate(time.Second).Add(time.Duration(from+random.IntN(to-from)) * time.Second))
}

func period(random *rand.Rand, name string) v1alpha1.Period {
	from := soon(random, -20, 20)
	until := metav1.NewTime(from.Add(time.Duration(5+random.IntN(60)) * time.Second))
	return v1alpha1.Period{Name: name, From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}
}

// gateSpec returns a random spec.
func (w *walk) gateSpec(random *rand.Rand) v1alpha1.GateSpec {
	spec := v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Mode: v1alpha1.ModeEnforce,
		// The interval is usually too long to compensate for a lost event.
		Interval: v1alpha1.Duration{Duration: []time.Duration{time.Minute, time.Hour, 24 * time.Hour, 24 * time.Hour}[random.IntN(4)]},
	}
	if random.IntN(2) == 0 {
		spec.Default = v1alpha1.StateClosed
	}
	if random.IntN(3) == 0 {
		spec.Mode = v1alpha1.ModeLenient
	}
	if window := random.IntN(3); window > 0 {
		spec.Window = &v1alpha1.Duration{Duration: []time.Duration{20 * time.Second, time.Hour}[window-1]}
	}
	if spec.Default == v1alpha1.StateClosed && random.IntN(3) == 0 {
		spec.OpenPeriods = []v1alpha1.Period{period(random, "window")}
	}
	if random.IntN(3) == 0 {
		spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: period(random, "freeze"), Override: v1alpha1.OverrideAllow}}
		if random.IntN(2) == 0 {
			spec.ClosePeriods[0].Override = v1alpha1.OverrideDeny
		}
	}
	if random.IntN(8) == 0 {
		at := soon(random, -10, 30)
		spec.NotBefore = &at
	}
	if random.IntN(8) == 0 {
		at := soon(random, 31, 90)
		spec.NotAfter = &at
	}
	if random.IntN(3) == 0 {
		spec.Certificates = &v1alpha1.CertificatePolicy{SafetyMargin: &v1alpha1.Duration{Duration: checker.SmallMargin}}
	}
	for range 1 + random.IntN(2) {
		spec.Targets = append(spec.Targets, w.reference(random))
	}
	return spec
}

// reference returns a random reference.
func (w *walk) reference(random *rand.Rand) v1alpha1.TargetReference {
	first, second := w.namespaces[0], w.namespaces[1]
	return []v1alpha1.TargetReference{
		{Kind: "Kustomization", Name: fmt.Sprintf("k%d", random.IntN(6)), Namespace: first},
		{Kind: "Kustomization", Name: fmt.Sprintf("k%d", random.IntN(6)), Namespace: first},
		{Kind: "Kustomization", Name: "*"},
		{Kind: "Kustomization", Name: "*", Namespace: first, MatchLabels: map[string]string{"tier": "critical"}},
		{Kind: "Kustomization", Name: "*", Namespace: second},
		{Kind: "GitRepository", Name: "*", Namespace: first},
		{Kind: "HelmRelease", Name: "*", Namespace: first},
		{Kind: "Certificate", Name: "*", Namespace: first},
		{Kind: "Certificate", Name: "*", Namespace: first, MatchLabels: map[string]string{"tier": "critical"}},
	}[random.IntN(9)]
}

// changeGate changes the spec of a Gate, or creates the Gate.
func (w *walk) changeGate(i int, spec v1alpha1.GateSpec) {
	w.Helper()
	g := w.gate(i)
	g.Spec = spec
	w.logf("%s: default %s, %s, window %v, targets %v", g.Name, spec.Default, spec.Mode, spec.Window, spec.Targets)
	if w.create(g, "kubectl-create") {
		return
	}
	if random := w.gate(i); w.get(random) {
		w.patch(random, types.JSONPatchType, []map[string]any{{"op": "replace", "path": "/spec", "value": spec}}, "kubectl-edit")
	}
}

func (w *walk) deleteGate(i int) { w.remove(w.gate(i)) }

// forceGate acts as a user who deletes a Gate and removes its finalizer.
func (w *walk) forceGate(i int) {
	w.Helper()
	g := w.gate(i)
	w.remove(g)
	w.Must(client.IgnoreNotFound(w.try(func() error {
		return w.Client.Patch(w.Context(), g, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})))
}

// closes closes a Gate for its targets, and waits for the controller to hold them.
func (w *walk) closes(i int, spec v1alpha1.GateSpec) {
	w.Helper()
	spec.Default, spec.Interval = v1alpha1.StateClosed, v1alpha1.Duration{Duration: 24 * time.Hour}
	w.changeGate(i, spec)
	w.pass(1500 * time.Millisecond)
}

// deleteClosedGate deletes a Gate that holds targets: gracefully, or without giving the controller time to finalize it.
func (w *walk) deleteClosedGate(random *rand.Rand) {
	w.Helper()
	i := random.IntN(gateCount)
	w.closes(i, v1alpha1.GateSpec{
		Mode:    v1alpha1.ModeEnforce,
		Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*", Namespace: w.namespaces[0]}},
	})
	if force := random.IntN(2) == 0; force {
		w.logf("its finalizer is removed first")
		w.patch(w.gate(i), types.MergePatchType, map[string]any{"metadata": map[string]any{"finalizers": nil}}, "kubectl-edit")
	}
	w.deleteGate(i)
}

func (w *walk) suspendGate(random *rand.Rand) {
	w.patch(w.gate(random.IntN(gateCount)), types.MergePatchType, suspendPatch(random.IntN(3) == 0), "kubectl-edit")
}

func annotation(action v1alpha1.RequestAction) string {
	return string(action) + ".gate.fluxcd.io/requestedAt"
}

// request makes a random request that takes effect now or later.
func (w *walk) request(random *rand.Rand) {
	w.Helper()
	g := w.gate(random.IntN(gateCount))
	r := checker.Request{Action: v1alpha1.RequestOpen, At: time.Now().UTC().Truncate(time.Second)}
	if random.IntN(2) == 0 {
		r.Action = v1alpha1.RequestClose
	}
	if random.IntN(4) == 0 {
		r.At = r.At.Add(time.Duration(2+random.IntN(25)) * time.Second)
	}
	r.Value = r.At.Format(time.RFC3339)
	if random.IntN(3) == 0 {
		r.Window = time.Duration(3+random.IntN(40)) * time.Second
		r.Value += "/" + r.Window.String()
	}
	w.makeRequest(g, r)
}

// makeRequest makes a request on a Gate, and returns whether it did.
func (w *walk) makeRequest(g *v1alpha1.Gate, r checker.Request) bool {
	w.Helper()
	if !w.get(g) {
		return false
	}
	for _, before := range w.log.Requests(g.UID) {
		// Whether a planned request would be replaced depends on when the controller observes it.
		if before.Action == r.Action && !before.At.Before(time.Now().Truncate(time.Second)) {
			return false
		}
	}
	w.count++
	w.logf("%s: %s %s", g.Name, r.Action, r.Value)
	w.log.Requested(g, r)
	w.patch(g, types.MergePatchType, annotationPatch(map[string]any{
		annotation(r.Action): r.Value, string(r.Action) + ".gate.fluxcd.io/reason": fmt.Sprintf("request %d", w.count),
	}), "kubectl-annotate")
	return true
}

// requestAndRestore makes the same request twice, then Git restores the first one.
func (w *walk) requestAndRestore(random *rand.Rand) {
	w.Helper()
	g := w.gate(random.IntN(gateCount))
	action := []v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose}[random.IntN(2)]
	var first string
	for range 2 {
		r := checker.Request{Action: action, At: time.Now().UTC().Truncate(time.Second)}
		r.Value = r.At.Format(time.RFC3339)
		if !w.makeRequest(g, r) || harness.Eventually(w.Context(), 3*time.Second, "the request is handled", func() error {
			if w.get(g) && handled(g, action, r.Value) {
				return nil
			}
			return errors.New("the request is not handled")
		}) != nil {
			return // no replica is running
		}
		if first == "" {
			first = r.Value
		}
		w.pass(time.Second)
	}
	w.logf("%s: %s %s is restored", g.Name, action, first)
	w.patch(g, types.MergePatchType, annotationPatch(map[string]any{annotation(action): first}), "kustomize-controller")
}

// strip removes the annotations of kubectl as Flux does, but only handled ones: the controller loses unhandled ones, as documented.
func (w *walk) strip(random *rand.Rand) {
	g := w.gate(random.IntN(gateCount))
	if !w.get(g) {
		return
	}
	gone := map[string]any{}
	for _, m := range g.Status.Memory.HandledRequests {
		if g.Annotations[annotation(m.Action)] == m.LastHandled {
			gone[annotation(m.Action)], gone[string(m.Action)+".gate.fluxcd.io/reason"] = nil, nil
		}
	}
	w.logf("%s: %d", g.Name, len(gone))
	w.patch(g, types.MergePatchType, annotationPatch(gone), "kustomize-controller")
}

// restoreRequest restores an old request as Flux does if it is in Git.
func (w *walk) restoreRequest(random *rand.Rand) {
	g := w.gate(random.IntN(gateCount))
	at := random.IntN(1000)
	if !w.get(g) {
		return
	}
	requests := w.log.Requests(g.UID)
	if len(requests) == 0 {
		return
	}
	r := requests[at%len(requests)]
	// It never replaces an unhandled request.
	if now := g.Annotations[annotation(r.Action)]; now != "" && !handled(g, r.Action, now) || !w.history.Handled(g.UID, r) {
		return
	}
	w.logf("%s: %s %s", g.Name, r.Action, r.Value)
	w.patch(g, types.MergePatchType, annotationPatch(map[string]any{annotation(r.Action): r.Value}), "kustomize-controller")
}

func handled(g *v1alpha1.Gate, action v1alpha1.RequestAction, value string) bool {
	for _, m := range g.Status.Memory.HandledRequests {
		if m.Action == action && m.LastHandled == value {
			return true
		}
	}
	return false
}

// nonsense writes an invalid value. The controller must refuse it, and it must change nothing.
func (w *walk) nonsense(random *rand.Rand) {
	g := w.gate(random.IntN(gateCount))
	action := []v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose}[random.IntN(2)]
	value := []string{"tomorrow", "2099-01-01T00:00:00Z", time.Now().UTC().Format(time.RFC3339) + "/never"}[random.IntN(3)]
	if !w.get(g) || g.Annotations[annotation(action)] != "" && !handled(g, action, g.Annotations[annotation(action)]) {
		return
	}
	w.patch(g, types.MergePatchType, annotationPatch(map[string]any{annotation(action): value}), "kubectl-annotate")
}

func (w *walk) exception(i, gate int) *v1alpha1.GateException {
	g := w.gate(gate)
	e := &v1alpha1.GateException{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.GateExceptionKind}}
	e.Name, e.Namespace = fmt.Sprintf("e%d-%s", i, g.Name), g.Namespace
	e.Spec.GateRef.Name = g.Name
	return e
}

func (w *walk) createException(random *rand.Rand) {
	e := w.exception(random.IntN(2), random.IntN(gateCount))
	e.Spec.ValidFrom = soon(random, -20, 20)
	e.Spec.ValidUntil = metav1.NewTime(e.Spec.ValidFrom.Add(time.Duration(10+random.IntN(60)) * time.Second))
	does := 1 + random.IntN(3) // 1 opens, 2 closes, 3 does both
	if does != 2 {
		e.Spec.OpenPeriods = []v1alpha1.Period{period(random, "exceptional-open")}
	}
	if does != 1 {
		e.Spec.ClosePeriods = []v1alpha1.Period{period(random, "exceptional-close")}
	}
	e.Spec.Default = []v1alpha1.State{"", v1alpha1.StateClosed, v1alpha1.StateOpened}[random.IntN(3)]
	w.logf("%s: %d open and %d close periods, default %q", e.Name, len(e.Spec.OpenPeriods), len(e.Spec.ClosePeriods), e.Spec.Default)
	w.create(e, "kustomize-controller")
}
