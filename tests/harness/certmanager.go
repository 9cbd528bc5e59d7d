package harness

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	certManagerAPI = "cert-manager.io/v1"
	// issuer is the name of the Issuer that CreateIssuer creates.
	issuer = "ca"
)

// StartCertManager starts the cert-manager controller with its self-signed and CA issuers.
func (c *ControlPlane) StartCertManager(ctx context.Context) (*Process, error) {
	return c.startCertManager(ctx)
}

func (c *ControlPlane) startCertManager(ctx context.Context, args ...string) (*Process, error) {
	health := FreeAddress()
	args = append([]string{"--kubeconfig=" + c.Kubeconfig, "--health-addr=" + health}, args...)
	return c.run(ctx, tool("cert-manager"), health, nil, args...)
}

// CreateIssuer creates the issuer of NewCertificate in a namespace, with its own root certificate, and waits until it is ready.
func (c *ControlPlane) CreateIssuer(ctx context.Context, namespace string) error {
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: namespace, Name: name} }
	selfSigned := Object(certManagerAPI, "Issuer", key("self-signed"))
	selfSigned.Object["spec"] = map[string]any{"selfSigned": map[string]any{}}
	root := NewCertificate(key("root"), 1000*time.Hour, 900*time.Hour)
	spec := root.Object["spec"].(map[string]any) //nolint:forcetypeassert // it is ours
	spec["isCA"] = true
	spec["issuerRef"] = map[string]any{"name": selfSigned.GetName()}
	ca := Object(certManagerAPI, "Issuer", key(issuer))
	ca.Object["spec"] = map[string]any{"ca": map[string]any{"secretName": root.GetName()}}
	for _, obj := range []*unstructured.Unstructured{selfSigned, root, ca} {
		if err := c.Client.Create(ctx, obj); err != nil {
			return err
		}
	}
	return Eventually(ctx, readyTimeout, "the issuer is ready", func() error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(ca), ca); err != nil {
			return err
		}
		if status, reason := Condition(ca, "Ready"); status != metav1.ConditionTrue {
			return fmt.Errorf("it is %q for %q", status, reason)
		}
		return nil
	})
}

// NewCertificate returns a Certificate with a lifetime. cert-manager renews it renewAfter after its issuance. Its Secret has the same name.
func NewCertificate(key client.ObjectKey, lifetime, renewAfter time.Duration) *unstructured.Unstructured {
	obj := Object(certManagerAPI, "Certificate", key)
	obj.Object["spec"] = map[string]any{
		"secretName":  key.Name,
		"commonName":  key.Name,
		"issuerRef":   map[string]any{"name": issuer},
		"privateKey":  map[string]any{"algorithm": "ECDSA", "size": int64(256)},
		"duration":    lifetime.String(),
		"renewBefore": (lifetime - renewAfter).String(),
	}
	return obj
}

// RenewCertificate requests a renewal as cmctl renew does.
func (c *ControlPlane) RenewCertificate(ctx context.Context, key client.ObjectKey) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		obj := Object(certManagerAPI, "Certificate", key)
		if err := c.Client.Get(ctx, key, obj); err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
		if err != nil {
			return err
		}
		conditions = slices.DeleteFunc(conditions, func(entry any) bool {
			condition, ok := entry.(map[string]any)
			return ok && condition["type"] == "Issuing"
		})
		conditions = append(conditions, map[string]any{
			"type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
			"message":            "Certificate re-issuance manually triggered",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": obj.GetGeneration(),
		})
		if err := unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions"); err != nil {
			return err
		}
		return c.Client.Status().Update(ctx, obj)
	})
}

// Condition returns the status and the reason of a condition, empty if it is missing.
func Condition(obj *unstructured.Unstructured, name string) (metav1.ConditionStatus, string) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, entry := range conditions {
		if condition, ok := entry.(map[string]any); ok && condition["type"] == name {
			return metav1.ConditionStatus(fmt.Sprint(condition["status"])), fmt.Sprint(condition["reason"])
		}
	}
	return "", ""
}
