package receivers

import "context"

// generic accepts any request to its path. The body does not have to be JSON. A JSON object may contain a reason or a message.
type generic struct{}

func (generic) verify(_ context.Context, in *incoming) (*webhook, error) {
	body := object(in.body)
	return &webhook{reason: text(body, "reason", "message"), body: body, pathOnly: true}, nil
}
