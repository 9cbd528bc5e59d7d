package gate

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,resourceNames=gate-exception-stamp;gated-source-stamp;gate-approval,verbs=get

// The names of the admission policies in config/policies that refuse unstamped exceptions, approvals of revisions, and requests and
// approvals on Gates. Their bindings have the same names.
const (
	ExceptionStamp   = "gate-exception-stamp"
	GatedSourceStamp = "gated-source-stamp"
	ApprovalPolicy   = "gate-approval"
)

// StampedBy returns a function that checks whether the named admission policy is bound with the action Deny. Without that policy, a user
// can impersonate another user. A policy that the controller is not allowed to read counts as missing.
func StampedBy(reader client.Reader, name string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
		for _, obj := range []client.Object{policy, binding} {
			if err := reader.Get(ctx, client.ObjectKey{Name: name}, obj); err != nil {
				if apierrors.IsForbidden(err) {
					return false, nil
				}
				return false, client.IgnoreNotFound(err)
			}
		}
		return binding.Spec.PolicyName == name && slices.Contains(binding.Spec.ValidationActions, admissionv1.Deny), nil
	}
}
