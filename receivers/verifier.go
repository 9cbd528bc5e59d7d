package receivers

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// incoming is a request that was read.
type incoming struct {
	path   string
	header http.Header
	body   []byte
	// tokens that are good at present, none for generic-oidc.
	tokens []string
	// now is when the request was read.
	now time.Time
	// claims of the token, once generic-oidc has verified them.
	claims map[string]any
}

// webhook is what a verified request says.
type webhook struct {
	// event is what spec.events is compared with.
	event string
	// reason is why, in the words of the payload, empty if it has none.
	reason string
	// delivery tells a webhook from all others of its sender, empty if that gives
	// nothing to tell by. No two with the same are taken within the replay window.
	delivery string
	// repeats is a delivery that this one must not be a repetition of, although it is
	// not to be remembered itself: of a signed body whose sender gave nothing to tell by.
	// Who captured one that was remembered can leave out a header that is not signed.
	repeats string
	// body is the JSON object that was sent, as expressions read it.
	body map[string]any
	// claims of the token, for generic-oidc.
	claims map[string]any
	// gates are the only ones of spec.gates that the sender wants, nil for all.
	gates []string
}

// A verifier says whether a request is from who it must be from, and what it says.
// It knows nothing of Gates.
type verifier interface {
	// verify returns an error that wraps errUnverified if the request may be from
	// anybody, and one that wraps errMalformed if it is from the right sender but
	// makes no sense. Neither has a token, a signature, or part of the body in its text.
	verify(ctx context.Context, in *incoming) (*webhook, error)
}

// A headerVerifier is a verifier that needs no more than the headers to know who sent a
// request.
type headerVerifier interface {
	verifier
	// prove returns an error as verify does unless the headers prove it.
	prove(ctx context.Context, in *incoming) error
}

var (
	// errUnverified must look to the sender as if there were no such path.
	errUnverified = errors.New("not verified")
	// errMalformed is told to the sender, who has proved to be the right one.
	errMalformed = errors.New("malformed")
)

// verifierOf returns the verifier for a receiver.
func verifierOf(spec *v1alpha1.GateReceiverSpec) (verifier, error) {
	switch spec.Type {
	case v1alpha1.GenericReceiver:
		return generic{}, nil
	case v1alpha1.GenericHMACReceiver:
		return genericHMAC{}, nil
	case v1alpha1.GenericOIDCReceiver:
		return newGenericOIDC(spec.OIDCProviders)
	case v1alpha1.GitHubReceiver:
		return github{}, nil
	case v1alpha1.GitLabReceiver:
		return gitlab{}, nil
	case v1alpha1.FluxEventReceiver:
		return fluxEvent{}, nil
	case v1alpha1.AlertmanagerReceiver:
		return alertmanager{}, nil
	default:
		return nil, fmt.Errorf("type %q is not supported", spec.Type)
	}
}

// equal compares in a time that says nothing about where they differ, nor about the
// length of either.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// equalToAny compares with all, so that the time does not tell which it was. Nothing
// is equal to an empty secret.
func equalToAny(value string, secrets []string) bool {
	found := false
	for _, secret := range secrets {
		if equal(value, secret) && secret != "" {
			found = true
		}
	}
	return found
}

// object returns the JSON object in a body. One that is none is an empty object: not
// every sender has something to say.
func object(body []byte) map[string]any {
	fields := map[string]any{}
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
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
