package receivers

import (
	"context"
	"fmt"
)

// alertmanager accepts webhooks of Alertmanager and of compatible senders. It ignores the version in the payload.
type alertmanager struct{}

func (alertmanager) prove(_ context.Context, in *incoming) (bool, error) {
	if !equalToAny(bearer(in.header), in.tokens) {
		return false, fmt.Errorf(msgBearer, errUnverified)
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
		return nil, fmt.Errorf(msgAlertStatus, errMalformed)
	}
	summary := textAt(body, "commonAnnotations", "summary")
	if summary == "" {
		summary = textAt(body, "commonAnnotations", "description")
	}
	reason := status + phrase(" ", textAt(body, "commonLabels", "alertname")) + phrase(": ", summary)
	return &webhook{event: status, reason: reason, body: body}, nil
}
