package receivers

import "context"

// generic takes any request: that the sender knows the path is the proof. The body
// need not be JSON; a JSON object may say why in reason or message.
type generic struct{}

func (generic) verify(_ context.Context, in *incoming) (*webhook, error) {
	body := object(in.body)
	return &webhook{reason: text(body, "reason", "message"), body: body}, nil
}
