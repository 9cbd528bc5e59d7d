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
	// senderTimeout is the timeout of GitHub.
	senderTimeout = 10 * time.Second
	// most is the maximum number of webhooks of a sender: a receiver records 256, and then refuses to open for ten minutes.
	most = 250
	// between is the pause after each webhook, so that the webhooks last for the whole test.
	between = 200 * time.Millisecond
)

// service has the addresses of the replicas, like a Service.
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

// attempt is one try to send a request.
type attempt struct {
	began, ended time.Time
	// code is the status code of the response, 0 if there was none.
	code int
	err  error
}

// delivery is a webhook that a sender sends until it is acknowledged.
type delivery struct {
	gate     string
	action   v1alpha1.RequestAction
	reason   string
	attempts []attempt
}

// acknowledged returns whether the response means that the sender need not try again. That includes the response that the webhook was
// accepted before.
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
	// expects makes the sender send "Expect: 100-continue" before a body.
	expects bool
	// repeats omits the X-Delivery-Id, so that a repeated webhook counts again.
	repeats bool
}

func newSender(name, kind, gate, path string, to *service) *sender {
	return &sender{name: name, kind: kind, gate: gate, path: path, to: to, client: &http.Client{Timeout: senderTimeout, Transport: &http.Transport{}}}
}

// run sends until a channel is closed, and then retries the webhook that is not acknowledged yet.
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
	if s.expects {
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
