package receivers

import (
	"crypto/sha1"
	"crypto/sha256"
	"net/url"
	"strings"
	"testing"
)

const workflowRun = `{"action":"completed","workflow_run":{"id":30433642,"name":"Smoke tests","head_branch":"main",` +
	`"status":"completed","conclusion":"success"},"repository":{"id":1296269,"full_name":"org/repo"},"sender":{"login":"octocat"}}`

func githubRequest(event, body string) *incoming {
	return request(body, []string{testToken},
		"Content-Type", "application/json",
		"X-GitHub-Event", event,
		"X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958",
		"X-Hub-Signature", signatureOf("sha1", sha1.New, testToken, []byte(body)),
		"X-Hub-Signature-256", signatureOf("sha256", sha256.New, testToken, []byte(body)))
}

func goodGitHub() *incoming { return githubRequest("workflow_run", workflowRun) }

func TestGitHubSignature(t *testing.T) {
	only256 := func() *incoming {
		in := goodGitHub()
		in.header.Del("X-Hub-Signature")
		return in
	}
	try(t, github{}, only256, signatureAttempts("X-Hub-Signature-256", "sha256", sha256.New, workflowRun))
	only1 := func() *incoming {
		in := goodGitHub()
		in.header.Del("X-Hub-Signature-256")
		return in
	}
	try(t, github{}, only1, signatureAttempts("X-Hub-Signature", "sha1", sha1.New, workflowRun))
	try(t, github{}, goodGitHub, []attempt{
		{"both, and the old one wrong", set("X-Hub-Signature", "sha1=00"), nil},
		{"both, and the new one wrong", set("X-Hub-Signature-256", "sha256=00"), errUnverified},
		{"both, and the new one empty", set("X-Hub-Signature-256", ""), errUnverified},
		{"SHA-1 in the header of SHA-256", set("X-Hub-Signature-256", signatureOf("sha1", sha1.New, testToken, []byte(workflowRun))), errUnverified},
	})
}

func TestGitHubHeadersAreRequired(t *testing.T) {
	attempts := []attempt{
		{"no event", without("X-GitHub-Event"), errMalformed},
		{"two events", twice("X-GitHub-Event", "push", "workflow_run"), errMalformed},
		{"no delivery", without("X-GitHub-Delivery"), errMalformed},
		{"no content type", without("Content-Type"), errMalformed},
		{"two content types", twice("Content-Type", "application/json", "application/json"), errMalformed},
		{"XML", set("Content-Type", "application/xml"), errMalformed},
		{"JSON with a charset", set("Content-Type", "application/json; charset=utf-8"), nil},
		{"JSON that is said to be a form", set("Content-Type", "application/x-www-form-urlencoded"), errMalformed},
		{"no event, and a wrong signature", all(without("X-GitHub-Event"), set("X-Hub-Signature-256", "sha256=00")), errUnverified},
	}
	for name, body := range notObjects {
		attempts = append(attempts, attempt{name, func(in *incoming) { *in = *githubRequest("push", body) }, errMalformed})
	}
	try(t, github{}, goodGitHub, attempts)
}

func TestGitHubWebhookMayBeForm(t *testing.T) {
	form := func(body string) *incoming {
		in := githubRequest("workflow_run", body)
		in.header.Set("Content-Type", "application/x-www-form-urlencoded")
		return in
	}
	encoded := "payload=" + url.QueryEscape(workflowRun)
	hook := verified(t, github{}, form(encoded))
	if textAt(hook.body, "repository", "full_name") != "org/repo" || hook.delivery != digestOf([]byte(encoded)) {
		t.Errorf("webhook is %+v", hook)
	}
	try(t, github{}, func() *incoming { return form(encoded) }, []attempt{
		{"signed without the form", set("X-Hub-Signature-256", signatureOf("sha256", sha256.New, testToken, []byte(workflowRun))), errUnverified},
		{"with two payloads", func(in *incoming) { *in = *form(encoded + "&" + encoded) }, errMalformed},
		{"without a payload", func(in *incoming) { *in = *form("other=1") }, errMalformed},
		{"whose payload is an array", func(in *incoming) { *in = *form("payload=%5B%5D") }, errMalformed},
		{"with a wrong escape", func(in *incoming) { *in = *form("payload=%zz") }, errMalformed},
		{"with a semicolon", func(in *incoming) { *in = *form("payload={};a=b") }, errMalformed},
	})
}

func TestGitHubReason(t *testing.T) {
	for _, test := range []struct{ event, body, want string }{
		{"workflow_run", workflowRun, "workflow_run completed: success in org/repo by octocat"},
		{"push", `{"ref":"refs/heads/main","repository":{"full_name":"org/repo"},"sender":{"login":"octocat"},"head_commit":{"message":"Fix it\n\nAt length"}}`,
			"push to refs/heads/main in org/repo by octocat: Fix it"},
		{"deployment_status", `{"action":"created","deployment_status":{"state":"failure"},"repository":{"full_name":"org/repo"}}`,
			"deployment_status created: failure in org/repo"},
		{"ping", `{"zen":"Speak like a human."}`, "ping"},
		{"push", `{"ref":1,"repository":[],"sender":"octocat","head_commit":null}`, "push"},
	} {
		hook := verified(t, github{}, githubRequest(test.event, test.body))
		if hook.reason != test.want || hook.event != test.event {
			t.Errorf("%s: reason is %q, want %q", hook.event, hook.reason, test.want)
		}
	}
}

func TestGitHubReplayWithOtherDeliveryIDIsRefused(t *testing.T) {
	in := goodGitHub()
	first := verified(t, github{}, in)
	in.header.Set("X-GitHub-Delivery", "another")
	in.header.Set("X-GitHub-Event", "push")
	if again := verified(t, github{}, in); again.delivery != first.delivery || len(first.delivery) != 64 || strings.Contains(first.delivery, "72d3") {
		t.Errorf("delivery is %q, then %q", first.delivery, again.delivery)
	}
}
