package receivers

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

const pipeline = `{"object_kind":"pipeline","object_attributes":{"id":31,"ref":"main","status":"success"},` +
	`"user":{"id":1,"name":"Jane","username":"jdoe"},"project":{"id":1,"path_with_namespace":"group/project"}}`

func goodGitLab() *incoming {
	return request(pipeline, []string{testToken}, "X-Gitlab-Token", testToken, "X-Gitlab-Event", "Pipeline Hook",
		"X-Gitlab-Event-UUID", "13792a34-cac6-4fda-95a8-c58e00a3954e")
}

// tokenAttempts returns attempts for any sender that sends its token in a header. as precedes the token in the header.
func tokenAttempts(header, as string) []attempt {
	long := strings.Repeat("x", 200<<10)
	return []attempt{
		{"as it was sent", func(*incoming) {}, nil},
		{"the previous token", all(previousToo, set(header, as+previousToken)), nil},
		{"the first of two", func(in *incoming) { in.tokens = append(in.tokens, previousToken) }, nil},
		{"a token that is no longer good", set(header, as+previousToken), errUnverified},
		{"missing", without(header), errUnverified},
		{"empty", set(header, as), errUnverified},
		{"empty, which is configured", all(tokens(""), set(header, as)), errUnverified},
		{"missing, while the empty one is configured", all(tokens("", testToken), without(header)), errUnverified},
		{"in upper case", set(header, as+strings.ToUpper(testToken)), errUnverified},
		{"the beginning of it", set(header, as+testToken[:len(testToken)-1]), errUnverified},
		{"and one byte more", set(header, as+testToken+"x"), errUnverified},
		{"and a NUL byte", set(header, as+testToken+"\x00"), errUnverified},
		{"both with a comma", set(header, as+testToken+","+as+testToken), errUnverified},
		{"twice in two headers", twice(header, as+testToken, as+testToken), errUnverified},
		{"behind a wrong one", twice(header, as+"wrong", as+testToken), errUnverified},
		{"of 200 KiB", set(header, as+long), errUnverified},
		{"while no token is good", func(in *incoming) { in.tokens = nil }, errUnverified},
	}
}

func TestGitLabToken(t *testing.T) {
	try(t, gitlab{}, goodGitLab, tokenAttempts("X-Gitlab-Token", ""))
	attempts := []attempt{
		{"no event", without("X-Gitlab-Event"), errMalformed},
		{"two events", twice("X-Gitlab-Event", "Push Hook", "Pipeline Hook"), errMalformed},
		{"no event and no token", all(without("X-Gitlab-Event"), without("X-Gitlab-Token")), errUnverified},
	}
	for name, body := range notObjects {
		attempts = append(attempts, attempt{name, func(in *incoming) { in.body = []byte(body) }, errMalformed})
	}
	try(t, gitlab{}, goodGitLab, attempts)
}

func TestGitLabWebhookWithIDIsRecorded(t *testing.T) {
	for _, name := range []string{"Idempotency-Key", "Webhook-Id", "X-Gitlab-Event-UUID", ""} {
		in := goodGitLab()
		in.header.Del("X-Gitlab-Event-UUID")
		want := ""
		if name != "" {
			in.header.Set(name, "1")
			want = digestOf(in.body)
		}
		if hook := verified(t, gitlab{}, in); hook.delivery != want || hook.event != "Pipeline Hook" {
			t.Errorf("%q: delivery %q of %q", name, hook.delivery, hook.event)
		}
	}
}

func TestGitLabReason(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{pipeline, "pipeline of main: success in group/project by jdoe"},
		{`{"object_kind":"push","ref":"refs/heads/main","user_name":"Jane Doe","user_username":"jdoe","project":{"path_with_namespace":"group/project"}}`,
			"push of refs/heads/main in group/project by jdoe"},
		{`{"object_kind":"build","ref":"main","build_status":"failed","user":{"name":"Jane"}}`, "build of main: failed"},
		{`{"object_kind":"deployment","status":"success","project":{"path_with_namespace":"g/p"},"user":{"username":"jdoe"}}`,
			"deployment: success in g/p by jdoe"},
		{`{"object_kind":"push","user_name":"Jane Doe"}`, "push by Jane Doe"},
		{`{"object_kind":{},"object_attributes":[],"user":7,"project":"p"}`, ""},
	} {
		in := goodGitLab()
		in.body = []byte(test.body)
		if got := verified(t, gitlab{}, in).reason; got != test.want {
			t.Errorf("reason is %q, want %q", got, test.want)
		}
	}
}

// signedGitLab returns a webhook of GitLab 19 with a signing token.
func signedGitLab() *incoming {
	in := goodGitLab()
	in.tokens, in.signingTokens = nil, []string{standardSecret}
	in.header.Del("X-Gitlab-Token")
	in.header.Set("Idempotency-Key", "3f2504e0-4f89-11d3-9a0c-0305e82c3301")
	in.header.Set("webhook-id", in.header.Get("Idempotency-Key"))
	in.header.Set("webhook-timestamp", strconv.FormatInt(testNow.Unix(), 10))
	in.header.Set("webhook-signature", standardSign(in, standardSecret))
	return in
}

func TestGitLabSignature(t *testing.T) {
	try(t, gitlab{}, signedGitLab, standardAttempts(signedGitLab))
	try(t, gitlab{}, signedGitLab, []attempt{
		{"of the previous signing token", func(in *incoming) { in.signingTokens = []string{otherSecret, standardSecret} }, nil},
		{"with a token that is not configured", set("X-Gitlab-Token", "any"), nil},
		{"with a token that is the signing token", all(set("X-Gitlab-Token", standardSecret), without("webhook-signature")), errUnverified},
		{"with no event", without("X-Gitlab-Event"), errMalformed},
	})
}

func TestGitLabNeedsTokenAndSignatureIfBothAreConfigured(t *testing.T) {
	both := func() *incoming {
		in := signedGitLab()
		in.tokens = []string{testToken}
		in.header.Set("X-Gitlab-Token", testToken)
		return in
	}
	try(t, gitlab{}, both, standardAttempts(both))
	// Without a token, only the signature is configured.
	try(t, gitlab{}, both, slices.DeleteFunc(tokenAttempts("X-Gitlab-Token", ""), func(a attempt) bool { return a.name == "while no token is good" }))
	try(t, gitlab{}, both, []attempt{
		{"neither", all(without("X-Gitlab-Token"), without("webhook-signature")), errUnverified},
		{"the previous ones of both", func(in *incoming) {
			in.tokens, in.signingTokens = []string{"new", testToken}, []string{otherSecret, standardSecret}
		}, nil},
	})
}

func TestOnlyGitLabTokenIsVerifiedByHeaders(t *testing.T) {
	in := signedGitLab()
	if proven, err := (gitlab{}).prove(t.Context(), in); proven || err != nil {
		t.Errorf("a signature: %t, %v", proven, err)
	}
	in.tokens = []string{testToken}
	if proven, err := (gitlab{}).prove(t.Context(), in); proven || err == nil {
		t.Errorf("no token: %t, %v", proven, err)
	}
	in.header.Set("X-Gitlab-Token", testToken)
	if proven, err := (gitlab{}).prove(t.Context(), in); !proven || err != nil {
		t.Errorf("a token: %t, %v", proven, err)
	}
}

func TestSignedGitLabWebhookIsIdentifiedByID(t *testing.T) {
	first := verified(t, gitlab{}, signedGitLab()).delivery
	again := signedGitLab()
	again.body = []byte(`{"object_kind":"push"}`)
	again.header.Set("Idempotency-Key", "another, which is not signed")
	again.header.Set("webhook-signature", standardSign(again, standardSecret))
	if got := verified(t, gitlab{}, again).delivery; first == "" || got != first {
		t.Errorf("deliveries %q and %q", first, got)
	}
}
