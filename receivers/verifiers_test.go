package receivers

import (
	"crypto/hmac"
	"encoding/hex"
	"errors"
	"hash"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	testToken     = "a-token-of-the-sender"
	previousToken = "the-token-before-that"
)

var testNow = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// attempt is a change of a valid request, and the expected error.
type attempt struct {
	name   string
	change func(in *incoming)
	want   error
}

// try runs attempts, each with a new request. No error may reveal a secret.
func try(t *testing.T, v verifier, good func() *incoming, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			in := good()
			a.change(in)
			hook, err := v.verify(t.Context(), in)
			if !errors.Is(err, a.want) || a.want == nil && err != nil {
				t.Fatalf("error is %v, want %v", err, a.want)
			}
			if (hook == nil) != (err != nil) {
				t.Fatalf("webhook is %v with error %v", hook, err)
			}
			if other := map[error]error{errUnverified: errMalformed, errMalformed: errUnverified}[a.want]; other != nil && errors.Is(err, other) {
				t.Errorf("error is of both classes: %v", err)
			}
			if told := toldBy(err, in); told != "" {
				t.Errorf("error tells %q: %v", told, err)
			}
		})
	}
}

// toldBy returns the secret of a request that an error contains: a token, the value of a header, or twelve bytes of the body. It is empty
// if there is none.
func toldBy(err error, in *incoming) string {
	if err == nil {
		return ""
	}
	message := err.Error()
	secrets := slices.Clone(in.tokens)
	for name, values := range in.header {
		for _, value := range values {
			// Other headers, such as content types, have short words that are not secret.
			if strings.Contains(name, "Signature") || strings.Contains(name, "Token") || name == "Authorization" {
				secrets = append(secrets, value)
				_, after, _ := strings.Cut(value, "=")
				_, last, _ := strings.Cut(value, " ")
				secrets = append(secrets, after, last)
			}
		}
	}
	for _, secret := range secrets {
		if len(secret) >= 4 && strings.TrimSpace(secret) != "Bearer" && strings.Contains(message, secret) {
			return secret
		}
	}
	for end := 12; end <= len(message); end++ {
		if part := message[end-12 : end]; strings.Contains(string(in.body), part) {
			return part
		}
	}
	return ""
}

// signatureOf computes a signature independently of the code under test.
func signatureOf(algorithm string, newHash func() hash.Hash, token string, body []byte) string {
	mac := hmac.New(newHash, []byte(token))
	mac.Write(body)
	return algorithm + "=" + hex.EncodeToString(mac.Sum(nil))
}

// request returns a request at testNow. headers has pairs of names and values.
func request(body string, tokens []string, headers ...string) *incoming {
	in := &incoming{header: http.Header{}, body: []byte(body), tokens: tokens, now: testNow}
	for i := 0; i < len(headers); i += 2 {
		in.header.Set(headers[i], headers[i+1])
	}
	return in
}

func verified(t *testing.T, v verifier, in *incoming) *webhook {
	t.Helper()
	hook, err := v.verify(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return hook
}

// notObjects has bodies that cannot be read as a JSON object.
var notObjects = map[string]string{
	"an empty body":                  "",
	"null":                           "null",
	"an array":                       `[{"status":"firing"}]`,
	"a text":                         `"firing"`,
	"half an object":                 `{"status":"firing"`,
	"two objects":                    `{}{}`,
	"an object nested too deep":      strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000),
	"a number that is too large":     `{"n":1e999}`,
	"a NUL byte":                     "{\"a\":\"\x00\"}",
	"UTF-16":                         "\xff\xfe{\x00}\x00",
	"an object behind a byte order":  "\xef\xbb\xbf{}",
	"a form where JSON should be":    "payload=%7B%7D",
	"an object with a trailing byte": `{"a":1}x`,
}

func TestNonObjectBodyIsEmptyObject(t *testing.T) {
	for name, body := range notObjects {
		t.Run(name, func(t *testing.T) {
			hook := verified(t, generic{}, request(body, []string{testToken}))
			if hook.body == nil || len(hook.body) != 0 || hook.reason != "" || hook.delivery != "" {
				t.Errorf("webhook is %+v", hook)
			}
		})
	}
}

func TestUnusualJSONTextIsDecoded(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"bytes that are not UTF-8 are replaced", "{\"reason\":\"a\xffb\"}", "a\uFFFDb"},
		{"half a surrogate is replaced", `{"reason":"a\ud800b"}`, "a\uFFFDb"},
		{"an escaped NUL is kept", `{"reason":"a\u0000b"}`, "a\x00b"},
		{"the last of two keys counts", `{"reason":"first","reason":"last"}`, "last"},
		{"a key in other case is another key", `{"Reason":"wrong","message":"right"}`, "right"},
		{"a reason that is a number is none", `{"reason":1,"message":"right"}`, "right"},
		{"a reason of spaces is none", `{"reason":"  ","message":"right"}`, "right"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := verified(t, generic{}, request(test.body, nil)).reason; got != test.want {
				t.Errorf("reason is %q, want %q", got, test.want)
			}
		})
	}
}

func TestEachAPITypeHasVerifier(t *testing.T) {
	provider := v1alpha1.OIDCProvider{IssuerURL: "https://ci.example", Validations: []v1alpha1.OIDCValidation{{Expression: "true", Message: "never"}}}
	for _, kind := range []string{
		v1alpha1.GenericReceiver, v1alpha1.GenericHMACReceiver, v1alpha1.GenericOIDCReceiver, v1alpha1.GitHubReceiver,
		v1alpha1.GitLabReceiver, v1alpha1.StandardWebhooksReceiver, v1alpha1.FluxEventReceiver, v1alpha1.AlertmanagerReceiver,
	} {
		if v, err := verifierOf(&v1alpha1.GateReceiverSpec{Type: kind, OIDCProviders: []v1alpha1.OIDCProvider{provider}}); err != nil || v == nil {
			t.Errorf("%s: %v, %v", kind, v, err)
		}
	}
	if _, err := verifierOf(&v1alpha1.GateReceiverSpec{Type: "quay"}); err == nil {
		t.Error("an unknown type has a verifier")
	}
}

// twice sets a header twice.
func twice(name, first, second string) func(*incoming) {
	return func(in *incoming) {
		in.header.Set(name, first)
		in.header.Add(name, second)
	}
}

func set(name, value string) func(*incoming) {
	return func(in *incoming) { in.header.Set(name, value) }
}

func without(name string) func(*incoming) {
	return func(in *incoming) { in.header.Del(name) }
}

// tokens replaces the tokens of the receiver.
func tokens(all ...string) func(*incoming) { return func(in *incoming) { in.tokens = all } }

// previousToo adds the previous token to those of the receiver.
func previousToo(in *incoming) { in.tokens = append(in.tokens, previousToken) }

func all(changes ...func(*incoming)) func(*incoming) {
	return func(in *incoming) {
		for _, change := range changes {
			change(in)
		}
	}
}
