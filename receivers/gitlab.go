package receivers

import (
	"context"
	"fmt"
)

// gitlab accepts GitLab webhooks, which contain the token in X-Gitlab-Token. With a signing token, they are signed as specified by
// Standard Webhooks. If the Secret has both tokens, a webhook must contain both.
type gitlab struct{}

func (gitlab) prove(_ context.Context, in *incoming) (bool, error) {
	if len(in.tokens) == 0 && len(in.signingTokens) > 0 {
		return false, nil
	}
	if !equalToAny(only(in.header, "X-Gitlab-Token"), in.tokens) {
		return false, fmt.Errorf(msgGitLabToken, errUnverified)
	}
	return true, nil
}

func (g gitlab) verify(ctx context.Context, in *incoming) (*webhook, error) {
	if _, err := g.prove(ctx, in); err != nil {
		return nil, err
	}
	delivery, err := gitlabDelivery(in)
	if err != nil {
		return nil, err
	}
	event := only(in.header, "X-Gitlab-Event")
	if event == "" {
		return nil, fmt.Errorf(msgGitLabEvent, errMalformed)
	}
	body, err := mustObject(in.body)
	if err != nil {
		return nil, err
	}
	return &webhook{event: event, reason: gitlabReason(body), delivery: delivery, body: body}, nil
}

// gitlabDelivery verifies the signature if there is a signing token. Without a signing token, no header is signed, so a webhook with an
// ID is identified by its body. It returns an empty delivery if the webhook has no ID.
func gitlabDelivery(in *incoming) (string, error) {
	if len(in.signingTokens) > 0 {
		return verifyStandard(in, in.signingTokens)
	}
	for _, name := range []string{"Idempotency-Key", standardIDHeader, "X-Gitlab-Event-UUID"} {
		if in.header.Get(name) != "" {
			return digestOf(in.body), nil
		}
	}
	return "", nil
}

// gitlabReason returns a reason such as "pipeline of main: success in group/project by jdoe".
func gitlabReason(body map[string]any) string {
	ref := textAt(body, "object_attributes", "ref")
	if ref == "" {
		ref = text(body, "ref")
	}
	result := textAt(body, "object_attributes", "status")
	if result == "" {
		result = text(body, "status", "build_status")
	}
	who := textAt(body, "user", "username")
	if who == "" {
		who = text(body, "user_username", "user_name")
	}
	return phrase("", text(body, "object_kind")) + phrase(" of ", ref) + phrase(": ", result) +
		phrase(" in ", textAt(body, "project", "path_with_namespace")) + phrase(" by ", who)
}
