package receivers

import "testing"

const firing = `{"receiver":"gate","status":"firing","alerts":[{"status":"firing","labels":{"alertname":"HighErrorRate"},` +
	`"startsAt":"2026-03-02T09:58:00Z","endsAt":"0001-01-01T00:00:00Z","fingerprint":"a1b2"}],"groupLabels":{"alertname":"HighErrorRate"},` +
	`"commonLabels":{"alertname":"HighErrorRate","severity":"critical"},"commonAnnotations":{"summary":"5% of requests fail"},` +
	`"externalURL":"http://alertmanager.example","version":"4","groupKey":"{}:{alertname=\"HighErrorRate\"}","truncatedAlerts":0}`

func goodAlertmanager() *incoming {
	return request(firing, []string{testToken}, "Authorization", "Bearer "+testToken, "Content-Type", "application/json")
}

func TestAlertmanagerToken(t *testing.T) {
	try(t, alertmanager{}, goodAlertmanager, tokenAttempts("Authorization", "Bearer "))
	attempts := []attempt{
		{"the scheme in lower case", set("Authorization", "bearer "+testToken), nil},
		{"two spaces", set("Authorization", "Bearer  "+testToken), nil},
		{"another scheme", set("Authorization", "Basic "+testToken), errUnverified},
		{"no scheme", set("Authorization", testToken), errUnverified},
		{"the scheme only", set("Authorization", "Bearer"), errUnverified},
		{"a tab for the space", set("Authorization", "Bearer\t"+testToken), errUnverified},
		{"in another header", func(in *incoming) {
			in.header.Set("Proxy-Authorization", in.header.Get("Authorization"))
			in.header.Del("Authorization")
		}, errUnverified},
		{"a status of its own", func(in *incoming) { in.body = []byte(`{"status":"suppressed"}`) }, errMalformed},
		{"the status in upper case", func(in *incoming) { in.body = []byte(`{"status":"FIRING"}`) }, errMalformed},
		{"no status", func(in *incoming) { in.body = []byte(`{"alerts":[]}`) }, errMalformed},
		{"a status that is an object", func(in *incoming) { in.body = []byte(`{"status":{"firing":true}}`) }, errMalformed},
	}
	for name, body := range notObjects {
		attempts = append(attempts, attempt{name, func(in *incoming) { in.body = []byte(body) }, errMalformed})
	}
	try(t, alertmanager{}, goodAlertmanager, attempts)
}

func TestAlertEventAndReason(t *testing.T) {
	for _, test := range []struct{ body, event, reason string }{
		{firing, "firing", "firing HighErrorRate: 5% of requests fail"},
		{`{"status":"resolved","commonAnnotations":{"description":"It was\nlong"}}`, "resolved", "resolved: It was"},
		{`{"status":"resolved","commonLabels":{"alertname":"Down"}}`, "resolved", "resolved Down"},
		{`{"status":"firing","commonLabels":null,"commonAnnotations":[]}`, "firing", "firing"},
	} {
		in := goodAlertmanager()
		in.body = []byte(test.body)
		if hook := verified(t, alertmanager{}, in); hook.event != test.event || hook.reason != test.reason || hook.delivery != "" {
			t.Errorf("webhook is %+v, want %q, %q", hook, test.event, test.reason)
		}
	}
}
