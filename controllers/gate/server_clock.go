package gate

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// behindFor is the minimum time for which a response of the API server is taken into account. The maximum is twice that time. Several
// responses are needed, because the Date header has a resolution of one second. Responses expire, because the clock may be adjusted.
const behindFor = time.Minute

// ServerClock measures how far the controller's clock is behind the API server's clock, based on the Date header of all responses.
type ServerClock struct {
	Clock clock.PassiveClock

	mu sync.Mutex
	// since is the start of the period of latest. Earlier responses are in previous.
	since            time.Time
	latest, previous time.Duration
	reported         atomic.Bool
}

// Wrap returns a transport that reads the Date header of each response.
func (c *ServerClock) Wrap(next http.RoundTripper) http.RoundTripper { return datedTripper{next, c} }

type datedTripper struct {
	http.RoundTripper
	clock *ServerClock
}

// RoundTrip implements http.RoundTripper.
func (t datedTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err == nil && resp.StatusCode < http.StatusInternalServerError { // errors may come from a proxy with another clock
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			t.clock.Record(date)
		}
	}
	return resp, err
}

// Record records the time in a response.
func (c *ServerClock) Record(date time.Time) {
	now := c.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rotate(now)
	c.latest = max(c.latest, date.Sub(now))
}

// rotate drops old responses. It drops all responses if now precedes them, which happens only with a clock without a monotonic reading.
func (c *ServerClock) rotate(now time.Time) {
	switch age := now.Sub(c.since); {
	case age < 0, age >= 2*behindFor:
		c.since, c.previous, c.latest = now, 0, 0
	case age >= behindFor:
		c.since, c.previous, c.latest = now, c.latest, 0
	}
}

// Behind returns a lower bound of how far the controller's clock is behind, zero if it is not behind.
func (c *ServerClock) Behind() time.Duration {
	if c == nil {
		return 0
	}
	now := c.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rotate(now)
	return max(c.latest, c.previous)
}

// report sets the clock skew metric while the controller's clock is behind, and resets it once afterwards.
func (c *ServerClock) report(skew *prometheus.GaugeVec, behind time.Duration) {
	if c != nil && (c.reported.Swap(behind > 0) || behind > 0) {
		skew.WithLabelValues().Set(-behind.Seconds())
	}
}
