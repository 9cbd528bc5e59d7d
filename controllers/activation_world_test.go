package controllers_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// certificateRef refers to one Certificate.
func certificateRef(name string) v1alpha1.TargetReference {
	return v1alpha1.TargetReference{Kind: "Certificate", Name: name}
}

// activating creates a Certificate that is issued into the Secret <name>-staged and activated into <name>-tls.
func (w *world) activating(name string) *target.Object {
	w.Helper()
	obj := &target.Object{}
	obj.Object = map[string]any{"spec": map[string]any{
		"secretName": name + "-staged", "dnsNames": []any{name}, "issuerRef": map[string]any{"name": "none"},
	}}
	obj.SetAPIVersion("cert-manager.io/v1")
	obj.SetKind("Certificate")
	obj.SetNamespace(w.Namespace)
	obj.SetName(name)
	obj.SetAnnotations(map[string]string{v1alpha1.ActivateIntoAnnotation: name + "-tls"})
	w.Must(cluster.Client.Create(w.Context(), &obj.Unstructured))
	return obj
}

// keyPair returns the data of a Secret of cert-manager, with a key and a certificate that is valid between two times after start.
func (w *world) keyPair(from, until time.Duration, more ...string) map[string][]byte {
	w.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.Must(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	w.Must(err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "web"}, NotBefore: start.Add(from), NotAfter: start.Add(until),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	w.Must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	w.Must(err)
	data := map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		"ca.crt":  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}
	for _, name := range more {
		data[name] = append([]byte(name), serial.Bytes()...)
	}
	return data
}

// stage writes a Secret as cert-manager does.
func (w *world) stage(certificate *target.Object, data map[string][]byte) {
	w.Helper()
	name := certificate.GetName() + "-staged"
	encoded := map[string]any{}
	for key, value := range data {
		encoded[key] = value
	}
	config := &unstructured.Unstructured{Object: map[string]any{"data": encoded, "type": "kubernetes.io/tls"}}
	config.SetAPIVersion("v1")
	config.SetKind("Secret")
	config.SetNamespace(w.Namespace)
	config.SetName(name)
	config.SetLabels(map[string]string{"controller.cert-manager.io/fao": "true"})
	config.SetAnnotations(map[string]string{
		"cert-manager.io/certificate-name": certificate.GetName(), "cert-manager.io/alt-names": certificate.GetName(),
	})
	w.Must(cluster.Client.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(config),
		client.FieldOwner("cert-manager-certificates-issuing"), client.ForceOwnership))
}

// secret reads a Secret, nil if there is none.
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

// byHand creates a Secret as a user would.
func (w *world) byHand(name string, data map[string][]byte, changes ...func(*corev1.Secret)) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}, Type: corev1.SecretTypeTLS, Data: data}
	for _, change := range changes {
		change(secret)
	}
	w.Must(cluster.Client.Create(w.Context(), secret, client.FieldOwner("kubectl-create")))
}

// has checks the data of a Secret, nil for none.
func (w *world) has(name string, data map[string][]byte) {
	w.Helper()
	switch secret := w.secret(name); {
	case secret == nil && data == nil:
	case secret == nil:
		w.Errorf("there is no Secret %s", name)
	case data == nil:
		w.Errorf("there is a Secret %s", name)
	case !maps.EqualFunc(secret.Data, data, func(a, b []byte) bool { return string(a) == string(b) }):
		w.Errorf("Secret %s has other data than expected, with keys %v, want %v", name, keysOf(anyValues(secret.Data)), keysOf(anyValues(data)))
	}
}

func anyValues(data map[string][]byte) map[string]any {
	values := map[string]any{}
	for key, value := range data {
		values[key] = value
	}
	return values
}

// activated returns the condition Activated as "status reason: message".
func (w *world) activated(certificate *target.Object) string {
	w.Helper()
	for _, c := range w.Reload(certificate).GetConditions() {
		if c.Type == v1alpha1.ActivatedCondition {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

// readCertificate reads a Certificate.
func (w *world) readCertificate(name string) *target.Object {
	w.Helper()
	obj := &target.Object{}
	obj.SetAPIVersion("cert-manager.io/v1")
	obj.SetKind("Certificate")
	obj.SetNamespace(w.Namespace)
	obj.SetName(name)
	return w.Reload(obj)
}
