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

// incoming is a request that was read.
type incoming struct {
	path   string
	header http.Header
	body   []byte
	// tokens and signingTokens are valid now. Type generic-oidc has none.
	tokens, signingTokens []string
	// now is when the request was read.
	now time.Time
	// claims of the token, once generic-oidc has verified them.
	claims map[string]any
}

// keys returns the tokens that the signature may be made with.
func (in *incoming) keys() []string {
	return endpoint.Credentials{Tokens: in.tokens, SigningTokens: in.signingTokens}.SigningKeys()
}

// webhook is what a verified request says.
type webhook struct {
	// event is what spec.events is compared with.
	event string
	// reason is why, in the words of the payload, empty if it has none.
	reason string
	// delivery tells a webhook from all others of its sender, empty if nothing does. No
	// two with the same delivery are taken within the replay window.
	delivery string
	// repeats is a delivery that this webhook must not repeat, although the webhook itself
	// is not remembered. It is for a signed body whose sender gave nothing to tell it by:
	// somebody who captured a remembered one can leave out a header that is not signed.
	repeats string
	// body is the JSON object that was sent, as expressions read it.
	body map[string]any
	// claims of the token, for generic-oidc.
	claims map[string]any
	// gates are the entries of spec.gateRefs that the sender selects, nil for all.
	gates []string
	// pathOnly is true if the path is the sender's only proof. Proxies log paths, so such
	// a webhook may close Gates, but not open them.
	pathOnly bool
}

// A verifier says whether a request is from the right sender, and what it says. It knows
// nothing about Gates.
type verifier interface {
	// verify returns an error that wraps errUnverified if the request may be from
	// anybody, and one that wraps errMalformed if it is from the right sender but
	// makes no sense. Neither has a token, a signature, or part of the body in its text.
	verify(ctx context.Context, in *incoming) (*webhook, error)
}

// A headerVerifier is a verifier that can tell from the headers alone who sent a request.
type headerVerifier interface {
	verifier
	// prove returns an error as verify does if the headers prove that the sender is another
	// one, and false if they prove nothing.
	prove(ctx context.Context, in *incoming) (bool, error)
}

var (
	// errUnverified must look to the sender as if the path did not exist.
	errUnverified = errors.New("not verified")
	// errMalformed is for the sender, who has proved to be the right one.
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
		return nil, fmt.Errorf("type %q is not supported", spec.Type)
	}
}

// equal compares in a time that does not tell where the two differ, or how long they are.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// equalToAny compares with all secrets, so that the time does not tell which one it was.
// An empty secret never matches.
func equalToAny(value string, secrets []string) bool {
	found := false
	for _, secret := range secrets {
		if equal(value, secret) && secret != "" {
			found = true
		}
	}
	return found
}

// object returns the JSON object in a body, or an empty object if the body is something else.
func object(body []byte) map[string]any {
	fields, err := parseObject(body)
	if err != nil || fields == nil {
		return map[string]any{}
	}
	return fields
}

// text returns the first field that is a text and not empty.
func text(fields map[string]any, names ...string) string {
	for _, name := range names {
		if value, ok := fields[name].(string); ok && strings.TrimSpace(value) != "" {
			return value
		}
	}
	return ""
}

// digestOf identifies a body.
func digestOf(body []byte) string { return fmt.Sprintf("%x", sha256.Sum256(body)) }
