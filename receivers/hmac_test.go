package receivers

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"strings"
	"testing"
	"time"
)

const hmacBody = `{"reason":"smoke tests passed","environment":"staging"}`

func goodHMAC() *incoming {
	return request(hmacBody, []string{testToken}, "X-Signature", signatureOf("sha256", sha256.New, testToken, []byte(hmacBody)))
}

// signatureAttempts returns attempts for any sender that signs its body.
func signatureAttempts(header, algorithm string, newHash func() hash.Hash, body string) []attempt {
	sign := func(token string) string { return signatureOf(algorithm, newHash, token, []byte(body)) }
	good := sign(testToken)
	prefix, digest := algorithm+"=", strings.TrimPrefix(good, algorithm+"=")
	return []attempt{
		{"as it was sent", func(*incoming) {}, nil},
		{"digits in upper case", set(header, prefix+strings.ToUpper(digest)), nil},
		{"of the previous token", all(previousToo, set(header, sign(previousToken))), nil},
		{"of the first of two tokens", func(in *incoming) { in.tokens = append(in.tokens, previousToken) }, nil},
		{"of a token that is no longer good", set(header, sign(previousToken)), errUnverified},
		{"missing", without(header), errUnverified},
		{"empty", set(header, ""), errUnverified},
		{"the algorithm only", set(header, prefix), errUnverified},
		{"without the algorithm", set(header, digest), errUnverified},
		{"the name of another algorithm", set(header, "sha384="+digest), errUnverified},
		{"the name of an algorithm that we do not have", set(header, "none="+digest), errUnverified},
		{"the algorithm in upper case", set(header, strings.ToUpper(prefix)+digest), errUnverified},
		{"of MD5", set(header, signatureOf("md5", md5.New, testToken, []byte(body))), errUnverified},
		{"half of it", set(header, good[:len(good)/2]), errUnverified},
		{"without the last digit", set(header, good[:len(good)-1]), errUnverified},
		{"without the last byte", set(header, good[:len(good)-2]), errUnverified},
		{"and one byte more", set(header, good+"00"), errUnverified},
		{"and a space", set(header, good+" "), errUnverified},
		{"and another one", set(header, good+","+good), errUnverified},
		{"twice in two headers", twice(header, good, good), errUnverified},
		{"behind a wrong one", twice(header, prefix+"00", good), errUnverified},
		{"before a wrong one", twice(header, good, prefix+"00"), errUnverified},
		{"not in hex", set(header, prefix+strings.Repeat("zz", len(digest)/2)), errUnverified},
		{"with a NUL byte", set(header, good+"\x00"), errUnverified},
		{"of 200 KiB", set(header, prefix+strings.Repeat("ab", 100<<10)), errUnverified},
		{"the token itself", set(header, testToken), errUnverified},
		{"of another body", func(in *incoming) { in.body[len(in.body)/2] ^= 1 }, errUnverified},
		{"of the body and one byte more", func(in *incoming) { in.body = append(in.body, '\n') }, errUnverified},
		{"of an empty body", set(header, signatureOf(algorithm, newHash, testToken, nil)), errUnverified},
		{"of the empty token, which is configured", all(tokens(""), set(header, sign(""))), errUnverified},
		{"of the empty token beside a real one", all(tokens("", testToken), set(header, sign(""))), errUnverified},
		{"while no token is good", func(in *incoming) { in.tokens = nil }, errUnverified},
	}
}

func TestGenericHMACSignature(t *testing.T) {
	try(t, genericHMAC{}, goodHMAC, signatureAttempts("X-Signature", "sha256", sha256.New, hmacBody))
	try(t, genericHMAC{}, goodHMAC, []attempt{
		{"with SHA-512", set("X-Signature", signatureOf("sha512", sha512.New, testToken, []byte(hmacBody))), nil},
		{"with SHA-1", set("X-Signature", signatureOf("sha1", sha1.New, testToken, []byte(hmacBody))), nil},
		{"with SHA-1 under the name of SHA-256", set("X-Signature", signatureOf("sha256", sha1.New, testToken, []byte(hmacBody))), errUnverified},
		{"with SHA-256 under the name of SHA-512", set("X-Signature", signatureOf("sha512", sha256.New, testToken, []byte(hmacBody))), errUnverified},
		{"in the header of GitHub", func(in *incoming) {
			in.header.Set("X-Hub-Signature-256", in.header.Get("X-Signature"))
			in.header.Del("X-Signature")
		}, errUnverified},
	})
}

func TestGenericHMACWebhookIsAcceptedWithAnyBody(t *testing.T) {
	hook := verified(t, genericHMAC{}, goodHMAC())
	if hook.reason != "smoke tests passed" || hook.body["environment"] != "staging" || hook.event != "" {
		t.Errorf("webhook is %+v", hook)
	}
	for name, body := range notObjects {
		in := request(body, []string{testToken}, "X-Signature", signatureOf("sha256", sha256.New, testToken, []byte(body)))
		if hook := verified(t, genericHMAC{}, in); len(hook.body) != 0 || hook.body == nil {
			t.Errorf("%s: body is %v", name, hook.body)
		}
	}
}

func TestGenericHMACWebhookWithIdentifierIsRecorded(t *testing.T) {
	for _, test := range []struct {
		name       string
		timestamp  string
		id         string
		remembered bool
	}{
		{"nothing", "", "", false},
		{"an id", "", "42", true},
		{"a time", testNow.Format(time.RFC3339), "", true},
		{"a time with a zone and a fraction", "2026-03-02T11:00:00.25+01:00", "", true},
		{"both", testNow.Format(time.RFC3339), "42", true},
		{"a time that is not RFC 3339", "Mon, 02 Mar 2026 10:00:00 GMT", "", false},
		{"a time that is not RFC 3339, and an id", "yesterday", "42", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := fmt.Sprintf(`{"timestamp":%q}`, test.timestamp)
			in := request(body, []string{testToken}, "X-Signature", signatureOf("sha256", sha256.New, testToken, []byte(body)))
			if test.id != "" {
				in.header.Set("X-Delivery-Id", test.id)
			}
			hook := verified(t, genericHMAC{}, in)
			want := fmt.Sprintf("%x", sha256.Sum256([]byte(body)))
			if test.remembered && (hook.delivery != want || hook.repeats != "") {
				t.Errorf("delivery %q, repeats %q", hook.delivery, hook.repeats)
			}
			if !test.remembered && (hook.delivery != "" || hook.repeats != want) {
				t.Errorf("delivery %q, repeats %q", hook.delivery, hook.repeats)
			}
		})
	}
}

func TestReplayWithOtherDeliveryIDIsRefused(t *testing.T) {
	in := goodHMAC()
	in.header.Set("X-Delivery-Id", "1")
	first := verified(t, genericHMAC{}, in)
	in.header.Set("X-Delivery-Id", "2")
	if again := verified(t, genericHMAC{}, in); again.delivery != first.delivery {
		t.Error("another id makes another delivery")
	}
	in.header.Del("X-Delivery-Id")
	if again := verified(t, genericHMAC{}, in); again.repeats != first.delivery {
		t.Error("without the id it is not seen that it was there")
	}
}

func TestSignedTimeOutOfToleranceIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		at   time.Time
		want error
	}{
		{"now", testNow, nil},
		{"just new enough", testNow.Add(-signedTimeTolerance + time.Second), nil},
		{"just too old", testNow.Add(-signedTimeTolerance), errMalformed},
		{"a little ahead", testNow.Add(signedTimeTolerance - time.Second), nil},
		{"too far ahead", testNow.Add(signedTimeTolerance), errMalformed},
		{"the year 1", time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), errMalformed},
		{"the year 9999", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), errMalformed},
	} {
		try(t, genericHMAC{}, goodHMAC, []attempt{{test.name, func(in *incoming) {
			in.body = fmt.Appendf(nil, `{"timestamp":%q}`, test.at.Format(time.RFC3339))
			in.header.Set("X-Signature", signatureOf("sha256", sha256.New, testToken, in.body))
		}, test.want}})
	}
}

func TestRecordOutlastsSignedTimeTolerance(t *testing.T) {
	// The worst case: the clock of the sender is ahead by the tolerance, and the webhook is accepted at once.
	at := testNow.Add(signedTimeTolerance - time.Nanosecond)
	if mustBeRecent(at, testNow) != nil {
		t.Fatal("not taken at first")
	}
	if mustBeRecent(at, testNow.Add(replayWindow)) == nil {
		t.Error("taken again after it was forgotten")
	}
}
