package receivers

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// macOf computes an HMAC independently of the code under test.
func macOf(newHash func() hash.Hash, key, text string) []byte {
	mac := hmac.New(newHash, []byte(key))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func hexOf(key, text string) string { return hex.EncodeToString(macOf(sha256.New, key, text)) }

func signedAs(t *testing.T, signature v1alpha1.ReceiverSignature) genericHMAC {
	t.Helper()
	v, err := newGenericHMAC(&signature)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var (
	grafana   = v1alpha1.ReceiverSignature{Header: "X-Grafana-Alerting-Signature", Algorithm: "sha256", TimestampHeader: "X-Grafana-Alerting-Timestamp"}
	slack     = v1alpha1.ReceiverSignature{Header: "X-Slack-Signature", Algorithm: "sha256", Prefix: "v0=", TimestampHeader: "X-Slack-Request-Timestamp", Payload: "v0:{timestamp}:{body}"}
	pagerDuty = v1alpha1.ReceiverSignature{Header: "X-PagerDuty-Signature", Algorithm: "sha256", Prefix: "v1="}
)

// goodGrafana has the inputs of Grafana's own test. Grafana publishes no digest: this one is of
// OpenSSL, over <timestamp>:<body> as https://grafana.com/docs says.
func goodGrafana() *incoming {
	in := request("test message", []string{"secret"}, "X-Grafana-Alerting-Timestamp", "0",
		"X-Grafana-Alerting-Signature", "ac18a483a582b60a883e974541afe25aa1026136163e94665649743324183ef1")
	in.now = time.Unix(0, 0)
	return in
}

// goodSlack is the example of https://docs.slack.dev/authentication/verifying-requests-from-slack.
func goodSlack() *incoming {
	in := request("token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&"+
		"user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2F"+
		"T1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
		[]string{"8f742231b10e8888abcd99yyyzzz85a5"}, "X-Slack-Request-Timestamp", "1531420618",
		"X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503")
	in.now = time.Unix(1531420618, 0)
	return in
}

// goodPagerDuty is the example of github.com/PagerDuty/go-pagerduty/webhookv3.
func goodPagerDuty() *incoming {
	return request(pagerDutyBody, []string{"lDQHScfUeXUKaQRNF+8XIiDKZ7XX3itBAYzwU0TARw8lJqRnkKl2iB1anSb0Z+IK"},
		"X-PagerDuty-Signature", "v1=0c0b9495b893a39e70d1fea2fe11fbe0a825f88b9f67846f6cc07dd2bc5476cd")
}

const pagerDutyBody = `{"event":{"id":"01BWDWL3NYY7LUFPZCC28QUCMK","event_type":"incident.priority_updated","resource_type":"incident",` +
	`"occurred_at":"2021-04-26T17:36:27.458Z","agent":{"html_url":"https://acme.pagerduty.com/users/PLH1HKV","id":"PLH1HKV",` +
	`"self":"https://api.pagerduty.com/users/PLH1HKV","summary":"Tenex Engineer","type":"user_reference"},"client":null,` +
	`"data":{"id":"PGR0VU2","type":"incident","self":"https://api.pagerduty.com/incidents/PGR0VU2",` +
	`"html_url":"https://acme.pagerduty.com/incidents/PGR0VU2","number":2,"status":"triggered","title":"A little bump in the road",` +
	`"service":{"html_url":"https://acme.pagerduty.com/services/PF9KMXH","id":"PF9KMXH","self":"https://api.pagerduty.com/services/PF9KMXH",` +
	`"summary":"API Service","type":"service_reference"},"assignees":[{"html_url":"https://acme.pagerduty.com/users/PTUXL6G","id":"PTUXL6G",` +
	`"self":"https://api.pagerduty.com/users/PTUXL6G","summary":"User 123","type":"user_reference"}],` +
	`"escalation_policy":{"html_url":"https://acme.pagerduty.com/escalation_policies/PUS0KTE","id":"PUS0KTE",` +
	`"self":"https://api.pagerduty.com/escalation_policies/PUS0KTE","summary":"Default","type":"escalation_policy_reference"},` +
	`"teams":[{"html_url":"https://acme.pagerduty.com/teams/PFCVPS0","id":"PFCVPS0","self":"https://api.pagerduty.com/teams/PFCVPS0",` +
	`"summary":"Engineering","type":"team_reference"}],"priority":{"html_url":"https://acme.pagerduty.com/account/incident_priorities",` +
	`"id":"PSO75BM","self":"https://api.pagerduty.com/priorities/PSO75BM","summary":"P1","type":"priority_reference"},"urgency":"high",` +
	`"conference_bridge":{"conference_number":1000,"conference_url":"https://example.com"},"resolve_reason":null}}}`

// timedAttempts returns attempts for any signature that covers a time. sign returns the header for a time.
func timedAttempts(header, timestampHeader string, now int64, sign func(stamp string) string) []attempt {
	at := func(stamp string) func(*incoming) {
		return all(set(timestampHeader, stamp), set(header, sign(stamp)))
	}
	tolerance, text := int64(signedTimeTolerance.Seconds()), func(n int64) string { return strconv.FormatInt(n, 10) }
	good := sign(text(now))
	return []attempt{
		{"as it was sent", func(*incoming) {}, nil},
		{"just recent enough", at(text(max(0, now-tolerance+1))), nil},
		{"too far ahead", at(text(now + tolerance)), errMalformed},
		{"another time", set(timestampHeader, text(now+1)), errUnverified},
		{"no time", without(timestampHeader), errUnverified},
		{"two times", twice(timestampHeader, text(now), text(now)), errUnverified},
		{"an empty time", at(""), errUnverified},
		{"a time with a sign", at("+" + text(now)), errUnverified},
		{"a time in RFC 3339", at("2018-07-12T18:36:58Z"), errUnverified},
		{"a time with a fraction", at(text(now) + ".5"), errUnverified},
		{"no signature", without(header), errUnverified},
		{"two headers", twice(header, good, good), errUnverified},
		{"another body", func(in *incoming) { in.body = append(in.body, ' ') }, errUnverified},
		{"the time in the body", func(in *incoming) {
			in.body = []byte(in.header.Get(timestampHeader) + ":" + string(in.body))
			in.header.Del(timestampHeader)
		}, errUnverified},
		{"a token that is no longer good", func(in *incoming) { in.tokens = []string{"new"} }, errUnverified},
		{"the previous token", func(in *incoming) { in.tokens = append([]string{"new"}, in.tokens...) }, nil},
		{"a signing token beside the token", func(in *incoming) { in.tokens, in.signingTokens = []string{"path"}, in.tokens }, nil},
		{"the token while there is a signing token", func(in *incoming) { in.signingTokens = []string{"other"} }, errUnverified},
		{"in X-Signature", all(set("X-Signature", "sha256="+good), without(header)), errUnverified},
	}
}

func TestGrafanaSignature(t *testing.T) {
	v := signedAs(t, grafana)
	sign := func(stamp string) string { return hexOf("secret", stamp+":test message") }
	try(t, v, goodGrafana, timedAttempts("X-Grafana-Alerting-Signature", "X-Grafana-Alerting-Timestamp", 0, sign))
	try(t, v, goodGrafana, []attempt{
		{"of the body alone", set("X-Grafana-Alerting-Signature", hexOf("secret", "test message")), errUnverified},
		{"with a list", set("X-Grafana-Alerting-Signature", "00,"+sign("0")), errUnverified},
		{"with the algorithm", set("X-Grafana-Alerting-Signature", "sha256="+sign("0")), errUnverified},
	})
	untimed := grafana
	untimed.TimestampHeader = ""
	try(t, signedAs(t, untimed), goodGrafana, []attempt{
		{"of the body alone, without timestampHeader", set("X-Grafana-Alerting-Signature", hexOf("secret", "test message")), nil},
		{"of a time, without timestampHeader", func(*incoming) {}, errUnverified},
	})
}

func TestSlackSignature(t *testing.T) {
	v, in := signedAs(t, slack), goodSlack()
	sign := func(stamp string) string { return "v0=" + hexOf(in.tokens[0], "v0:"+stamp+":"+string(in.body)) }
	try(t, v, goodSlack, timedAttempts("X-Slack-Signature", "X-Slack-Request-Timestamp", 1531420618, sign))
	old := strconv.FormatInt(1531420618-int64(signedTimeTolerance.Seconds()), 10)
	try(t, v, goodSlack, []attempt{
		{"too old", all(set("X-Slack-Request-Timestamp", old), set("X-Slack-Signature", sign(old))), errMalformed},
		{"without the version", set("X-Slack-Signature", sign("1531420618")[3:]), errUnverified},
		{"of another version", set("X-Slack-Signature", "v1="+sign("1531420618")[3:]), errUnverified},
	})
}

func TestPagerDutySignature(t *testing.T) {
	v, good := signedAs(t, pagerDuty), goodPagerDuty().header.Get("X-PagerDuty-Signature")
	const other = "v1=130dcacb53a94d983a37cf2acba98e805a1c37185309ba56fdcccbcf00d6dd8b"
	try(t, v, goodPagerDuty, []attempt{
		{"as it was sent", func(*incoming) {}, nil},
		{"the first of two", set("X-PagerDuty-Signature", good+","+other), nil},
		{"the second of two", set("X-PagerDuty-Signature", other+","+good), nil},
		{"behind another version", set("X-PagerDuty-Signature", "v2=zz,"+good), nil},
		{"as the ninth", set("X-PagerDuty-Signature", strings.Repeat(other+",", 8)+good), errUnverified},
		{"of another version", set("X-PagerDuty-Signature", "v2="+good[3:]), errUnverified},
		{"of another secret", set("X-PagerDuty-Signature", other), errUnverified},
		{"with blanks", set("X-PagerDuty-Signature", other+" "+good), errUnverified},
		{"two headers", twice("X-PagerDuty-Signature", other, good), errUnverified},
		{"another body", func(in *incoming) { in.body[0] = ' ' }, errUnverified},
		{"no signature", without("X-PagerDuty-Signature"), errUnverified},
	})
	hook := verified(t, v, goodPagerDuty())
	if textAt(hook.body, "event", "event_type") != "incident.priority_updated" || hook.repeats != digestOf([]byte(pagerDutyBody)) {
		t.Errorf("webhook is %+v", hook)
	}
}

func TestSignatureInOtherHeaderOrEncoding(t *testing.T) {
	body := func() *incoming { return request(hmacBody, []string{testToken}) }
	for name, tc := range map[string]struct {
		signature v1alpha1.ReceiverSignature
		value     string
	}{
		"the algorithm in the header": {v1alpha1.ReceiverSignature{Header: "X-Sign"}, signatureOf("sha512", sha512.New, testToken, []byte(hmacBody))},
		"base64 with the algorithm": {v1alpha1.ReceiverSignature{Header: "X-Sign", Encoding: "base64"},
			"sha256=" + base64.StdEncoding.EncodeToString(macOf(sha256.New, testToken, hmacBody))},
		"base64 alone": {v1alpha1.ReceiverSignature{Header: "X-Sign", Encoding: "base64", Algorithm: "sha512"},
			base64.StdEncoding.EncodeToString(macOf(sha512.New, testToken, hmacBody))},
		"a word before it": {v1alpha1.ReceiverSignature{Header: "X-Sign", Encoding: "base64", Algorithm: "sha256", Prefix: "HMAC "},
			"HMAC " + base64.StdEncoding.EncodeToString(macOf(sha256.New, testToken, hmacBody))},
	} {
		try(t, signedAs(t, tc.signature), body, []attempt{
			{name, set("X-Sign", tc.value), nil},
			{name + ", and one byte more", set("X-Sign", tc.value+"A"), errUnverified},
			{name + ", in X-Signature", set("X-Signature", tc.value), errUnverified},
			{name + ", in the other encoding", set("X-Sign", signatureOf("sha256", sha256.New, testToken, []byte("x"))), errUnverified},
		})
	}
}

func TestTimedSignatureIsAcceptedOnce(t *testing.T) {
	v := signedAs(t, grafana)
	first, later := verified(t, v, goodGrafana()), goodGrafana()
	later.header.Set("X-Grafana-Alerting-Timestamp", "1")
	later.header.Set("X-Grafana-Alerting-Signature", hexOf("secret", "1:test message"))
	again := goodGrafana()
	again.header.Set("X-Delivery-Id", "another, which is not signed")
	if first.delivery == "" || verified(t, v, again).delivery != first.delivery {
		t.Error("the same webhook is another delivery")
	}
	if verified(t, v, later).delivery == first.delivery {
		t.Error("a later time is the same delivery")
	}
}

// The API server refuses all of these. But it does not validate objects again that were stored with an older definition.
func TestPartialSignatureIsRefused(t *testing.T) {
	for name, s := range map[string]v1alpha1.ReceiverSignature{
		"no body":               {Algorithm: "sha256", TimestampHeader: "X-Time", Payload: "{timestamp}:"},
		"no time":               {Algorithm: "sha256", TimestampHeader: "X-Time", Payload: "v0:{body}"},
		"nothing between":       {Algorithm: "sha256", TimestampHeader: "X-Time", Payload: "{timestamp}{body}"},
		"a digit between":       {Algorithm: "sha256", TimestampHeader: "X-Time", Payload: "{timestamp}0{body}"},
		"an unknown algorithm":  {Algorithm: "md5"},
		"a prefix without one":  {Prefix: "v1="},
		"text behind the body":  {Algorithm: "sha256", TimestampHeader: "X-Time", Payload: "{timestamp}:{body}."},
		"another name for them": {Algorithm: "sha256", TimestampHeader: "X-Time", Payload: "{time}:{body}"},
	} {
		obj := receiverOf("smoke", "apps", func(spec *v1alpha1.GateReceiverSpec) { spec.Type, spec.Signature = v1alpha1.GenericHMACReceiver, &s })
		if e, err := compile(obj); err == nil || e != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExpressionsDoNotSeeTheConfiguredSignature(t *testing.T) {
	e, err := compile(receiverOf("smoke", "apps", func(s *v1alpha1.GateReceiverSpec) {
		s.Type, s.Action, s.Signature = v1alpha1.GenericHMACReceiver, v1alpha1.RequestOpen, &slack
		s.Filter = "headers['x-slack-signature'] == '' && headers['x-signature'] == '' && headers['x-slack-request-timestamp'] == '1'"
	}))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"X-Slack-Signature": {"v0=hidden"}, "X-Signature": {"hidden"}, "X-Slack-Request-Timestamp": {"1"}}
	if asked, err := e.decide(t.Context(), header, &webhook{body: map[string]any{}}); err != nil || asked.action != v1alpha1.RequestOpen {
		t.Errorf("got %q, %v", asked.action, err)
	}
}
