package receivers

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestIssuerTokenIsAccepted(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	v := oidcVerifier(t, issuer.provider())
	for _, test := range []struct{ name, token string }{
		{"RS256", token(issuer.claims(nil), jose.RS256, rsaKey(), kid("rsa"))},
		{"RS512", token(issuer.claims(nil), jose.RS512, rsaKey(), kid("rsa"))},
		{"PS256", token(issuer.claims(nil), jose.PS256, rsaKey(), kid("rsa"))},
		{"ES256", token(issuer.claims(nil), jose.ES256, ecKey(), kid("ec"))},
		{"EdDSA", token(issuer.claims(nil), jose.EdDSA, edKey(), kid("ed"))},
		{"the name of no key", token(issuer.claims(nil), jose.ES256, ecKey(), nil)},
		{"several audiences", token(issuer.claims(map[string]any{"aud": []string{"other", v1alpha1.DefaultOIDCAudience}}), jose.RS256, rsaKey(), kid("rsa"))},
		{"a clock that is a little ahead", token(issuer.claims(map[string]any{"nbf": testNow.Add(time.Minute).Unix()}), jose.RS256, rsaKey(), kid("rsa"))},
	} {
		t.Run(test.name, func(t *testing.T) {
			hook := verified(t, v, withToken(test.token))
			if hook.claims["repository"] != "org/repo" || hook.reason != "smoke tests passed" || hook.body["reason"] == nil {
				t.Errorf("webhook is %+v", hook)
			}
		})
	}
	in := withToken(token(issuer.claims(nil), jose.RS256, rsaKey(), kid("rsa")))
	in.header.Set("Authorization", strings.Replace(in.header.Get("Authorization"), "Bearer", "bEARER", 1))
	in.body = []byte("not JSON")
	verified(t, v, in)
	if discoveries, keyRequests := issuer.asked(); discoveries != 1 || keyRequests != 1 {
		t.Errorf("issuer was asked %d times for its document, %d times for its keys", discoveries, keyRequests)
	}
}

// unsigned returns a token with the given header and signature.
func unsigned(header, payload, signature string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(payload)) + "." + signature
}

func TestInvalidIssuerTokenIsRefused(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	other := newTestIssuer(t, publicKey("rsa", rsaOther()))
	v := oidcVerifier(t, issuer.provider())
	signed := func(change map[string]any) string {
		return token(issuer.claims(change), jose.RS256, rsaKey(), kid("rsa"))
	}
	good := signed(nil)
	parts := strings.Split(good, ".")
	public := must(x509.MarshalPKIXPublicKey(&rsaKey().PublicKey))
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	asPKCS1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&rsaKey().PublicKey)})
	evil := rsaOther()
	ours := fmt.Sprintf(`{"iss":%q,"aud":"gating-controller","exp":%d,"repository":"org/repo","ref":"refs/heads/main"}`, issuer.URL, testNow.Add(time.Minute).Unix())
	bearers := map[string]string{
		"another audience":                     signed(map[string]any{"aud": "sigstore"}),
		"no audience":                          signed(map[string]any{"aud": nil}),
		"the beginning of our audience":        signed(map[string]any{"aud": "gating"}),
		"an audience that is a number":         signed(map[string]any{"aud": 7}),
		"a token that has expired":             signed(map[string]any{"exp": testNow.Add(-time.Second).Unix()}),
		"a token that never expires":           signed(map[string]any{"exp": nil}),
		"an expiry that is a text":             signed(map[string]any{"exp": "tomorrow"}),
		"an expiry beyond all time":            token([]byte(strings.Replace(ours, `"exp":`, `"exp":1e300,"x":`, 1)), jose.RS256, rsaKey(), kid("rsa")),
		"a token that is not good yet":         signed(map[string]any{"nbf": testNow.Add(time.Hour).Unix()}),
		"another issuer":                       token(other.claims(nil), jose.RS256, rsaOther(), kid("rsa")),
		"our issuer, signed by another":        token(issuer.claims(nil), jose.RS256, rsaOther(), kid("rsa")),
		"our issuer and a slash":               signed(map[string]any{"iss": issuer.URL + "/"}),
		"our issuer in upper case":             signed(map[string]any{"iss": strings.ToUpper(issuer.URL)}),
		"no issuer":                            signed(map[string]any{"iss": nil}),
		"an issuer that is a list":             signed(map[string]any{"iss": []string{issuer.URL}}),
		"another repository":                   signed(map[string]any{"repository": "evil/repo"}),
		"another branch":                       signed(map[string]any{"ref": "refs/heads/evil"}),
		"a claim less than is validated":       signed(map[string]any{"ref": nil}),
		"a claim less than is a variable":      signed(map[string]any{"repository": nil}),
		"a claim of another type":              signed(map[string]any{"repository": 7}),
		"no algorithm":                         unsigned(`{"alg":"none"}`, ours, ""),
		"no algorithm, as an old trick":        unsigned(`{"alg":"None","kid":"rsa"}`, ours, parts[2]),
		"no algorithm at all":                  unsigned(`{}`, ours, parts[2]),
		"HS256 with the public key as PEM":     token(issuer.claims(nil), jose.HS256, asPEM, kid("rsa")),
		"HS256 with the public key as PKCS #1": token(issuer.claims(nil), jose.HS256, asPKCS1, kid("rsa")),
		"HS256 with the public key as DER":     token(issuer.claims(nil), jose.HS256, public, kid("rsa")),
		"HS256 with the modulus":               token(issuer.claims(nil), jose.HS256, rsaKey().N.Bytes(), nil),
		"a key of its own in its header":       token(issuer.claims(nil), jose.RS256, evil, map[string]any{"jwk": publicKey("rsa", evil)}),
		"a URL of its own keys in its header":  token(issuer.claims(nil), jose.RS256, evil, map[string]any{"kid": "rsa", "jku": other.URL + "/keys"}),
		"the name of another key":              token(issuer.claims(nil), jose.RS256, rsaKey(), kid("ec")),
		"the name of a key that is not a name": token(issuer.claims(nil), jose.RS256, rsaKey(), kid("../../rsa")),
		"the name of a key nobody has":         token(issuer.claims(nil), jose.RS256, rsaKey(), kid("new")),
		"a critical header":                    token(issuer.claims(nil), jose.RS256, rsaKey(), map[string]any{"kid": "rsa", "crit": []string{"exp"}, "exp": 1}),
		"the payload of another token":         parts[0] + "." + strings.Split(signed(map[string]any{"sub": "me"}), ".")[1] + "." + parts[2],
		"no signature":                         parts[0] + "." + parts[1] + ".",
		"half a signature":                     good[:len(good)-100],
		"four parts":                           good + ".e30",
		"two parts":                            parts[0] + "." + parts[1],
		"padding":                              good + "==",
		"a space in it":                        good[:20] + " " + good[20:],
		"a NUL byte":                           good + "\x00",
		"claims that are an array":             token([]byte(`["iss"]`), jose.RS256, rsaKey(), kid("rsa")),
		"claims with a number too large":       token([]byte(strings.Replace(ours, "{", `{"n":1e999,`, 1)), jose.RS256, rsaKey(), kid("rsa")),
		"claims nested too deep":               token([]byte(strings.Replace(ours, "{", `{"n":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+",", 1)), jose.RS256, rsaKey(), kid("rsa")),
		"an issuer in other case, and ours":    token([]byte(strings.Replace(ours, "{", `{"ISS":"`+other.URL+`",`, 1)), jose.RS256, rsaOther(), kid("rsa")),
		"200 KiB of nothing":                   strings.Repeat("A", 200<<10),
		"nothing":                              "",
		"the parts of nothing":                 "..",
		"as JSON":                              fullJSON(issuer),
	}
	var attempts []attempt
	for name, bearer := range bearers {
		attempts = append(attempts, attempt{name, set("Authorization", "Bearer "+bearer), errUnverified})
	}
	attempts = append(attempts, []attempt{
		{"as it was sent", func(*incoming) {}, nil},
		{"no header", without("Authorization"), errUnverified},
		{"two headers", twice("Authorization", "Bearer "+good, "Bearer "+good), errUnverified},
		{"another scheme", set("Authorization", "Basic "+good), errUnverified},
		{"no scheme", set("Authorization", good), errUnverified},
	}...)
	try(t, v, func() *incoming { return withToken(good) }, attempts)
	if discoveries, _ := other.asked(); discoveries != 0 {
		t.Errorf("an issuer that is not in the spec was asked %d times", discoveries)
	}
}

// fullJSON returns a valid token in a serialization that is not allowed for tokens, with dots that make it resemble one.
func fullJSON(issuer *testIssuer) string {
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: rsaKey()}, nil))
	payload := must(signer.Sign(fmt.Appendf(nil, `{"iss":%q}`, issuer.URL))).FullSerialize()
	return strings.Replace(payload, "{", `{"a":".`+base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iss":%q}`, issuer.URL))+`.",`, 1)
}

func TestTokenWithIDIsAcceptedOnce(t *testing.T) {
	issuer, other := newTestIssuer(t, standardKeys()...), newTestIssuer(t, standardKeys()...)
	v := oidcVerifier(t, issuer.provider(), other.provider())
	delivery := func(from *testIssuer, id any, key string) string {
		var private any = rsaKey()
		algorithm := jose.RS256
		if key == "ec" {
			private, algorithm = ecKey(), jose.ES256
		}
		return verified(t, v, withToken(token(from.claims(map[string]any{"jti": id}), algorithm, private, kid(key)))).delivery
	}
	first := delivery(issuer, "one", "rsa")
	if first == "" || strings.Contains(first, "one") || first != delivery(issuer, "one", "ec") {
		t.Error("the same id is not the same delivery")
	}
	if first == delivery(issuer, "two", "rsa") || first == delivery(other, "one", "rsa") {
		t.Error("another id, or the same of another issuer, is the same delivery")
	}
	for _, id := range []any{nil, "", 7} {
		if got := delivery(issuer, id, "rsa"); got != "" {
			t.Errorf("id %v is delivery %q", id, got)
		}
	}
}

func TestVariablesAreReadInOrder(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	provider := issuer.provider()
	provider.Audience = "deployments"
	provider.Variables = []v1alpha1.OIDCVariable{
		{Name: "parts", Expression: "claims.repository.split('/')"},
		{Name: "named", Expression: "{'owner': vars.parts[0], 'name': vars.parts[1]}"},
		{Name: "attempts", Expression: "claims.run_attempt + 1.0"},
		{Name: "since", Expression: "timestamp(int(claims.iat))"},
		{Name: "missing", Expression: "claims.?actor.orValue('nobody')"},
		{Name: "all", Expression: "claims"},
	}
	provider.Validations = []v1alpha1.OIDCValidation{{
		Expression: "vars.named.owner == 'org' && vars.named['name'] == 'repo' && vars.attempts == 2 && size(vars.parts) == 2 && " +
			"vars.since < timestamp('2026-03-02T10:00:00Z') && vars.missing == 'nobody' && vars.all.repository == 'org/repo'",
		Message: "must all be as it was",
	}}
	verified(t, oidcVerifier(t, provider), withToken(token(issuer.claims(map[string]any{"aud": "deployments"}), jose.RS256, rsaKey(), kid("rsa"))))
}

func TestInvalidExpressionIsNamed(t *testing.T) {
	for _, test := range []struct {
		name, want string
		change     func(provider *v1alpha1.OIDCProvider)
	}{
		{"a validation", "oidcProviders[1].validations[1].expression: ", func(p *v1alpha1.OIDCProvider) { p.Validations[1].Expression = "claims." }},
		{"a validation that is not a bool", "oidcProviders[1].validations[0].expression: ", func(p *v1alpha1.OIDCProvider) { p.Validations[0].Expression = "'yes'" }},
		{"a variable", "oidcProviders[1].variables[0].expression: ", func(p *v1alpha1.OIDCProvider) { p.Variables[0].Expression = "unknown.x" }},
		{"a variable that is there twice", "oidcProviders[1].variables[1].name: ", func(p *v1alpha1.OIDCProvider) { p.Variables[1].Name = p.Variables[0].Name }},
		{"no validation", "oidcProviders[1].validations: ", func(p *v1alpha1.OIDCProvider) { p.Validations = nil }},
		{"the same issuer", "oidcProviders[1].issuerURL: ", func(p *v1alpha1.OIDCProvider) { p.IssuerURL = "https://first.example" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			first, second := newTestIssuer(t).provider(), newTestIssuer(t).provider()
			first.IssuerURL = "https://first.example"
			test.change(&second)
			_, err := verifierOf(&v1alpha1.GateReceiverSpec{Type: v1alpha1.GenericOIDCReceiver, OIDCProviders: []v1alpha1.OIDCProvider{first, second}})
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error is %v, want %s...", err, test.want)
			}
		})
	}
	if _, err := verifierOf(&v1alpha1.GateReceiverSpec{Type: v1alpha1.GenericOIDCReceiver}); err == nil {
		t.Error("no provider at all is good")
	}
}

func TestValidationErrorHasMessageWithoutClaim(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	v := oidcVerifier(t, issuer.provider())
	_, err := v.verify(t.Context(), withToken(token(issuer.claims(map[string]any{"ref": "refs/heads/secret-branch"}), jose.RS256, rsaKey(), kid("rsa"))))
	if !errors.Is(err, errUnverified) || !strings.Contains(err.Error(), "must be of main") || strings.Contains(err.Error(), "secret-branch") {
		t.Errorf("error is %v", err)
	}
}
