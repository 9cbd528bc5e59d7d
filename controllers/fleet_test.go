package controllers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

const days = 24 * time.Hour

// bare returns a Machine with nothing but its name.
func bare(namespace, name string) *target.Object {
	obj := &target.Object{}
	obj.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	obj.SetKind("Machine")
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// machine creates a Machine whose certificates expire in a time from start.
func (w *world) machine(name string, expires time.Duration, labels ...string) *target.Object {
	w.Helper()
	obj := bare(w.Namespace, name)
	obj.SetLabels(map[string]string{target.ClusterNameLabel: "c1"})
	obj.SetAnnotations(map[string]string{target.CertificatesExpiryAnnotation: start.Add(expires).Format(time.RFC3339)})
	obj.Object["spec"] = map[string]any{
		"clusterName": "c1", "bootstrap": map[string]any{"dataSecretName": "data"},
		"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerMachine", "name": name},
	}
	for _, label := range labels {
		all := obj.GetLabels()
		all[label] = ""
		obj.SetLabels(all)
	}
	w.Must(cluster.Client.Create(w.Context(), &obj.Unstructured))
	return obj
}

// fleetGate creates a Gate of all Machines that is looked at once a day.
func (w *world) fleetGate(name string, state v1alpha1.State, change ...func(*v1alpha1.GateSpec)) *v1alpha1.Gate {
	w.Helper()
	spec := v1alpha1.GateSpec{
		Default: state, Interval: *duration(days), Targets: []v1alpha1.TargetReference{{Kind: "Machine", Name: "*"}},
		Machines: &v1alpha1.MachinePolicy{Within: *duration(30 * days), TTL: "1y", Timeout: *duration(time.Hour)},
	}
	for _, c := range change {
		c(&spec)
	}
	return w.Gate(name, spec)
}

// note sets annotations of a Machine as somebody, or removes those that are nil.
func (w *world) note(by string, obj *target.Object, annotations map[string]any) {
	w.Helper()
	w.Must(w.tryNote(by, obj, annotations))
}

func (w *world) tryNote(by string, obj *target.Object, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	return cluster.Client.Patch(w.Context(), &bare(obj.GetNamespace(), obj.GetName()).Unstructured,
		client.RawPatch(types.MergePatchType, patch), client.FieldOwner(by))
}

// Faults of the provider.
const (
	works         = ""
	stuck         = "stuck in progress"
	fails         = "fails forever"
	failsAtOnce   = "fails before it begins"
	neverAdvances = "never advances"
	ignores       = "ignores the request"
)

// provider does one step on a Machine as the bootstrap provider of Canonical
// Kubernetes does it, or what it does with a fault.
func (w *world) provider(obj *target.Object, fault string) {
	w.Helper()
	w.reload(obj)
	annotations := obj.GetAnnotations()
	ttl, requested := annotations[target.RefreshRequestAnnotation]
	working := annotations[target.RefreshStatusAnnotation] == "in-progress"
	change := map[string]any{}
	switch {
	case working && !requested:
		change[target.RefreshStatusAnnotation] = nil
	case !requested, fault == ignores, working && fault == stuck:
		return
	case !working && fault != failsAtOnce:
		change[target.RefreshStatusAnnotation] = "in-progress"
	case fault == fails, fault == failsAtOnce:
		change[target.RefreshStatusAnnotation] = "failed"
	default:
		change[target.RefreshRequestAnnotation], change[target.RefreshStatusAnnotation] = nil, "done"
		if fault != neverAdvances {
			policy := v1alpha1.MachinePolicy{TTL: ttl}
			change[target.CertificatesExpiryAnnotation] = w.clock.Now().Add(policy.Lifetime()).Format(time.RFC3339)
		}
	}
	w.note("manager", obj, change)
}

// asked returns what a Machine is asked for, and whether it has a record of ours.
func (w *world) asked(obj *target.Object) (request string, recorded bool) {
	w.Helper()
	w.reload(obj)
	request = obj.GetAnnotations()[target.RefreshRequestAnnotation]
	_, recorded = obj.GetAnnotations()[v1alpha1.RefreshAnnotation]
	return request, recorded
}

// expectAsked checks which of some Machines are asked for a refresh by us.
func (w *world) expectAsked(machines []*target.Object, want ...string) {
	w.Helper()
	var got []string
	for _, m := range machines {
		request, recorded := w.asked(m)
		if (request != "") != recorded {
			w.Errorf("%s: the request is %q, recorded %t", m.GetName(), request, recorded)
		}
		if request != "" {
			got = append(got, m.GetName())
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.Errorf("asked %v, want %v", got, want)
	}
}

// expectQuiet checks that nothing of ours is left on a Machine.
func (w *world) expectQuiet(obj *target.Object) {
	w.Helper()
	w.reload(obj)
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == v1alpha1.FieldManager {
			w.Errorf("%s: we own %s", obj.GetName(), entry.FieldsV1)
		}
	}
	if _, recorded := w.asked(obj); recorded {
		w.Errorf("%s: there is a record", obj.GetName())
	}
}

// expiresIn returns in what time from start the certificates of a Machine expire.
func (w *world) expiresIn(obj *target.Object) time.Duration {
	w.Helper()
	at, err := time.Parse(time.RFC3339, w.reload(obj).GetAnnotations()[target.CertificatesExpiryAnnotation])
	w.Must(err)
	return at.Sub(start)
}

// fleetStatus is what the status of a Gate says of Machines.
func fleetStatus(g *v1alpha1.Gate) string {
	status := g.Status.Machines
	if status == nil {
		return "none"
	}
	text := fmt.Sprintf("due %d", status.Due)
	if status.Refreshing != "" {
		text += ", refreshing " + strings.TrimPrefix(status.Refreshing, g.Namespace+"/")
	}
	if status.Stopped != nil {
		text += ", stopped by " + strings.TrimPrefix(status.Stopped.Machine, g.Namespace+"/")
	}
	return text
}

func (w *world) expectFleet(g *v1alpha1.Gate, want string) {
	w.Helper()
	if got := fleetStatus(g); got != want {
		w.Errorf("status of machines %q, want %q", got, want)
	}
}

func owners(obj *target.Object, field string) []string {
	var all []string
	for _, entry := range obj.GetManagedFields() {
		if strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:`+field+`":{}`) {
			all = append(all, entry.Manager+" "+string(entry.Operation))
		}
	}
	return all
}
