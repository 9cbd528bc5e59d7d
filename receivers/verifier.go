package receivers

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/endpoint"
)

// incoming is a request whose body has been read.
type incoming struct {
	path   string
	header http.Header
	body   []byte
	// tokens and signingTokens are the current tokens of the receiver. Type generic-oidc has none.
	tokens, signingTokens []string
	// now is the time when the request was read.
	now time.Time
	// claims are the claims of the token after generic-oidc has verified them.
	claims map[string]any
}

// keys returns the tokens for signatures.
func (in *incoming) keys() []string {
	return endpoint.Credentials{Tokens: in.tokens, SigningTokens: in.signingTokens}.SigningKeys()
}

// webhook is the content of a verified request.
type webhook struct {
	// event is compared with spec.events.
	event string
	// reason is the reason in the payload, empty if there is none.
	reason string
	// delivery identifies a webhook of its sender, empty if it cannot be identified. The same delivery is accepted only once in the replay
	// window.
	delivery string
	// repeats is a delivery that this webhook must not repeat, although the webhook itself is not recorded. It is set for a signed body
	// without an identifier, because an attacker who has captured a recorded webhook could omit an unsigned header.
	repeats string
	// body is the JSON object in the request, in the form that expressions read.
	body map[string]any
	// claims are the claims of the token, for generic-oidc.
	claims map[string]any
	// gates are the entries of spec.gateRefs selected by the sender, nil for all.
	gates []string
	// pathOnly is true if the path is the only proof of the sender. Proxies log paths, so such a webhook may close Gates, but not open them.
	pathOnly bool
}

// verifier verifies the sender of a request, and returns the content of the request. It does not depend on Gates.
type verifier interface {
	// verify returns an error that wraps errUnverified if the sender is not verified, or errMalformed if the sender is verified but the
	// request is invalid. The texts of these errors contain no token, no signature and no part of the body.
	verify(ctx context.Context, in *incoming) (*webhook, error)
}

// headerVerifier is a verifier that can verify the sender from the headers alone.
type headerVerifier interface {
	verifier
	// prove returns true if the headers verify the sender, and false if the body is also needed. It returns the same errors as verify.
	prove(ctx context.Context, in *incoming) (bool, error)
}

var (
	// errUnverified is returned for an unverified sender. The response must be the same as for an unknown path.
	errUnverified = errors.New(msgNotVerified)
	// errMalformed is returned for an invalid request from a verified sender.
	errMalformed = errors.New("malformed")
)

// verifierOf returns the verifier for a receiver.
func verifierOf(spec *v1alpha1.GateReceiverSpec) (verifier, error) {
	switch spec.Type {
	case v1alpha1.GenericReceiver:
		return generic{}, nil
	case v1alpha1.GenericHMACReceiver:
		return newGenericHMAC(spec.Signature)
	case v1alpha1.GenericOIDCReceiver:
		return newGenericOIDC(spec.OIDCProviders)
	case v1alpha1.GitHubReceiver:
		return github{}, nil
	case v1alpha1.GitLabReceiver:
		return gitlab{}, nil
	case v1alpha1.StandardWebhooksReceiver:
		return standardWebhooks{}, nil
	case v1alpha1.FluxEventReceiver:
		return fluxEvent{}, nil
	case v1alpha1.AlertmanagerReceiver:
		return alertmanager{}, nil
	default:
		return nil, fmt.Errorf(msgTypeUnsupported, spec.Type)
	}
}

// equal compares two texts. The time it takes depends neither on the position of a difference nor on the lengths.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// equalToAny compares a value with all secrets, so that the time does not reveal which secret matches. An empty secret never matches.
func equalToAny(value string, secrets []string) bool {
	found := false
	for _, secret := range secrets {
		if equal(value, secret) && secret != "" {
			found = true
		}
	}
	return found
}

// object returns the JSON object in a body. It is empty if the body is anything else.
func object(body []byte) map[string]any {
	fields, err := parseObject(body)
	if err != nil || fields == nil {
		return map[string]any{}
	}
	return fields
}

// text returns the first of the named fields that is a non-blank string, empty if there is none.
func text(fields map[string]any, names ...string) string {
	for _, name := range names {
		if value, ok := fields[name].(string); ok && strings.TrimSpace(value) != "" {
			return value
		}
	}
	return ""
}

// digestOf returns a digest that identifies a body.
func digestOf(body []byte) string { return fmt.Sprintf("%x", sha256.Sum256(body)) }
