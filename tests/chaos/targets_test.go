package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// slot is the kind, namespace and name of a possible target.
type slot struct {
	kind, name string
	namespace  int
}

// slots are all possible targets, Kustomizations first.
var slots = []slot{
	{"Kustomization", "k0", 0}, {"Kustomization", "k1", 0}, {"Kustomization", "k2", 0}, {"Kustomization", "k3", 0},
	{"Kustomization", "k4", 0}, {"Kustomization", "k5", 0}, {"Kustomization", "k0", 1}, {"Kustomization", "k1", 1},
	{"GitRepository", "r0", 0}, {"GitRepository", "r1", 0}, {"HelmRelease", "h0", 0}, {"HelmRelease", "h1", 0},
	{"Certificate", "c0", 0}, {"Certificate", "c1", 0}, {"Certificate", "c2", 0}, {"Certificate", "c3", 0},
}

// kustomizationSlots is the number of slots of Kustomizations, which come first.
const kustomizationSlots = 8

// certificateSlots is the number of slots of Certificates, which come last.
const certificateSlots = 4

func (w *walk) target(s slot) *unstructured.Unstructured {
	return harness.Object(kinds[s.kind], s.kind, client.ObjectKey{Namespace: w.namespaces[s.namespace], Name: s.name})
}

// usable returns whether the kind of a slot is installed.
func (w *walk) usable(s slot) bool { return s.kind != "HelmRelease" || !w.absent }

// any returns a random slot, except those of Certificates.
func (w *walk) any(random *rand.Rand) slot { return slots[random.IntN(len(slots)-certificateSlots)] }

var specs = map[string]map[string]any{
	"Kustomization": {"interval": "1h", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "r0"}},
	"GitRepository": {"interval": "1h", "url": "https://example.com/apps.git"},
	"HelmRelease": {"interval": "1h", "chart": map[string]any{"spec": map[string]any{
		"chart": "app", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"},
	}}},
	"Certificate": {"secretName": "tls", "dnsNames": []any{"example.com"}, "issuerRef": map[string]any{"name": "ca"}},
}

// populate creates about half of the possible targets.
func (w *walk) populate() {
	w.Helper()
	random := step{seed: w.seed}.random()
	for _, s := range slots {
		if random.IntN(3) > 0 {
			w.createTarget(s, random)
		}
	}
	for i := range gateCount {
		if random.IntN(2) == 0 {
			w.changeGate(i, w.gateSpec(random))
		}
	}
}

func (w *walk) createTarget(s slot, random *rand.Rand) {
	w.Helper()
	obj := w.target(s)
	obj.Object["spec"] = (&unstructured.Unstructured{Object: specs[s.kind]}).DeepCopy().Object
	w.dress(obj, random)
	if s.kind == "Certificate" {
		w.age(obj, random)
	} else if random.IntN(6) == 0 {
		_ = unstructured.SetNestedField(obj.Object, true, "spec", "suspend")
	}
	if w.usable(s) {
		w.logf("%s %s/%s", s.kind, obj.GetNamespace(), s.name)
		w.create(obj, "kustomize-controller")
	}
}

// dress sets random labels and names of Gates on a target.
func (w *walk) dress(obj *unstructured.Unstructured, random *rand.Rand) {
	if random.IntN(3) == 0 {
		obj.SetLabels(map[string]string{"tier": "critical"})
	}
	if random.IntN(6) == 0 {
		obj.SetAnnotations(map[string]string{"gating.toolkit.fluxcd.io/gates": w.names(random)})
	}
}

// names returns the names of one or two Gates, which may be missing.
func (w *walk) names(random *rand.Rand) string {
	g := w.gate(random.IntN(gateCount + 2)) // the last two never exist
	list := g.Namespace + "/" + g.Name
	if random.IntN(3) == 0 {
		list += ", " + w.gate(random.IntN(gateCount)).Name
	}
	return list
}

func (w *walk) labelTarget(random *rand.Rand) {
	s, label := slots[random.IntN(len(slots))], any(nil)
	if random.IntN(2) == 0 {
		label = "critical"
	}
	if w.usable(s) {
		w.patch(w.target(s), types.MergePatchType, map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": label}}}, "kubectl-label")
	}
}

func (w *walk) nameGates(random *rand.Rand) {
	s, list := slots[random.IntN(len(slots))], any(nil)
	if names := w.names(random); random.IntN(2) == 0 {
		list = names
	}
	if w.usable(s) {
		w.patch(w.target(s), types.MergePatchType, annotationPatch(map[string]any{"gating.toolkit.fluxcd.io/gates": list}), "kubectl-annotate")
	}
}

// suspendTarget suspends or resumes a target by a merge patch of another client.
func (w *walk) suspendTarget(random *rand.Rand, manager string, value any) {
	w.Helper()
	if s := w.any(random); w.usable(s) {
		w.logf("%s %s", s.kind, s.name)
		w.patch(w.target(s), types.MergePatchType, suspendPatch(value), manager)
	}
}

// reports are the field managers of the status of each kind, and the fields with the observed revision.
var reports = map[string]struct{ manager, field string }{
	"Kustomization": {"kustomize-controller", "lastAppliedRevision"},
	"GitRepository": {"source-controller", "observedIgnore"},
	"HelmRelease":   {"helm-controller", "lastAttemptedRevision"},
}

// report writes the status of a target as the controllers of Flux do, which keep unknown conditions.
func (w *walk) report(s slot, random *rand.Rand) {
	w.Helper()
	obj := w.target(s)
	if !w.usable(s) || !w.get(obj) {
		return
	}
	before := obj.GetResourceVersion()
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	list = slices.DeleteFunc(list, func(item any) bool {
		c, _ := item.(map[string]any)
		return c["type"] == "Ready" || c["type"] == "Reconciling"
	})
	condition := func(kind, status string) {
		list = append(list, map[string]any{
			"type": kind, "status": status, "reason": "Progressing", "message": fmt.Sprintf("step %d", w.at),
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": obj.GetGeneration(),
		})
	}
	condition("Ready", []string{"True", "False", "Unknown"}[random.IntN(3)])
	if random.IntN(2) == 0 {
		condition("Reconciling", "True")
	}
	w.Must(unstructured.SetNestedSlice(obj.Object, list, "status", "conditions"))
	w.Must(unstructured.SetNestedField(obj.Object, obj.GetGeneration(), "status", "observedGeneration"))
	w.Must(unstructured.SetNestedField(obj.Object, fmt.Sprintf("main@sha1:%d", w.at), "status", reports[s.kind].field))
	err := w.try(func() error {
		return w.Client.Status().Update(w.Context(), obj, client.FieldOwner(reports[s.kind].manager))
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return
	}
	w.Must(err)
	if obj.GetResourceVersion() != before {
		w.logf("%s %s", s.kind, s.name)
		w.log.Wrote(obj, time.Now())
	}
}

// resumeToRespect acts as a user who resumes a target of a lenient Gate.
func (w *walk) resumeToRespect(random *rand.Rand) {
	w.Helper()
	s, i := slots[kustomizationSlots-1-random.IntN(3)], random.IntN(gateCount)
	w.createTarget(s, random)
	w.patch(w.target(s), types.MergePatchType, annotationPatch(map[string]any{"gating.toolkit.fluxcd.io/gates": nil}), "kubectl-annotate")
	w.closes(i, v1alpha1.GateSpec{
		Mode:    v1alpha1.ModeLenient,
		Targets: []v1alpha1.TargetReference{{Kind: s.kind, Name: s.name, Namespace: w.namespaces[s.namespace]}},
	})
	w.awaitRecorded(w.target(s))
	w.patch(w.target(s), types.MergePatchType, suspendPatch(nil), "flux")
}

// apply is a server-side apply by another client.
func (w *walk) apply(random *rand.Rand, manager string, value any) {
	w.Helper()
	s := w.any(random)
	if !w.usable(s) || !w.get(w.target(s)) {
		return
	}
	obj := w.target(s)
	spec := map[string]any{}
	if manager == "kustomize-controller" {
		spec = (&unstructured.Unstructured{Object: specs[s.kind]}).DeepCopy().Object
	}
	if value != nil {
		spec["suspend"] = value
	}
	obj.Object["spec"] = spec
	w.logf("%s %s: suspend %v", s.kind, s.name, value)
	w.patch(w.target(s), types.ApplyPatchType, obj.Object, manager, client.ForceOwnership)
}

// vanishForAWhile removes the definition, and usually restores it at once, so that a Gate holds the objects that are created then.
func (w *walk) vanishForAWhile(random *rand.Rand) {
	w.Helper()
	w.vanish()
	if w.absent && random.IntN(3) > 0 {
		w.pass(time.Duration(random.IntN(2000)) * time.Millisecond)
		w.vanish()
	}
	if !w.absent {
		w.createTarget(slot{"HelmRelease", "h0", 0}, random)
		w.closes(random.IntN(gateCount), v1alpha1.GateSpec{
			Mode:    v1alpha1.ModeEnforce,
			Targets: []v1alpha1.TargetReference{{Kind: "HelmRelease", Name: "*", Namespace: w.namespaces[0]}},
		})
	}
}

// define installs the definition of HelmReleases.
func (w *walk) define() {
	w.Helper()
	w.Must(w.try(func() error {
		_, err := envtest.InstallCRDs(w.Config, envtest.CRDInstallOptions{Paths: []string{harness.CRDPath("helm-controller")}})
		return err
	}))
	w.absent = false
}

// vanish removes the definition of HelmReleases with all objects, or restores it.
func (w *walk) vanish() {
	w.Helper()
	const definition = "helmreleases.helm.toolkit.fluxcd.io"
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition}}
	if w.absent {
		w.logf("the definition is restored")
		w.define()
		return
	}
	w.absent = true
	for _, s := range slots {
		if obj := w.target(s); s.kind == "HelmRelease" && w.get(obj) {
			w.log.Deleted(obj, time.Now())
		}
	}
	w.Must(client.IgnoreNotFound(w.try(func() error { return w.Client.Delete(w.Context(), crd) })))
	w.Must(w.try(func() error {
		err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(crd), crd)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the definition still exists: %w", err)
	}))
}
