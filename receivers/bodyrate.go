package receivers

import (
	"io"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// bodyRate is the minimum rate at which a sender must send a body.
type bodyRate struct {
	// interval is the time limit for the next bytes of the body, or for the rest of it.
	interval time.Duration
	bytes    int
	// whole is the time limit for the whole body.
	whole time.Duration
}

// defaultBodyRate is the body rate of all servers.
var defaultBodyRate = bodyRate{interval: progressInterval, bytes: progressBytes, whole: readTimeout}

// keep returns a handler that disconnects senders that are slower than p, even while net/http reads the rest of the body.
func (p bodyRate) keep(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A deadline would end the context of a request without a body.
		if r.Body != http.NoBody {
			now := clock.RealClock{}.Now()
			body := &pacedBody{ReadCloser: r.Body, bodyRate: p, conn: http.NewResponseController(w), end: now.Add(p.whole), came: p.bytes}
			body.extend(now)
			// net/http reads the body of the original request, so modify a copy.
			paced := *r
			paced.Body = body
			r = &paced
		}
		next.ServeHTTP(w, r)
	})
}

// pacedBody is a body that must arrive at a minimum rate. Otherwise, reading it fails with os.ErrDeadlineExceeded.
type pacedBody struct {
	io.ReadCloser
	bodyRate

	conn *http.ResponseController
	end  time.Time
	// came is the number of bytes that have arrived since the deadline was set.
	came int
	err  error
}

// Read implements io.Reader.
func (b *pacedBody) Read(into []byte) (int, error) {
	// At the end of the body, net/http removes the deadline and continues to read. The deadline must not be set again then.
	if b.err != nil {
		return 0, b.err
	}
	if b.came >= b.bytes {
		b.came = 0
		b.extend(clock.RealClock{}.Now())
	}
	n, err := b.ReadCloser.Read(into)
	b.came, b.err = b.came+n, err
	return n, err
}

// extend gives the sender another interval, but not beyond the end of the time limit for the whole body.
func (b *pacedBody) extend(now time.Time) {
	deadline := now.Add(b.interval)
	if deadline.After(b.end) {
		deadline = b.end
	}
	_ = b.conn.SetReadDeadline(deadline) // the ResponseRecorder in tests does not support deadlines
}
