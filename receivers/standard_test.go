package receivers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// The test vector of the libraries of Standard Webhooks.
const (
	standardSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	standardID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	standardBody      = `{"test": 2432232314}`
	standardSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

var (
	standardTime = time.Unix(1614265330, 0)
	// otherSecret is the base64 of 32 bytes, as GitLab generates secrets.
	otherSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdefghijklmnopqrstuv"))
)

func goodStandard() *incoming {
	in := request(standardBody, []string{standardSecret},
		"webhook-id", standardID, "webhook-timestamp", strconv.FormatInt(standardTime.Unix(), 10), "webhook-signature", standardSignature)
	in.now = standardTime
	return in
}

// standardSign signs a request independently of the code under test.
func standardSign(in *incoming, secret string) string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(in.header.Get("webhook-id") + "." + in.header.Get("webhook-timestamp") + "." + string(in.body)))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// resigned changes a request and signs it again.
func resigned(secret string, change func(*incoming)) func(*incoming) {
	return func(in *incoming) {
		change(in)
		in.header.Set("webhook-signature", standardSign(in, secret))
	}
}

// standardAttempts returns attempts for any sender that signs with standardSecret as Standard Webhooks specifies.
func standardAttempts(good func() *incoming) []attempt {
	signature := good().header.Get("webhook-signature")
	other := standardSign(good(), otherSecret)
	at := func(d time.Duration) func(*incoming) {
		return resigned(standardSecret, func(in *incoming) { in.header.Set("webhook-timestamp", strconv.FormatInt(in.now.Add(d).Unix(), 10)) })
	}
	return []attempt{
		{"as it was sent", func(*incoming) {}, nil},
		{"with a wrong one before it", set("webhook-signature", other+" "+signature), nil},
		{"with an asymmetric one and a wrong one", set("webhook-signature", "v1a,"+other[3:]+" "+other+" "+signature+" v2,"+other[3:]), nil},
		{"as the last of eight", set("webhook-signature", strings.Repeat(other+" ", 7)+signature), nil},
		{"as the ninth", set("webhook-signature", strings.Repeat(other+" ", 8)+signature), errUnverified},
		{"just recent enough", at(-signedTimeTolerance + time.Second), nil},
		{"too old", at(-signedTimeTolerance), errMalformed},
		{"too far ahead", at(signedTimeTolerance), errMalformed},
		{"of another secret", set("webhook-signature", other), errUnverified},
		{"of another body", func(in *incoming) { in.body = append(in.body, ' ') }, errUnverified},
		{"of another ID", set("webhook-id", "msg_other"), errUnverified},
		{"of another time", set("webhook-timestamp", "1614265331"), errUnverified},
		{"no ID", without("webhook-id"), errUnverified},
		{"no time", without("webhook-timestamp"), errUnverified},
		{"no signature", without("webhook-signature"), errUnverified},
		{"an empty ID", resigned(standardSecret, set("webhook-id", "")), errUnverified},
		{"an ID with a dot", resigned(standardSecret, set("webhook-id", "msg.1614265330")), errUnverified},
		{"a time with a sign", resigned(standardSecret, set("webhook-timestamp", "+1614265330")), errUnverified},
		{"a time with a fraction", resigned(standardSecret, set("webhook-timestamp", "1614265330.5")), errUnverified},
		{"a time in RFC 3339", resigned(standardSecret, set("webhook-timestamp", "2021-02-25T15:02:10Z")), errUnverified},
		{"a time of 30 digits", resigned(standardSecret, set("webhook-timestamp", strings.Repeat("1", 30))), errUnverified},
		{"two IDs", twice("webhook-id", standardID, standardID), errUnverified},
		{"two headers", twice("webhook-signature", other, signature), errUnverified},
		{"the version alone", set("webhook-signature", "v1,"), errUnverified},
		{"without the version", set("webhook-signature", signature[3:]), errUnverified},
		{"of version v1a", set("webhook-signature", "v1a,"+signature[3:]), errUnverified},
		{"with commas", set("webhook-signature", other+","+signature), errUnverified},
		{"without padding", set("webhook-signature", strings.TrimRight(signature, "=")), errUnverified},
		{"in hex", set("webhook-signature", "v1,"+strings.Repeat("ab", 32)), errUnverified},
	}
}

func TestStandardWebhooksVector(t *testing.T) {
	if got := standardSign(goodStandard(), standardSecret); got != standardSignature {
		t.Fatalf("the test signs %s", got)
	}
	try(t, standardWebhooks{}, goodStandard, standardAttempts(goodStandard))
}

func TestStandardWebhooksSigningToken(t *testing.T) {
	with := func(tokens, signing []string) func(*incoming) {
		return func(in *incoming) { in.tokens, in.signingTokens = tokens, signing }
	}
	try(t, standardWebhooks{}, goodStandard, []attempt{
		{"the previous token", with([]string{otherSecret, standardSecret}, nil), nil},
		{"the current of two", with([]string{standardSecret, otherSecret}, nil), nil},
		{"the signing token beside another token", with([]string{"path"}, []string{standardSecret}), nil},
		{"the previous signing token", with([]string{"path"}, []string{otherSecret, standardSecret}), nil},
		{"the token while there is a signing token", with([]string{standardSecret}, []string{otherSecret}), errUnverified},
		{"no token", with(nil, nil), errUnverified},
		{"an empty token", with([]string{""}, nil), errUnverified},
		{"an empty key", func(in *incoming) {
			in.tokens = []string{"whsec_"}
			in.header.Set("webhook-signature", standardSign(in, "whsec_"))
		}, errUnverified},
		{"a key that is too short", func(in *incoming) {
			in.tokens = []string{"whsec_c2hvcnQ="}
			in.header.Set("webhook-signature", standardSign(in, "whsec_c2hvcnQ="))
		}, errUnverified},
	})
}

func TestStandardWebhookIsIdentifiedByID(t *testing.T) {
	first := verified(t, standardWebhooks{}, goodStandard())
	again := goodStandard()
	again.body = []byte(`{"type":"deploy.done","message":"build 7"}`)
	resigned(standardSecret, set("webhook-timestamp", "1614265331"))(again)
	hook := verified(t, standardWebhooks{}, again)
	if first.delivery == "" || hook.delivery != first.delivery || hook.repeats != "" {
		t.Errorf("deliveries %q and %q", first.delivery, hook.delivery)
	}
	if hook.event != "deploy.done" || hook.reason != "build 7" || first.event != "" || first.body["test"] != int64(2432232314) {
		t.Errorf("event %q, reason %q, body %v", hook.event, hook.reason, first.body)
	}
	resigned(standardSecret, set("webhook-id", "msg_other"))(again)
	if other := verified(t, standardWebhooks{}, again); other.delivery == first.delivery {
		t.Error("another ID is the same delivery")
	}
}

func TestInvalidStandardWebhooksSecretIsReportedInReady(t *testing.T) {
	for name, tc := range map[string]struct {
		kind string
		data map[string]string
		want string
	}{
		"a secret":                       {"standard-webhooks", map[string]string{"token": standardSecret + "\n"}, ""},
		"a path and a secret":            {"standard-webhooks", map[string]string{"token": "path", "signingToken": standardSecret}, ""},
		"a secret alone":                 {"gitlab", map[string]string{"signingToken": otherSecret}, ""},
		"no prefix":                      {"standard-webhooks", map[string]string{"token": strings.TrimPrefix(standardSecret, "whsec_")}, "a signing token must be whsec_"},
		"a public key":                   {"standard-webhooks", map[string]string{"token": "whpk_" + standardSecret[6:]}, "a signing token must be whsec_"},
		"16 bytes":                       {"standard-webhooks", map[string]string{"token": "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="}, "base64 of at least 24 bytes"},
		"not base64":                     {"gitlab", map[string]string{"token": "t", "signingToken": "whsec_" + strings.Repeat("!", 40)}, "a signing token must be whsec_"},
		"a previous one that is another": {"gitlab", map[string]string{"signingToken": otherSecret, "previousSigningToken": "old"}, "a signing token must be whsec_"},
		"a signature for alertmanager":   {"alertmanager", map[string]string{"token": "t", "signingToken": "s"}, "type alertmanager verifies no signature: remove field 'signingToken'"},
		"a signature for generic":        {"generic", map[string]string{"token": "t", "signingToken": "s"}, "type generic verifies no signature: remove field 'signingToken'"},
		"a signature for github":         {"github", map[string]string{"token": "t", "signingToken": "s"}, ""},
		"white space":                    {"generic-hmac", map[string]string{"token": "\n"}, "field 'token' has only white space"},
	} {
		t.Run(name, func(t *testing.T) {
			table, _ := newTable(map[string]map[string]string{"apps/ci": tc.data})
			obj := receiverOf("ci", "apps")
			obj.Spec.Type = tc.kind
			path, err := table.Load(t.Context(), obj)
			if tc.want == "" {
				if err != nil || path == "" || has(table, path) == "" {
					t.Errorf("path %q, %v", path, err)
				}
				return
			}
			refused := (*Refused)(nil)
			if !errors.As(err, &refused) || refused.Reason() != v1alpha1.TokenNotFoundReason || !strings.Contains(err.Error(), tc.want) || path != "" || table.Get(client.ObjectKeyFromObject(obj)) != nil {
				t.Fatalf("error is %v", err)
			}
			for _, secret := range tc.data {
				if len(secret) > 3 && strings.Contains(err.Error(), secret) {
					t.Errorf("error has the secret: %v", err)
				}
			}
		})
	}
}
