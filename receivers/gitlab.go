package receivers

import (
	"context"
	"fmt"
)

// gitlab takes webhooks of GitLab, which send the token as X-Gitlab-Token.
type gitlab struct{}

func (gitlab) prove(_ context.Context, in *incoming) error {
	if !equalToAny(only(in.header, "X-Gitlab-Token"), in.tokens) {
		return fmt.Errorf("%w: X-Gitlab-Token is not the token", errUnverified)
	}
	return nil
}

func (g gitlab) verify(ctx context.Context, in *incoming) (*webhook, error) {
	if err := g.prove(ctx, in); err != nil {
		return nil, err
	}
	event := only(in.header, "X-Gitlab-Event")
	if event == "" {
		return nil, fmt.Errorf("%w: X-Gitlab-Event must be there once", errMalformed)
	}
	body, err := mustObject(in.body)
	if err != nil {
		return nil, err
	}
	hook := &webhook{event: event, reason: gitlabReason(body), body: body}
	for _, name := range []string{"Idempotency-Key", "webhook-id", "X-Gitlab-Event-UUID"} {
		if in.header.Get(name) != "" {
			hook.delivery = digestOf(in.body)
		}
	}
	return hook, nil
}

// gitlabReason returns a reason such as "pipeline of main: success in group/project by
// jdoe".
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
