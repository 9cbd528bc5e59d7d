package controllers_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestFieldsOfOtherManagersAreUnchanged(t *testing.T) {
	theirs := func(change func(*corev1.Secret)) func(*world) {
		return func(w *world) { w.byHand("web-tls", w.keyPair(0, 30*day), change) }
	}
	for name, tc := range map[string]struct {
		prepare func(*world)
		cause   string
	}{
		"an immutable secret":      {theirs(func(s *corev1.Secret) { s.Immutable = ptr.To(true) }), "is immutable"},
		"a secret of another type": {theirs(func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }), "is of type Opaque"},
		"a secret that is controlled": {theirs(func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "1", Controller: ptr.To(true)}}
		}), "is controlled by ConfigMap 'x'"},
		"what was there before is not ours": {func(w *world) {
			w.byHand("web-tls", w.keyPair(0, 30*day))
			w.byHand("web-tls-previous", w.keyPair(0, 30*day))
		}, "Secret 'web-tls-previous' is needed for the previous data, but does not belong to the controller"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			web := w.activating("web")
			w.stage(web, w.keyPair(0, 60*day))
			tc.prepare(w)
			before := w.secrets()
			g := w.activationGate(0)
			for range 2 {
				w.Reconcile(g)
			}
			equal(t, w.secrets(), before)
			equal(t, w.Writes.Take("Secret"), []string(nil))
			w.expectActivated(g, "False ActivationFailed: Not activated into Secret ")
			if len(g.Status.TargetFailures()) != 1 || g.Status.TargetFailures()[0].Reason != v1alpha1.ActivationFailedReason ||
				g.Status.TargetFailures()[0].Kind != "Certificate" || !strings.Contains(g.Status.TargetFailures()[0].Message, tc.cause) {
				t.Errorf("failures %+v, want %q", g.Status.TargetFailures(), tc.cause)
			}
			if events := w.Events.Take("Certificate/web"); len(events) != 1 || !strings.HasPrefix(events[0], "Warning Certificate/web ActivationFailed: Not activated into Secret ") || !strings.Contains(events[0], tc.cause) {
				t.Errorf("events %q", events)
			}
		})
	}
}

// secrets returns the resource versions of all Secrets of the world, by name.
func (w *world) secrets() map[string]string {
	w.Helper()
	list := &corev1.SecretList{}
	w.Must(cluster.Client.List(w.Context(), list, client.InNamespace(w.Namespace)))
	all := map[string]string{}
	for i := range list.Items {
		all[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return all
}
