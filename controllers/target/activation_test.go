package target

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/activation"
)

// secrets is a client of Secrets by name. Its writes panic.
type secrets struct {
	client.Client
	byName map[string]*corev1.Secret
}

func (s secrets) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	into, ok := obj.(*corev1.Secret)
	if found := s.byName[key.Name]; ok && found != nil {
		found.DeepCopyInto(into)
		return nil
	}
	return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
}

// The tests of internal/activation have all causes. This test has the fields of Secrets that cause a refusal.
func TestRefusedActivationWritesNothing(t *testing.T) {
	for cause, change := range map[string]func(*corev1.Secret){
		"is immutable":               func(s *corev1.Secret) { s.Immutable = ptr.To(true) },
		"is of type Opaque":          func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque },
		"belongs to Certificate 'x'": func(s *corev1.Secret) { s.Annotations = map[string]string{"cert-manager.io/certificate-name": "x"} },
		"belongs to cert-manager":    func(s *corev1.Secret) { s.Labels = map[string]string{"controller.cert-manager.io/fao": "true"} },
		"is controlled by ConfigMap 'x'": func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "1", Controller: ptr.To(true)}}
		},
	} {
		live := &corev1.Secret{Type: corev1.SecretTypeTLS}
		change(live)
		staged := &corev1.Secret{Type: corev1.SecretTypeTLS, ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"cert-manager.io/certificate-name": "apps"}}}
		c := secrets{byName: map[string]*corev1.Secret{"www": staged, "www-live": live}}
		events := record.NewFakeRecorder(10)
		a := &activator{Client: c, EventRecorder: events, Live: c}
		obj := certificate(70)
		obj.SetAnnotations(map[string]string{v1alpha1.ActivateIntoAnnotation: "www-live"})
		for range 2 {
			run := a.run(t.Context(), obj, start)
			if f := run.failure(); f == nil || f.Reason != v1alpha1.ActivationFailedReason || !strings.Contains(f.Message, cause) || run.err != nil {
				t.Errorf("%s: %+v, %v", cause, f, run.err)
			}
			obj.SetConditions(append(obj.GetConditions(), *run.condition()))
		}
		if n := len(events.Events); n != 1 {
			t.Errorf("%s: %d events", cause, n)
		} else if got := <-events.Events; !strings.HasPrefix(got, "Warning ActivationFailed Not activated into Secret 'www-live': ") || !strings.Contains(got, cause) {
			t.Errorf("event %q", got)
		}

		// A Secret for the previous data that another client has created is not overwritten either.
		run := &activationRun{activator: a, obj: obj, names: secretNames(obj), decision: activation.Decision{Previous: map[string][]byte{"a": nil}}}
		c.byName["www-live-previous"] = live
		if refused, err := run.storePrevious(t.Context(), live); err != nil || refused == "" {
			t.Errorf("%s: the previous data is written: %q, %v", cause, refused, err)
		}
	}
}
