package endpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Refused is an error that a retry cannot fix: only a change of the object or its Secret can.
type Refused struct {
	reason string
	error
}

// Refuse returns an error with a reason in CamelCase for the condition Ready.
func Refuse(reason string, cause error) *Refused { return &Refused{reason, cause} }

// Reason returns the reason in CamelCase for the condition Ready.
func (r *Refused) Reason() string { return r.reason }

// Unwrap returns the cause.
func (r *Refused) Unwrap() error { return r.error }

// Credentials are the tokens in a Secret, for the senders of webhooks or the clients of a calendar. In each list, the current token comes
// first.
type Credentials struct {
	// Tokens are in the keys token and previousToken.
	Tokens []string
	// SigningTokens are in the keys signingToken and previousSigningToken.
	SigningTokens []string
}

// PathTokens returns the tokens that paths are derived from: Tokens, or SigningTokens if there are no others.
func (c Credentials) PathTokens() []string {
	if len(c.Tokens) > 0 {
		return c.Tokens
	}
	return c.SigningTokens
}

// SigningKeys returns the tokens for signatures: SigningTokens, or Tokens if there are no others.
func (c Credentials) SigningKeys() []string {
	if len(c.SigningTokens) > 0 {
		return c.SigningTokens
	}
	return c.Tokens
}

// Equal returns whether two Credentials have the same tokens in the same order.
func (c Credentials) Equal(other Credentials) bool {
	return slices.Equal(c.Tokens, other.Tokens) && slices.Equal(c.SigningTokens, other.SigningTokens)
}

// Tokens returns the tokens of a Secret that must have the key token. Errors are as for ReadCredentials.
func Tokens(ctx context.Context, secrets client.Reader, name types.NamespacedName, component string) ([]string, error) {
	c, err := ReadCredentials(ctx, secrets, name, component)
	if err == nil && len(c.Tokens) == 0 {
		err = Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf("invalid '%s' secret data: required field '%s'", name, v1alpha1.ReceiverTokenKey))
	}
	return c.Tokens, err
}

// ReadCredentials returns the tokens in a Secret, at least one. The error is a Refused if a retry cannot help. component is the directory
// in config that permits the controller to read Secrets.
func ReadCredentials(ctx context.Context, secrets client.Reader, name types.NamespacedName, component string) (c Credentials, err error) {
	secret := &corev1.Secret{}
	if wrong := validation.NameIsDNSSubdomain(name.Name, false); len(wrong) > 0 {
		// A retry cannot fix this, and all unknown paths would get 503.
		return c, Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf("secret '%s' cannot exist: %s", name, wrong[0]))
	}
	err = secrets.Get(ctx, name, secret)
	switch {
	case apierrors.IsNotFound(err):
		return c, Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf("secret '%s' does not exist", name))
	case apierrors.IsForbidden(err):
		return c, Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf("secret '%s' cannot be read, is %s installed? %w", name, component, err))
	case err != nil:
		return c, fmt.Errorf("secret '%s' cannot be read: %w", name, err)
	}
	c.Tokens, err = tokensIn(secret, v1alpha1.ReceiverTokenKey, v1alpha1.ReceiverPreviousTokenKey)
	if err == nil {
		c.SigningTokens, err = tokensIn(secret, v1alpha1.ReceiverSigningTokenKey, v1alpha1.ReceiverPreviousSigningTokenKey)
	}
	if err == nil && len(c.PathTokens()) == 0 {
		err = fmt.Errorf("required field '%s'", v1alpha1.ReceiverTokenKey)
	}
	if err != nil {
		return Credentials{}, Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf("invalid '%s' secret data: %w", name, err))
	}
	return c, nil
}

// tokensIn returns the tokens in two keys of a Secret, the current one first. It removes white space around tokens, because editors and
// echo add a newline, which a header cannot contain.
func tokensIn(secret *corev1.Secret, current, previous string) (tokens []string, err error) {
	for _, key := range []string{current, previous} {
		value := string(secret.Data[key])
		token := strings.TrimSpace(value)
		switch {
		case value == "":
			continue
		case token == "":
			return nil, fmt.Errorf("field '%s' has only white space", key)
		case key == previous && len(tokens) == 0:
			return nil, fmt.Errorf("field '%s' needs field '%s'", previous, current)
		}
		tokens = append(tokens, token)
	}
	return slices.Compact(tokens), nil
}
