package receivers

import (
	"context"
	"fmt"
)

// alertmanager takes webhooks of Alertmanager, and of anything that sends the same. The
// version in the payload is ignored.
type alertmanager struct{}

func (alertmanager) prove(_ context.Context, in *incoming) (bool, error) {
	if !equalToAny(bearer(in.header), in.tokens) {
		return false, fmt.Errorf("%w: Authorization is not Bearer and the token", errUnverified)
	}
	return true, nil
}

func (a alertmanager) verify(ctx context.Context, in *incoming) (*webhook, error) {
	if _, err := a.prove(ctx, in); err != nil {
		return nil, err
	}
	body, err := mustObject(in.body)
	if err != nil {
		return nil, err
	}
	status := text(body, "status")
	if status != "firing" && status != "resolved" {
		return nil, fmt.Errorf("%w: status must be firing or resolved", errMalformed)
	}
	summary := textAt(body, "commonAnnotations", "summary")
	if summary == "" {
		summary = textAt(body, "commonAnnotations", "description")
	}
	reason := status + phrase(" ", textAt(body, "commonLabels", "alertname")) + phrase(": ", summary)
	return &webhook{event: status, reason: reason, body: body}, nil
}
