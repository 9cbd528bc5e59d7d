package certificates

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// secret returns a Secret of the namespace, nil if it does not exist.
func (w *world) secret(name string) *corev1.Secret {
	w.Helper()
	secret := &corev1.Secret{}
	err := cluster.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.Must(err)
	return secret
}

// activated waits until the live Secret has the content of the staged one.
func (w *world) activated(revision int64) *corev1.Secret {
	w.Helper()
	var live *corev1.Secret
	w.eventually("the live Secret has the certificate", func(got certificate) error {
		staged := w.secret("app")
		live = w.secret("live")
		if got.revision < revision || live == nil || staged == nil || !bytes.Equal(live.Data["tls.crt"], staged.Data["tls.crt"]) {
			return fmt.Errorf("revision %d, live %t", got.revision, live != nil)
		}
		return nil
	})
	return live
}

// With the Gate's notBefore, a certificate that was issued ahead is used from then on. Later renewals are not delayed.
func TestCertificateIsIssuedAheadAndActivatedOnOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := metav1.NewTime(time.Now().Add(25 * time.Second).Truncate(time.Second))
	w.gate(v1alpha1.GateSpec{Default: v1alpha1.StateOpened, NotBefore: &at}, nil)
	obj := harness.NewCertificate(w.Key("app"), heldLifetime, 40*time.Second)
	obj.SetAnnotations(map[string]string{v1alpha1.ActivateIntoAnnotation: "live"})
	w.Must(unstructured.SetNestedSlice(obj.Object, []any{map[string]any{"type": "CombinedPEM"}}, "spec", "additionalOutputFormats"))
	w.Create(obj)
	first := w.issued()
	w.Throughout(time.Until(at.Time), "the live Secret does not exist yet", func() error {
		if w.secret("live") != nil {
			return fmt.Errorf("the live Secret exists")
		}
		return nil
	})
	live := w.activated(1)
	for _, key := range []string{"tls.crt", "tls.key", "ca.crt", "tls-combined.pem"} {
		if len(live.Data[key]) == 0 {
			t.Errorf("the live Secret lacks %s", key)
		}
	}
	for name := range live.Annotations {
		if strings.Contains(name, "cert-manager.io") {
			t.Errorf("the live Secret has the annotation %s", name)
		}
	}
	for name := range live.Labels {
		if strings.Contains(name, "cert-manager.io") {
			t.Errorf("the live Secret has the label %s", name)
		}
	}
	w.renewed(first)
	w.activated(2)
	if previous := w.secret("live-previous"); previous == nil || !bytes.Equal(previous.Data["tls.crt"], live.Data["tls.crt"]) {
		t.Error("the previous certificate is not kept")
	}
}
