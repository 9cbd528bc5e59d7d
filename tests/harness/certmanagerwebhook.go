package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UnvalidatedLabel is a namespace label. If it is true, cert-manager's webhook does not validate the objects in the namespace. The webhook
// refuses lifetimes below an hour.
const UnvalidatedLabel = "cert-manager.io/disable-validation"

// StartCertManagerWebhook starts cert-manager's webhook and registers it with the API server, until the control plane stops.
func (c *ControlPlane) StartCertManagerWebhook(ctx context.Context) (*Process, error) {
	addr := FreeAddress()
	caFile := filepath.Join(c.dir, "cert-manager-webhook.pem")
	process, err := c.startCertManager(ctx, "--webhook-addr="+addr, "--webhook-ca-file="+caFile)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(caFile) //nolint:gosec // a path of ours
	if err == nil {
		err = c.installWebhook(ctx, "https://"+addr, ca)
	}
	if err != nil {
		return nil, errors.Join(err, process.Stop())
	}
	return process, nil
}

// installWebhook creates the webhook configurations of cert-manager's chart, and waits until they take effect.
func (c *ControlPlane) installWebhook(ctx context.Context, url string, ca []byte) error {
	const name, hook = "cert-manager-webhook", "webhook.cert-manager.io"
	fail, none, equivalent := admissionv1.Fail, admissionv1.SideEffectClassNone, admissionv1.Equivalent
	validate, mutate := url+"/validate", url+"/mutate"
	err := c.Client.Create(ctx, &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name:         hook,
			ClientConfig: admissionv1.WebhookClientConfig{URL: &mutate, CABundle: ca},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{
					APIGroups: []string{"cert-manager.io"}, APIVersions: []string{"v1"}, Resources: []string{"certificaterequests"},
				},
			}},
			FailurePolicy: &fail, SideEffects: &none, MatchPolicy: &equivalent, AdmissionReviewVersions: []string{"v1"},
		}},
	})
	if err != nil {
		return err
	}
	err = c.Client.Create(ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:         hook,
			ClientConfig: admissionv1.WebhookClientConfig{URL: &validate, CABundle: ca},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule: admissionv1.Rule{
					APIGroups: []string{"cert-manager.io", "acme.cert-manager.io"}, APIVersions: []string{"v1"}, Resources: []string{"*/*"},
				},
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: UnvalidatedLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"},
			}}},
			FailurePolicy: &fail, SideEffects: &none, MatchPolicy: &equivalent, AdmissionReviewVersions: []string{"v1"},
		}},
	})
	if err != nil {
		return err
	}
	return Eventually(ctx, readyTimeout, "the webhook is asked", func() error { return c.webhookAsked(ctx) })
}

// webhookAsked returns an error unless the API server refuses a Certificate without a common name and DNS names, which only the webhook
// does.
func (c *ControlPlane) webhookAsked(ctx context.Context) error {
	probe := Object(certManagerAPI, "Certificate", client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "probe"})
	probe.Object["spec"] = map[string]any{"secretName": "probe", "issuerRef": map[string]any{"name": issuer}}
	if err := c.Client.Create(ctx, probe, client.DryRunAll); !apierrors.IsForbidden(err) {
		return errors.Join(errors.New("a certificate without a name is not refused"), err)
	}
	return nil
}
