package controllers

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,resourceNames=gate-exception-stamp;gated-source-stamp,verbs=get

// The names of the policies and of their bindings in config/policies that refuse an
// exception or an approval of a revision which is not stamped.
const (
	ExceptionStamp   = "gate-exception-stamp"
	GatedSourceStamp = "gated-source-stamp"
)

// StampedBy returns whether an API server stamps who approves, by the name of the policy
// for that: without config/policies everybody can claim to be anybody. What the
// controller may not see is not there.
func StampedBy(reader client.Reader, stampPolicy string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
		for _, obj := range []client.Object{policy, binding} {
			if err := reader.Get(ctx, client.ObjectKey{Name: stampPolicy}, obj); err != nil {
				if apierrors.IsForbidden(err) {
					return false, nil
				}
				return false, client.IgnoreNotFound(err)
			}
		}
		return binding.Spec.PolicyName == stampPolicy && slices.Contains(binding.Spec.ValidationActions, admissionv1.Deny), nil
	}
}
