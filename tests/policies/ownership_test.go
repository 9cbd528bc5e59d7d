package policies

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// governed is a kind whose verb patch is for annotations alone.
type governed struct {
	kind, resource, what, role, annotation string
	// spec has a field that Git is to remove, small is without it.
	spec, small string
}

var bothKinds = []governed{
	{
		v1alpha1.GateKind, "gate", "gate", opener, openAt,
		`{"default":"closed","openPeriods":[{"name":"always","start":"00:00","end":"24:00"}]}`, `{"default":"closed"}`,
	},
	{
		v1alpha1.GateExceptionKind, "gtex", "gate exception", exceptionApprover, approveAt,
		`{"gateRef":{"name":"x"},"default":"closed","timeZone":"UTC","validFrom":"2099-01-01T00:00:00Z","validUntil":"2099-01-08T00:00:00Z","openPeriods":[{"name":"always","start":"00:00","end":"24:00"}]}`,
		`{"gateRef":{"name":"x"},"default":"closed","timeZone":"UTC","validFrom":"2099-01-01T00:00:00Z","validUntil":"2099-01-08T00:00:00Z"}`,
	},
}

// of returns the manifest of an object in a file.
func (k governed) of(w *world, spec string) string {
	return w.file(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"owned"},"spec":%s}`, v1alpha1.GroupVersion, k.kind, spec))
}

// value returns one for the annotation, another one each time.
func (k governed) value(w *world) string {
	w.Helper()
	if k.annotation == approveAt {
		return w.approvalOf("owned")
	}
	return time.Now().UTC().Format(time.RFC3339Nano)
}

// periods returns the open periods that the cluster has.
func (k governed) periods(w *world) string {
	w.Helper()
	out, err := cluster.Kubectl(w.Context(), "-n", w.Namespace, "get", k.resource, "owned", "-o=jsonpath={.spec.openPeriods}")
	w.Must(err)
	return out
}

// owners returns who owns fields of the spec, in words.
func (k governed) owners(w *world) string {
	w.Helper()
	out, err := cluster.Kubectl(w.Context(), "-n", w.Namespace, "get", k.resource, "owned", "--show-managed-fields", "-o=jsonpath={.metadata.managedFields}")
	w.Must(err)
	var fields []metav1.ManagedFieldsEntry
	w.Must(json.Unmarshal([]byte(out), &fields))
	var owners []string
	for _, f := range fields {
		if f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:spec"`) {
			owner := f.Manager
			if f.APIVersion != v1alpha1.GroupVersion.String() {
				owner += " in " + f.APIVersion
			}
			owners = append(owners, owner)
		}
	}
	return strings.Join(owners, ",")
}

// Git cannot remove any more what somebody co-owns.
func TestWhoMayOnlyPatchOwnsNothingOfTheSpec(t *testing.T) {
	for _, k := range bothKinds {
		t.Run(k.kind, func(t *testing.T) {
			w := newWorld(t)
			flux, alice := w.as("flux", editor, exceptionEditor, viewer), w.as("alice", k.role)
			apply := func(manager, spec string, more ...string) []string {
				return append([]string{"apply", "--server-side", "--field-manager=" + manager, "-f", k.of(w, spec)}, more...)
			}
			w.allowed(flux, apply("kustomize-controller", k.spec)...)
			w.Eventually("the controller has set its finalizer", func() error {
				out, err := cluster.Kubectl(w.Context(), "-n", w.Namespace, "get", k.resource, "owned", "-o=jsonpath={.metadata.finalizers}")
				if err == nil && out == "" {
					err = fmt.Errorf("none")
				}
				return err
			})
			cause := "user alice may not change who owns the spec of " + k.what + " " + w.Namespace + "/owned: it needs the verb update on "
			for name, args := range map[string][]string{
				"apply":                apply("evil", k.spec),
				"apply by force":       apply("evil", k.spec, "--force-conflicts"),
				"apply a part":         apply("evil", k.small),
				"apply as Flux a part": apply("kustomize-controller", k.small, "--force-conflicts"),
				"reset":                {"patch", k.resource, "owned", "--type=merge", "-p", `{"metadata":{"managedFields":[{}]}}`},
				"reset by JSON patch":  {"patch", k.resource, "owned", "--type=json", "-p", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`},
				"another name":         {"patch", k.resource, "owned", "--type=json", "-p", `[{"op":"replace","path":"/metadata/managedFields/0/manager","value":"evil"}]`},
				"another version":      {"patch", k.resource, "owned", "--type=json", "-p", `[{"op":"replace","path":"/metadata/managedFields/0/apiVersion","value":"gating.toolkit.fluxcd.io/v0"}]`},
				"reset along with an annotation": {"patch", k.resource, "owned", "--type=merge", "-p",
					`{"metadata":{"annotations":{"` + k.annotation + `":"` + k.value(w) + `"},"managedFields":[{}]}}`},
			} {
				out, err := alice.kubectl(w.Context(), w.Namespace, args...)
				want := cause
				if name == "apply as Flux a part" { // which takes the periods away
					want = "user alice may not change spec of " + k.what
				}
				// Since 1.37, Kubernetes itself keeps the managed fields if an entry has an unknown version.
				if ignored := name == "another version" && err == nil; !ignored && (err == nil || !strings.Contains(out, want)) {
					t.Errorf("%s: %s, %v", name, out, err)
				}
				if owners := k.owners(w); owners != "kustomize-controller" {
					t.Fatalf("%s: the spec is owned by %s", name, owners)
				}
			}
			w.allowed(alice, "annotate", k.resource, "owned", k.annotation+"="+k.value(w))
			w.allowed(flux, apply("kustomize-controller", k.small)...)
			if periods := k.periods(w); periods != "" {
				t.Errorf("Git has no periods, the cluster has %s", periods)
			}
			w.allowed(flux, apply("second", k.small)...) // with the verb update
		})
	}
}

// However an object came to be, who may annotate it can.
func TestWhoMayPatchAnnotatesWhoeverOwnsTheSpec(t *testing.T) {
	for _, k := range bothKinds {
		t.Run(k.kind, func(t *testing.T) {
			w := newWorld(t)
			flux, alice := w.as("flux", editor, exceptionEditor, viewer), w.as("alice", k.role)
			var periods []string
			for i := range 100 {
				periods = append(periods, fmt.Sprintf(`{"name":"w%d","daysOfWeek":["Monday","Friday"],"start":"00:00","end":"24:00","timeZone":"Europe/Oslo"}`, i))
			}
			many := strings.Replace(k.spec, `{"name":"always","start":"00:00","end":"24:00"}`, strings.Join(periods, ","), 1)
			for _, command := range []string{
				"create", "apply", "apply --server-side", "apply --server-side --field-manager=kustomize-controller",
			} {
				spec := k.spec
				if strings.HasSuffix(command, "kustomize-controller") {
					spec = many
				}
				w.allowed(flux, append(strings.Fields(command), "-f", k.of(w, spec))...)
				for range 2 {
					w.allowed(alice, "annotate", "--overwrite", k.resource, "owned", k.annotation+"="+k.value(w))
					w.allowed(alice, "annotate", "--overwrite", k.resource, "owned", "reconcile.fluxcd.io/requestedAt="+k.value(w))
				}
				w.allowed(alice, "annotate", k.resource, "owned", k.annotation+"-")
				w.allowed(flux, "delete", k.resource, "owned") // once the controller has removed its finalizer
			}
		})
	}
}
