package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/internal/preview"
)

// defaultPreview is how far a preview looks if nobody says it.
const defaultPreview = 30 * 24 * time.Hour

// parseRange reads --from and --until. A time without an offset is in the zone of the user.
func (s *session) parseRange(from, until string) (r preview.Range, err error) {
	now, err := s.now()
	if err != nil {
		return r, err
	}
	r.From = now.Truncate(time.Second)
	if from != "" {
		if r.From, err = readWhen(clean(from), r.From); err != nil {
			return r, fmt.Errorf("--from must be a time, and %q %w", from, err)
		}
	}
	r.Until = r.From.Add(defaultPreview)
	if until != "" {
		if day, _, _ := strings.Cut(clean(until), " "); from != "" && (day == "today" || day == "tomorrow") {
			return r, fmt.Errorf("--until must be a time: with --from, %q can be that of two days, write the date", until)
		}
		if r.Until, err = readWhen(clean(until), r.From); err != nil {
			return r, fmt.Errorf("--until must be a time, and %q %w", until, err)
		}
	}
	if !r.From.Before(r.Until) {
		return r, errors.New("--until must be later than --from")
	}
	return r, nil
}

// clean returns a text as readWhen reads it.
func clean(text string) string { return strings.Join(strings.Fields(strings.ToLower(text)), " ") }
