package replicas

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// senderTimeout is that of GitHub.
	senderTimeout = 10 * time.Second
	// most is how many webhooks a sender sends: a receiver remembers 256, and then refuses to
	// open for ten minutes.
	most = 250
	// between is how long it waits after each, so that they last for the whole test.
	between = 200 * time.Millisecond
)

// service has the addresses of the replicas, as a Service has.
type service struct {
	mu   sync.Mutex
	urls []string
}

func (s *service) set(replicas ...*harness.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls = nil
	for _, p := range replicas {
		s.urls = append(s.urls, p.Webhooks)
	}
}

func (s *service) url(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.urls[n%len(s.urls)]
}

// attempt is a request that was sent once.
type attempt struct {
	began, ended time.Time
	// code of the answer, 0 if there was none.
	code int
	err  error
}

// delivery is what a sender sends until it is acknowledged.
type delivery struct {
	gate     string
	action   v1alpha1.RequestAction
	reason   string
	attempts []attempt
}

// acknowledged returns whether a sender was told that it need not try again. One that
// is told that it was taken before need not, either.
func (d *delivery) acknowledged() bool {
	if len(d.attempts) == 0 {
		return false
	}
	code := d.attempts[len(d.attempts)-1].code
	return code == http.StatusOK || code == http.StatusConflict
}

// sender posts one webhook after the other, each until it is acknowledged.
type sender struct {
	name, kind, gate, path string
	to                     *service
	client                 *http.Client
	sent                   []*delivery
	// asks has the sender ask before it sends a body.
	asks bool
	// repeats omits the X-Delivery-Id, so that a webhook that is sent again counts again.
	repeats bool
}

func newSender(name, kind, gate, path string, to *service) *sender {
	return &sender{name: name, kind: kind, gate: gate, path: path, to: to, client: &http.Client{Timeout: senderTimeout, Transport: &http.Transport{}}}
}

// run sends until a channel is closed, and then goes on with what is not acknowledged
// yet.
func (s *sender) run(ctx context.Context, stop <-chan struct{}) {
	for n := range most {
		select {
		case <-stop:
			return
		case <-time.After(between):
		}
		action := v1alpha1.RequestOpen
		if n%2 == 1 || s.kind == v1alpha1.GenericReceiver {
			action = v1alpha1.RequestClose
		}
		d := &delivery{gate: s.gate, action: action, reason: fmt.Sprintf("%s-%d", s.name, n)}
		s.sent = append(s.sent, d)
		for try := n / 2; !d.acknowledged(); try++ {
			if len(d.attempts) > 0 {
				select {
				case <-ctx.Done():
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
			d.attempts = append(d.attempts, s.post(ctx, s.to.url(try), d))
		}
	}
}

// post sends a webhook once.
func (s *sender) post(ctx context.Context, url string, d *delivery) (a attempt) {
	a.began = time.Now()
	defer func() { a.ended = time.Now() }()
	body := fmt.Sprintf(`{"action":%q,"reason":%q}`, d.action, d.reason)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+s.path, strings.NewReader(body))
	if err != nil {
		return attempt{err: err}
	}
	if s.kind == v1alpha1.GenericHMACReceiver {
		mac := hmac.New(sha256.New, []byte(token))
		mac.Write([]byte(body))
		req.Header.Set("X-Signature", fmt.Sprintf("sha256=%x", mac.Sum(nil)))
		if !s.repeats {
			req.Header.Set("X-Delivery-Id", d.reason)
		}
	}
	if s.asks {
		req.Header.Set("Expect", "100-continue")
	}
	response, err := s.client.Do(req)
	if err != nil {
		return attempt{began: a.began, err: err}
	}
	_, err = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return attempt{began: a.began, code: response.StatusCode, err: err}
}
