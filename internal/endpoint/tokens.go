package endpoint

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Refused is an error that a retry cannot fix: the object or its Secret has to change first.
type Refused struct {
	reason string
	error
}

// Refuse returns an error with a reason in CamelCase for the condition Ready.
func Refuse(reason string, cause error) *Refused { return &Refused{reason, cause} }

// Reason returns the reason in CamelCase for the condition Ready.
func (r *Refused) Reason() string { return r.reason }

// Unwrap returns what is wrong.
func (r *Refused) Unwrap() error { return r.error }

// Tokens returns those that a Secret has now, the current one first. The error is a Refused if a retry would not help. The component is the folder
// of config that lets the controller read Secrets.
func Tokens(ctx context.Context, secrets client.Reader, name types.NamespacedName, component string) ([]string, error) {
	secret := &corev1.Secret{}
	if wrong := validation.NameIsDNSSubdomain(name.Name, false); len(wrong) > 0 {
		// A retry would not fix it, and all unknown paths would be answered with 503.
		return nil, Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf("secret '%s' cannot exist: %s", name, wrong[0]))
	}
	err := secrets.Get(ctx, name, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf("secret '%s' does not exist", name))
	case apierrors.IsForbidden(err):
		return nil, Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf("secret '%s' cannot be read, is %s installed? %w", name, component, err))
	case err != nil:
		return nil, fmt.Errorf("secret '%s' cannot be read: %w", name, err)
	}
	tokens := []string{string(secret.Data[v1alpha1.ReceiverTokenKey]), string(secret.Data[v1alpha1.ReceiverPreviousTokenKey])}
	if tokens[0] == "" {
		return nil, Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf("invalid '%s' secret data: required field 'token'", name))
	}
	return slices.DeleteFunc(slices.Compact(tokens), func(token string) bool { return token == "" }), nil
}
