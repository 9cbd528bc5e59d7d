package receivers

import (
	"context"
	"fmt"
	"mime"
	"net/url"
)

// github accepts GitHub webhooks. The body is signed in X-Hub-Signature-256, or in X-Hub-Signature by old servers. Depending on the
// configuration of the webhook, the body is JSON or a form that contains JSON.
type github struct{}

func (github) verify(_ context.Context, in *incoming) (*webhook, error) {
	header, algorithm := "X-Hub-Signature-256", "sha256"
	if len(in.header.Values(header)) == 0 && len(in.header.Values("X-Hub-Signature")) > 0 {
		header, algorithm = "X-Hub-Signature", "sha1"
	}
	if !signed(only(in.header, header), in.body, in.keys(), algorithm) {
		return nil, fmt.Errorf(msgBodySignature, errUnverified, header)
	}
	// These headers are not signed, so a client that repeats a webhook can change them. They are required because GitHub sends them, but
	// they do not identify a webhook.
	event := only(in.header, "X-GitHub-Event")
	if event == "" || only(in.header, "X-GitHub-Delivery") == "" {
		return nil, fmt.Errorf(msgGitHubHeaders, errMalformed)
	}
	payload, err := githubPayload(in)
	if err != nil {
		return nil, err
	}
	body, err := mustObject(payload)
	if err != nil {
		return nil, err
	}
	return &webhook{event: event, reason: githubReason(event, body), delivery: digestOf(in.body), body: body}, nil
}

// githubPayload returns the JSON in a webhook of either content type.
func githubPayload(in *incoming) ([]byte, error) {
	// If the charset cannot be parsed, contentType is empty.
	contentType, _, _ := mime.ParseMediaType(only(in.header, "Content-Type"))
	switch contentType {
	case "application/json":
		return in.body, nil
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(in.body))
		if err != nil || len(form["payload"]) != 1 {
			return nil, fmt.Errorf(msgGitHubForm, errMalformed)
		}
		return []byte(form.Get("payload")), nil
	default:
		return nil, fmt.Errorf(msgContentType, errMalformed)
	}
}

// githubReason returns a reason such as "workflow_run completed: success in org/repo by octocat".
func githubReason(event string, body map[string]any) string {
	result := textAt(body, event, "conclusion")
	if result == "" {
		result = textAt(body, "deployment_status", "state")
	}
	return event + phrase(" ", text(body, "action")) + phrase(" to ", text(body, "ref")) + phrase(": ", result) +
		phrase(" in ", textAt(body, "repository", "full_name")) + phrase(" by ", textAt(body, "sender", "login")) +
		phrase(": ", textAt(body, "head_commit", "message"))
}
