package receivers

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/expression"
)

// genericOIDC accepts any request with a token of one of its issuers that passes the validations for that issuer. The body is handled as
// for generic.
type genericOIDC struct {
	providers map[string]*oidcProvider
}

// oidcProvider is an issuer with the requirements for its tokens.
type oidcProvider struct {
	issuer      *issuer
	audience    string
	variables   []oidcVariable
	validations []oidcValidation
}

type oidcVariable struct {
	name  string
	value *expression.Value
}

type oidcValidation struct {
	condition *expression.Bool
	message   string
}

// newGenericOIDC compiles the expressions of a spec. Keys are fetched when the first token arrives.
func newGenericOIDC(specs []v1alpha1.OIDCProvider) (*genericOIDC, error) {
	if len(specs) == 0 {
		return nil, errors.New(msgNoProvider)
	}
	providers := map[string]*oidcProvider{}
	for i := range specs {
		spec := &specs[i]
		path := fmt.Sprintf("oidcProviders[%d]", i)
		if providers[spec.IssuerURL] != nil {
			return nil, fmt.Errorf(msgIssuerTwice, path)
		}
		provider, err := newOIDCProvider(spec, path)
		if err != nil {
			return nil, err
		}
		providers[spec.IssuerURL] = provider
	}
	return &genericOIDC{providers}, nil
}

func newOIDCProvider(spec *v1alpha1.OIDCProvider, path string) (*oidcProvider, error) {
	provider := &oidcProvider{issuer: issuerOf(spec.IssuerURL), audience: spec.GetAudience()}
	names := map[string]bool{}
	for i, variable := range spec.Variables {
		if names[variable.Name] {
			return nil, fmt.Errorf(msgVariableTwice, path, i)
		}
		names[variable.Name] = true
		value, err := expression.NewValue(variable.Expression, expression.OfProvider...)
		if err != nil {
			return nil, fmt.Errorf("%s.variables[%d].expression: %w", path, i, err)
		}
		provider.variables = append(provider.variables, oidcVariable{variable.Name, value})
	}
	if len(spec.Validations) == 0 {
		return nil, fmt.Errorf(msgNoValidation, path)
	}
	for i, validation := range spec.Validations {
		condition, err := expression.NewBool(validation.Expression, expression.OfProvider...)
		if err != nil {
			return nil, fmt.Errorf("%s.validations[%d].expression: %w", path, i, err)
		}
		provider.validations = append(provider.validations, oidcValidation{condition, validation.Message})
	}
	return provider, nil
}

func (v *genericOIDC) prove(ctx context.Context, in *incoming) (bool, error) {
	token := bearer(in.header)
	// The claim only selects the keys that must verify the token. No requests are sent to a URL that is not in the spec.
	provider, ok := v.providers[unverifiedIssuer(token)]
	if !ok {
		return false, fmt.Errorf(msgProviderBearer, errUnverified)
	}
	claims, err := provider.claimsOf(ctx, token, in.now)
	if err != nil {
		return false, err
	}
	if err := provider.validate(ctx, claims); err != nil {
		return false, err
	}
	in.claims = claims
	return true, nil
}

func (v *genericOIDC) verify(ctx context.Context, in *incoming) (*webhook, error) {
	if in.claims == nil {
		if _, err := v.prove(ctx, in); err != nil {
			return nil, err
		}
	}
	body := object(in.body)
	hook := &webhook{reason: text(body, "reason", "message"), body: body, claims: in.claims}
	if id := text(in.claims, "jti"); id != "" {
		hook.delivery = digestOf([]byte(text(in.claims, "iss") + "\x00" + id))
	}
	return hook, nil
}

// unverifiedIssuer returns the issuer in a token, which may be forged. It is empty if the token contains none.
func unverifiedIssuer(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	return text(object(payload), "iss")
}

// claimsOf returns the claims of a token. The token must be signed by the issuer, intended for our audience, and currently valid.
func (p *oidcProvider) claimsOf(ctx context.Context, token string, now time.Time) (map[string]any, error) {
	keys := &keysAt{issuer: p.issuer, now: now}
	verifier := oidc.NewVerifier(p.issuer.url, keys, &oidc.Config{
		ClientID:             p.audience,
		SupportedSigningAlgs: signingAlgorithms(),
		Now:                  func() time.Time { return now },
	})
	verified, err := verifier.Verify(ctx, token)
	if keys.err != nil {
		return nil, keys.err
	}
	// The error of the library may contain parts of the token.
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return nil, fmt.Errorf(msgTokenExpired, errUnverified, p.issuer.url)
	case err != nil:
		return nil, fmt.Errorf(msgTokenInvalid, errUnverified, p.issuer.url, p.audience)
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil || claims == nil {
		return nil, fmt.Errorf(msgClaimsForm, errUnverified, p.issuer.url)
	}
	return claims, nil
}

// validate evaluates the variables in the order of the spec, and then all validations.
func (p *oidcProvider) validate(ctx context.Context, claims map[string]any) error {
	vars := map[string]any{}
	data := map[string]any{"claims": claims, "vars": vars}
	for _, variable := range p.variables {
		value, err := variable.value.Evaluate(ctx, data)
		if err != nil {
			return fmt.Errorf(msgVariableFailed, errUnverified, variable.name)
		}
		vars[variable.name] = value
	}
	for _, validation := range p.validations {
		ok, err := validation.condition.Evaluate(ctx, data)
		if err != nil {
			return fmt.Errorf(msgValidationFailed, errUnverified, validation.message)
		}
		if !ok {
			return fmt.Errorf("%w: %s", errUnverified, validation.message)
		}
	}
	return nil
}
