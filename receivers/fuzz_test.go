package receivers

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// sentences are the texts that errors may have. They contain no part of a request.
var sentences = []string{
	"not verified: X-Signature is not the signature of the body",
	"not verified: X-Hub-Signature-256 is not the signature of the body",
	"not verified: X-Hub-Signature is not the signature of the body",
	"not verified: X-Gitlab-Token is not the token",
	"not verified: webhook-signature is not the signature of the webhook",
	"not verified: X-Sign is not the signature of the body",
	"not verified: Authorization must be Bearer and the token",
	"not verified: Authorization must be Bearer and a token of a provider",
	"not verified: must be of org",
	"not verified: must be of main",
	"not verified: a validation cannot be evaluated for the claims: must be of org",
	"not verified: a validation cannot be evaluated for the claims: must be of main",
	"not verified: variable owner cannot be evaluated for the claims",
	"not verified: variable isOurs cannot be evaluated for the claims",
	"malformed: the body is not a JSON object",
	"malformed: the body is not a form with one payload",
	"malformed: the body is not an event of Flux",
	"malformed: an event must have the kind and name of its object, a reason and a message",
	"malformed: metadata.gate names no Gate",
	"malformed: timestamp must be less than 5m0s from now",
	"malformed: status must be firing or resolved",
	"malformed: X-GitHub-Event and X-GitHub-Delivery must each occur exactly once",
	"malformed: X-Gitlab-Event must occur exactly once",
	"malformed: Content-Type must be application/json or application/x-www-form-urlencoded",
}

// fuzzVerify runs a verifier on a request with arbitrary content.
func fuzzVerify(t *testing.T, v verifier, in *incoming, more ...string) *webhook {
	t.Helper()
	body := bytes.Clone(in.body)
	hook, err := v.verify(t.Context(), in)
	if !bytes.Equal(body, in.body) {
		t.Error("the body was changed")
	}
	if err != nil {
		if hook != nil || errors.Is(err, errUnverified) == errors.Is(err, errMalformed) {
			t.Errorf("webhook %v with error %v", hook, err)
		}
		if !slices.Contains(sentences, err.Error()) && !slices.Contains(more, err.Error()) {
			t.Errorf("error says %q", err)
		}
		return nil
	}
	if hook.body == nil {
		t.Error("there is no body to evaluate expressions over")
	}
	if hook.delivery != "" && hook.repeats != "" {
		t.Error("a delivery that also repeats")
	}
	return hook
}

var fuzzHashes = map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}

// signedByHand verifies a signature independently of the code under test: it computes all valid signatures and compares them.
func signedByHand(value, body string, tokens []string, algorithms ...string) bool {
	for _, algorithm := range algorithms {
		for _, token := range tokens {
			mac := hmac.New(fuzzHashes[algorithm], []byte(token))
			mac.Write([]byte(body))
			if token != "" && strings.HasPrefix(value, algorithm+"=") &&
				strings.EqualFold(value, algorithm+"="+hex.EncodeToString(mac.Sum(nil))) {
				return true
			}
		}
	}
	return false
}

// fuzzTokens returns the tokens of a receiver. The second one may be missing, and both may be empty.
func fuzzTokens(token, previous string) []string { return []string{token, previous} }

// fuzzSign replaces a value with a valid signature for some choices, so that the code after the verification is reached.
func fuzzSign(value, body, token string, choice byte) string {
	if algorithm := []string{"", "sha256", "sha512", "sha1"}[choice%4]; algorithm != "" {
		return signatureOf(algorithm, fuzzHashes[algorithm], token, []byte(body))
	}
	return value
}

func FuzzGeneric(f *testing.F) {
	f.Add(`{"reason":"why"}`)
	for _, body := range notObjects {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if hook := fuzzVerify(t, generic{}, request(body, []string{testToken})); hook == nil || hook.delivery != "" {
			t.Errorf("webhook is %+v", hook)
		}
	})
}

func FuzzHMAC(f *testing.F) {
	f.Add(hmacBody, goodHMAC().header.Get("X-Signature"), testToken, "", "", byte(0))
	f.Add(`{"timestamp":"2026-03-02T10:00:00Z"}`, "", testToken, previousToken, "1", byte(1))
	f.Add(`{"timestamp":"0000-01-01T00:00:00Z"}`, "", testToken, "", "", byte(2))
	f.Add("", "sha256=", "", "", "", byte(1))
	f.Add(hmacBody, "sha1=00", "", testToken, "", byte(3))
	f.Fuzz(func(t *testing.T, body, signature, token, previous, id string, choice byte) {
		signature = fuzzSign(signature, body, token, choice)
		in := request(body, fuzzTokens(token, previous), "X-Signature", signature, "X-Delivery-Id", id)
		hook := fuzzVerify(t, genericHMAC{}, in)
		right := signedByHand(signature, body, in.tokens, "sha256", "sha512", "sha1")
		if hook != nil && !right {
			t.Error("taken with a wrong signature")
		}
		if _, err := (genericHMAC{}).verify(t.Context(), in); right && errors.Is(err, errUnverified) {
			t.Error("a right signature is not verified")
		}
		if hook != nil && id != "" && hook.delivery != digestOf([]byte(body)) {
			t.Error("one with an id is not remembered")
		}
	})
}

func FuzzGitHub(f *testing.F) {
	f.Add(workflowRun, "", "", testToken, "", "workflow_run", "1", "application/json", byte(1))
	f.Add("payload="+url.QueryEscape(workflowRun), "", "", testToken, "", "workflow_run", "1", "application/x-www-form-urlencoded", byte(1))
	f.Add("payload=%7B%7D&payload", "x", "sha1=00", testToken, previousToken, "push", "1", "a;b=c;;", byte(1))
	f.Add(`{"push":{"conclusion":"x"},"head_commit":{"message":"\r\n"}}`, "", "", "", "", "push", "", "application/json; charset", byte(3))
	f.Fuzz(func(t *testing.T, body, new256, old1, token, previous, event, id, contentType string, choice byte) {
		new256 = fuzzSign(new256, body, token, choice)
		in := request(body, fuzzTokens(token, previous), "X-GitHub-Event", event, "X-GitHub-Delivery", id, "Content-Type", contentType)
		if new256 != "" {
			in.header.Set("X-Hub-Signature-256", new256)
		}
		if old1 != "" {
			in.header.Set("X-Hub-Signature", old1)
		}
		hook := fuzzVerify(t, github{}, in)
		right := signedByHand(new256, body, in.tokens, "sha256") || new256 == "" && signedByHand(old1, body, in.tokens, "sha1")
		if hook == nil {
			return
		}
		if !right || hook.delivery != digestOf([]byte(body)) || hook.event != event || id == "" {
			t.Errorf("taken: right %t, %+v", right, hook)
		}
	})
}

func FuzzGitLab(f *testing.F) {
	f.Add(pipeline, testToken, testToken, "", "Pipeline Hook", "1")
	f.Add(`{"object_attributes":7}`, "", "", testToken, "Push Hook", "")
	f.Add("[]", previousToken, testToken, previousToken, "", "")
	f.Fuzz(func(t *testing.T, body, sent, token, previous, event, id string) {
		in := request(body, fuzzTokens(token, previous), "X-Gitlab-Token", sent, "X-Gitlab-Event", event, "Webhook-Id", id)
		hook := fuzzVerify(t, gitlab{}, in)
		if hook == nil {
			return
		}
		if sent == "" || sent != token && sent != previous || hook.event != event || (hook.delivery != "") != (id != "") {
			t.Errorf("taken with token %q: %+v", sent, hook)
		}
	})
}

func FuzzStandardWebhooks(f *testing.F) {
	f.Add(standardBody, standardID, "1614265330", standardSignature, standardSecret, "", false)
	f.Add(standardBody, standardID, "1772445600", "v1,", standardSecret, otherSecret, true)
	f.Add("", "a.b", "-1", "v1, v1,=", "whsec_", "", true)
	f.Fuzz(func(t *testing.T, body, id, stamp, signature, token, signing string, isSigned bool) {
		in := request(body, []string{token}, "webhook-id", id, "webhook-timestamp", stamp)
		if signing != "" {
			in.signingTokens = []string{signing}
		}
		right := standardSign(in, in.keys()[0])
		if isSigned {
			signature = right
		}
		in.header.Set("webhook-signature", signature)
		hook := fuzzVerify(t, standardWebhooks{}, in)
		if hook == nil {
			return
		}
		if !strings.Contains(signature, right) || !strings.HasPrefix(in.keys()[0], "whsec_") || id == "" || hook.delivery == "" {
			t.Errorf("taken with %q: %+v", signature, hook)
		}
	})
}

func FuzzSignature(f *testing.F) {
	f.Add(hmacBody, "1772445600", "v0=00", testToken, "", "v0=", "v0:", ":", true, true)
	f.Add(hmacBody, "0", "00,11", testToken, previousToken, "", "", ".", false, true)
	f.Add("", "", ",,,,,,,,,", "", "", ",", "", "", true, false)
	f.Fuzz(func(t *testing.T, body, stamp, signature, token, previous, prefix, before, after string, isTimed, isSigned bool) {
		v := genericHMAC{ReceiverSignature: v1alpha1.ReceiverSignature{Header: "X-Sign", Algorithm: "sha256", Prefix: prefix}}
		text := body
		if isTimed {
			v.TimestampHeader, v.before, v.after = "X-Time", before, after
			text = before + stamp + after + body
		}
		right := prefix + hexOf(token, text)
		if isSigned {
			signature = right
		}
		in := request(body, fuzzTokens(token, previous), "X-Sign", signature, "X-Time", stamp)
		hook := fuzzVerify(t, v, in)
		if hook == nil {
			return
		}
		old := prefix + hexOf(previous, text)
		if lower := strings.ToLower(signature); !strings.Contains(lower, strings.ToLower(right)) && !strings.Contains(lower, strings.ToLower(old)) {
			t.Errorf("taken with %q", signature)
		}
		if isTimed && hook.delivery == "" {
			t.Error("a signed time is not remembered")
		}
	})
}

func FuzzFluxEvent(f *testing.F) {
	f.Add(fluxBody(), "", testToken, "", byte(1), true)
	f.Add(fluxBody(`"metadata":{`, `"metadata":{"gate":"production,canary",`), "", testToken, "", byte(0), false)
	f.Add(fluxBody(`"metadata":{`, `"metadata":{"a/":"","/":"b",`), "", testToken, "", byte(1), true)
	f.Add(fluxBody("2026-03-02T09:59:58Z", "9999-12-31T23:59:59Z"), "", testToken, "", byte(1), true)
	f.Add(fluxBody(`"uid":"8b1c"`, `"uid":{"a":[1,2.5,1e300]}`), "sha256=", "", "", byte(0), true)
	f.Add(`{"involvedObject":null,"metadata":{"a":null}}`, "", "", "", byte(0), false)
	f.Fuzz(func(t *testing.T, body, signature, token, previous string, choice byte, isSigned bool) {
		signature = fuzzSign(signature, body, token, choice)
		in := request(body, fuzzTokens(token, previous))
		if isSigned {
			in.header.Set("X-Signature", signature)
		}
		hook := fuzzVerify(t, fluxEvent{}, in)
		if hook == nil {
			return
		}
		if isSigned && !signedByHand(signature, body, in.tokens, "sha256") {
			t.Error("taken with a wrong signature")
		}
		if !isSigned && hook.delivery != "" {
			t.Error("remembered without a signature")
		}
		if hook.event == "" || hook.event != text(hook.body, "reason") || hook.gates != nil && len(hook.gates) == 0 {
			t.Errorf("webhook is %+v", hook)
		}
	})
}

func FuzzAlertmanager(f *testing.F) {
	f.Add(firing, "Bearer "+testToken, testToken, "")
	f.Add(`{"status":"resolved"}`, "bearer  x", " x", "x")
	f.Add(`{"status":null}`, "Bearer ", "", "")
	f.Fuzz(func(t *testing.T, body, authorization, token, previous string) {
		in := request(body, fuzzTokens(token, previous), "Authorization", authorization)
		hook := fuzzVerify(t, alertmanager{}, in)
		if hook == nil {
			return
		}
		scheme, sent, _ := strings.Cut(authorization, " ")
		sent = strings.TrimLeft(sent, " ")
		if !strings.EqualFold(scheme, "bearer") || sent == "" || sent != token && sent != previous {
			t.Errorf("taken with %q", authorization)
		}
		if hook.event != "firing" && hook.event != "resolved" {
			t.Errorf("event is %q", hook.event)
		}
	})
}

func FuzzOIDC(f *testing.F) {
	issuer := newTestIssuer(f, standardKeys()...)
	v := oidcVerifier(f, issuer.provider())
	header := func(algorithm, kid string) string { return fmt.Sprintf(`{"alg":%q,"kid":%q}`, algorithm, kid) }
	claims := string(must(json.Marshal(issuer.claims(nil))))
	good := token(issuer.claims(nil), jose.RS256, rsaKey(), kid("rsa"))
	// The port of the issuer differs each time, so claims have a placeholder for its URL.
	claims = strings.ReplaceAll(claims, issuer.URL, "ISSUER")
	f.Add(header("RS256", "rsa"), claims, "", byte(1), "")
	f.Add(header("RS256", "rsa"), strings.Replace(claims, `"exp":`, `"exp":1,"x":`, 1), "", byte(1), "")
	f.Add(header("RS256", "rsa"), strings.Replace(claims, `"org/repo"`, `["org"]`, 1), "", byte(1), "")
	f.Add(header("RS256", "rsa"), `{"iss":"ISSUER"}`, "", byte(1), "")
	f.Add(header("RS256", "rsa"), claims, "", byte(2), "")
	f.Add(header("none", ""), claims, "", byte(0), "")
	f.Add(header("HS256", "rsa"), claims, "", byte(3), "")
	f.Add(`{"alg":"RS256","crit":["exp"],"jwk":{}}`, claims, "", byte(1), "")
	f.Add("", "", "AAAA", byte(0), "..")
	f.Add("", "", "", byte(0), strings.Replace(good, ".", "..", 1))
	const url = "ISSUER"
	more := []string{
		"not verified: the token of " + issuer.URL + " has expired",
		"not verified: the token is not a valid token of " + issuer.URL + " for audience gating-controller",
		"not verified: the claims of the token of " + issuer.URL + " are not a JSON object",
	}
	f.Fuzz(func(t *testing.T, header, claims, signature string, choice byte, raw string) {
		encode := base64.RawURLEncoding.EncodeToString
		claims = strings.ReplaceAll(claims, url, issuer.URL)
		content := encode([]byte(header)) + "." + encode([]byte(claims))
		sum := sha256.Sum256([]byte(content))
		sent := raw
		if sent == "" {
			sent = content + "." + encode(fuzzSignToken(content, sum[:], signature, choice))
		}
		hook := fuzzVerify(t, v, withToken(sent), more...)
		if hook == nil {
			return
		}
		if raw != "" || rsa.VerifyPKCS1v15(&rsaKey().PublicKey, crypto.SHA256, sum[:], fuzzSignToken(content, sum[:], signature, choice)) != nil {
			t.Fatalf("taken with a wrong signature: %q", sent)
		}
		checkClaims(t, claims, issuer.URL)
	})
}

// fuzzSignToken signs with the right key, with another key, with the public key as a secret, or not at all.
func fuzzSignToken(content string, sum []byte, signature string, choice byte) []byte {
	switch choice % 4 {
	case 1:
		return must(rsa.SignPKCS1v15(nil, rsaKey(), crypto.SHA256, sum))
	case 2:
		return must(rsa.SignPKCS1v15(nil, rsaOther(), crypto.SHA256, sum))
	case 3:
		mac := hmac.New(sha256.New, rsaKey().N.Bytes())
		mac.Write([]byte(content))
		return mac.Sum(nil)
	default:
		return []byte(signature)
	}
}

// checkClaims checks the claims of an accepted token, independently of the library.
func checkClaims(t *testing.T, claims, issuer string) {
	t.Helper()
	var read struct {
		Issuer     string  `json:"iss"`
		Audience   any     `json:"aud"`
		Expiry     float64 `json:"exp"`
		Repository string  `json:"repository"`
		Ref        string  `json:"ref"`
	}
	if err := json.Unmarshal([]byte(claims), &read); err != nil {
		t.Fatal(err)
	}
	list, _ := read.Audience.([]any)
	if read.Issuer != issuer || read.Audience != "gating-controller" && !slices.Contains(list, any("gating-controller")) {
		t.Errorf("taken with issuer %q and audience %v", read.Issuer, read.Audience)
	}
	if read.Expiry < float64(testNow.Unix()) || time.Unix(int64(read.Expiry), 0).Before(testNow) {
		t.Errorf("taken although it expired at %v", read.Expiry)
	}
	if !strings.HasPrefix(read.Repository, "org") || read.Ref != "refs/heads/main" {
		t.Errorf("taken for %q at %q", read.Repository, read.Ref)
	}
}
