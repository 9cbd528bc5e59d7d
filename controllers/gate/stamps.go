package gate

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,resourceNames=gate-exception-stamp;gated-source-stamp;gate-approval,verbs=get

// The names of the policies and of their bindings in config/policies that refuse what is
// not stamped: an exception, an approval of a revision, and a Gate that does not say who
// asks to open it and who approves that.
const (
	ExceptionStamp   = "gate-exception-stamp"
	GatedSourceStamp = "gated-source-stamp"
	ApprovalPolicy   = "gate-approval"
)

// StampedBy returns whether an API server stamps who writes and who approves, by the name
// of the policy for that: without config/policies everybody can claim to be anybody. A policy
// that the controller may not see is not there.
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
