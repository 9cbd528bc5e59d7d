package calendarfeed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/fluxcd/gating-controller/internal/preview"
)

// page is the cached content of a calendar.
type page struct {
	// refreshing allows only one request at a time to read the objects. Other requests wait for the result.
	refreshing *semaphore.Weighted

	// latest is the last version, nil if there is none yet.
	latest *version
	// checkedAt is the time when the objects were last read, and next is the time when they must be read again.
	checkedAt, next time.Time
}

// version is a version of the content.
type version struct {
	body []byte
	// etag is the ETag of the body. All replicas have the same ETag for the same objects on the same day.
	etag string
	// modified is the time when the body last changed in this replica.
	modified time.Time
	// sources identifies the versions of the objects that the body was computed from.
	sources string
	// generation is the generation of the CalendarFeed, and day is the first day of the calendar.
	generation int64
	day        time.Time
}

func newPage() *page { return &page{refreshing: semaphore.NewWeighted(1)} }

// currentVersion returns the current content. It is computed only once for each state of the objects and each day.
func (h *Handler) currentVersion(ctx context.Context, e *entry) (*version, error) {
	p := e.page
	if err := p.refreshing.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer p.refreshing.Release(1)
	now := h.Clock.Now()
	day := now.UTC().Truncate(24 * time.Hour)
	same := p.latest != nil && p.latest.generation == e.obj.Generation && p.latest.day.Equal(day)
	if back := now.Before(p.checkedAt); same && now.Before(p.next) && !back {
		return p.latest, nil
	}
	c, err := h.Table.Source.read(ctx, e)
	if err != nil {
		return nil, err
	}
	if of := c.versions(); !same || p.latest.sources != of {
		body, err := h.write(ctx, c, e, day)
		if err != nil {
			return nil, err
		}
		p.latest = p.latest.replaced(&version{body: body, sources: of, generation: e.obj.Generation, day: day}, now)
	}
	p.checkedAt, p.next = now, h.Clock.Now().Add(max(checkInterval, idleFactor*h.Clock.Since(now)))
	return p.latest, nil
}

// write computes a calendar, one at a time for all requests.
func (h *Handler) write(ctx context.Context, c *contents, e *entry, day time.Time) ([]byte, error) {
	if err := h.computing.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer h.computing.Release(1)
	return c.write(ctx, e, day)
}

// replaced completes the version next, which replaces v, with its ETag and modification time. v is nil if there is no previous version.
// If the body has changed, the time increases by at least a second, for clients that send only the time.
func (v *version) replaced(next *version, now time.Time) *version {
	next.etag = fmt.Sprintf(`"%x"`, sha256.Sum256(next.body))
	next.modified = now.UTC().Truncate(time.Second)
	switch {
	case v == nil:
	case v.etag == next.etag:
		next.modified = v.modified
	case !next.modified.After(v.modified):
		next.modified = v.modified.Add(time.Second)
	}
	return next
}

// write returns the calendar that starts on a day. It depends only on the objects and the day, so that all replicas return the same
// calendar.
func (c *contents) write(ctx context.Context, e *entry, day time.Time) ([]byte, error) {
	in := preview.Range{From: day, Until: day.AddDate(0, 0, e.obj.GetDays())}
	set := c.set().Within(ctx, preview.PageLookups)
	set.AtMost(2*maxEvents + 2)
	report, _, err := set.Preview(in)
	if err != nil {
		return nil, err
	}
	for _, name := range c.absent {
		report.Gates = append(report.Gates, preview.NotFound(name, in))
	}
	var out bytes.Buffer
	err = preview.Calendar{
		Range: in, Name: e.key.String(), State: string(e.obj.Spec.State), Stamp: c.changed(day), Lacks: c.lacks, Events: maxEvents, Bytes: maxBytes,
	}.Write(&out, report)
	return out.Bytes(), err
}
