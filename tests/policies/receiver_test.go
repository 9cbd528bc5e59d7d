package policies

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	receiverViewer = "gate-receiver-viewer"
	receiverEditor = "gate-receiver-editor"
	calendarViewer = "calendar-feed-viewer"
	calendarEditor = "calendar-feed-editor"

	deliveries = v1alpha1.DeliveriesAnnotation
)

// receiverManifest is a GateReceiver that opens the Gate production, with what of
// spec differs; null takes a field away.
func receiverManifest(name, spec string, annotations map[string]string) map[string]any {
	content := map[string]any{
		"type": "generic-hmac", "secretRef": map[string]any{"name": "token"},
		"gateRefs": []any{map[string]any{"name": "production"}}, "action": "open",
	}
	if spec != "" {
		if err := json.Unmarshal([]byte(spec), &content); err != nil {
			panic(err)
		}
	}
	maps.DeleteFunc(content, func(_ string, value any) bool { return value == nil })
	metadata := map[string]any{"name": name}
	if prefix, ok := strings.CutPrefix(name, "generateName: "); ok {
		metadata = map[string]any{"generateName": prefix}
	}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.GateReceiverKind, "metadata": metadata, "spec": content,
	}
}

// receiverFile writes one into a folder and returns the path.
func receiverFile(dir, name, spec string) string {
	path := filepath.Join(dir, "receiver.json")
	content, err := json.Marshal(receiverManifest(name, spec, nil))
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		panic(err)
	}
	return path
}

// receive returns the manifest of a GateReceiver in a file.
func (w *world) receive(name, spec string) string {
	w.Helper()
	return receiverFile(w.TempDir(), name, spec)
}

// receiver reads a GateReceiver.
func (w *world) receiver(name string) *v1alpha1.GateReceiver {
	w.Helper()
	r := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	w.Read(r)
	return r
}

// noReceiver runs kubectl, which must be refused for a cause and create nothing.
func (w *world) noReceiver(p *person, cause string, args ...string) {
	w.Helper()
	before, after := &v1alpha1.GateReceiverList{}, &v1alpha1.GateReceiverList{}
	w.Must(cluster.Client.List(w.Context(), before, client.InNamespace(w.Namespace)))
	out, err := p.kubectl(w.Context(), w.Namespace, args...)
	if err == nil {
		w.Errorf("%q by %s is allowed: %s", args, p.Name, out)
	} else if !strings.Contains(out, cause) {
		w.Errorf("%q by %s is refused\nfor   %s\nnot for %q", args, p.Name, out, cause)
	}
	w.Must(cluster.Client.List(w.Context(), after, client.InNamespace(w.Namespace)))
	if len(after.Items) > len(before.Items) {
		w.Errorf("%q by %s: created %+v", args, p.Name, after.Items)
	}
}

// refusedReceiver is the same for a GateReceiver that is there.
func (w *world) refusedReceiver(p *person, name, cause string, args ...string) {
	w.Helper()
	before := w.receiver(name)
	w.noReceiver(p, cause, args...)
	if after := w.receiver(name); !reflect.DeepEqual(written(after), written(before)) {
		w.Errorf("%q by %s: the receiver has changed\nfrom %+v\nto   %+v", args, p.Name, before, after)
	}
}

// written returns what of a GateReceiver the controller does not report on its own.
func written(r *v1alpha1.GateReceiver) *v1alpha1.GateReceiver {
	r = r.DeepCopy()
	r.ResourceVersion, r.Status = "", v1alpha1.GateReceiverStatus{WebhookPath: r.Status.WebhookPath}
	r.ManagedFields = slices.DeleteFunc(r.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Subresource == "status" })
	return r
}

// mayNot is the refusal of what a person does with a receiver.
func (w *world) mayNot(p *person, do, what, gate, verbs string) string {
	return fmt.Sprintf("user %s may not %s a receiver that %s gate %s/%s: it needs the %s on gates.gating.toolkit.fluxcd.io", p.Name, do, what, w.Namespace, gate, verbs)
}

// tenGates is spec.gateRefs with as many as there may be, the last one named last.
func tenGates(last string) string {
	names := make([]string, 9)
	for i := range names {
		names[i] = fmt.Sprintf(`{"name":"gate-%d"}`, i)
	}
	return "[" + strings.Join(append(names, `{"name":"`+last+`"}`), ",") + "]"
}

// namesOfTen are those of tenGates without the last, and production.
func namesOfTen() []string {
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprintf("gate-%d", i))
	}
	return slices.Concat(names, []string{"production"})
}
