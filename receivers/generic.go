package receivers

import "context"

// generic takes any request: the sender proves itself by knowing the path. The body need
// not be JSON. A JSON object may say why in reason or message.
type generic struct{}

func (generic) verify(_ context.Context, in *incoming) (*webhook, error) {
	body := object(in.body)
	return &webhook{reason: text(body, "reason", "message"), body: body}, nil
}
