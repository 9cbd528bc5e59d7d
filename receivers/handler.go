package receivers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// Handler takes webhooks. Nothing that it logs or answers has a path, a token or a
// signature in it.
type Handler struct {
	Table   *Table
	Gates   *Gates
	Clock   clock.PassiveClock
	Log     logr.Logger
	Metrics *Metrics

	large *semaphore.Weighted
}

// NewHandler returns a Handler for what is in a Table.
func NewHandler(table *Table, gates *Gates, clock clock.PassiveClock, log logr.Logger, metrics *Metrics) *Handler {
	return &Handler{Table: table, Gates: gates, Clock: clock, Log: log, Metrics: metrics, large: semaphore.NewWeighted(maxLargeBytes)}
}

// answer is what a sender gets. The text is empty unless the sender has proved who it
// is.
type answer struct {
	code int
	text string
	// from is the receiver, zero if the sender has proved to be from none.
	from types.NamespacedName
	// details for the log.
	details []any
	err     error
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.recovered(w)
	body, release, refused := h.read(w, r)
	defer release()
	a := refused
	if a == nil {
		a = h.handle(r, body)
	}
	h.Metrics.count(a.from, a.code)
	h.log(r, a)
	h.write(w, a)
}

// recovered answers a request whose handling panicked.
func (h *Handler) recovered(w http.ResponseWriter) {
	if cause := recover(); cause != nil {
		// The cause may quote what was sent.
		h.Log.Error(errors.New("panic"), "A webhook could not be handled", "stack", string(debug.Stack()))
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// read returns the body of a request, and what gives its memory back. It answers all
// alike, whether there is such a path or not.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), refused *answer) {
	release = func() {}
	if r.ContentLength < 0 {
		// It may have had a length besides its chunks, that a proxy before us went by:
		// what comes next on the connection could be from anybody.
		w.Header().Set("Connection", "close")
	}
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return nil, release, &answer{code: http.StatusMethodNotAllowed}
	case !slices.Contains([]string{"", "identity"}, strings.ToLower(r.Header.Get("Content-Encoding"))):
		return nil, release, &answer{code: http.StatusUnsupportedMediaType}
	case r.ContentLength > maxBodyBytes:
		return nil, release, &answer{code: http.StatusRequestEntityTooLarge}
	}
	limited := http.MaxBytesReader(w, r.Body, maxBodyBytes)
	body, err := io.ReadAll(io.LimitReader(limited, smallBodyBytes))
	if err == nil && len(body) == smallBodyBytes {
		if !h.large.TryAcquire(maxBodyBytes) {
			return nil, release, busy()
		}
		release = func() { h.large.Release(maxBodyBytes) }
		var rest []byte
		rest, err = io.ReadAll(limited)
		body = append(body, rest...)
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, release, &answer{code: http.StatusRequestEntityTooLarge}
	case err != nil:
		return nil, release, &answer{code: http.StatusBadRequest}
	}
	return body, release, nil
}

// handle answers a request that was read.
func (h *Handler) handle(r *http.Request, body []byte) *answer {
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	e, certain := h.Table.find(r.URL.Path)
	in := &incoming{path: r.URL.Path, header: r.Header, body: body, now: h.Clock.Now()}
	if e == nil {
		pretend(in)
		if !certain {
			return busy()
		}
		return &answer{code: http.StatusNotFound}
	}
	in.tokens = e.tokens
	hook, refused := hookOf(ctx, e, in)
	if refused != nil && refused.code == http.StatusNotFound && !certain {
		refused.code = http.StatusServiceUnavailable // as if there were no such path
	}
	if refused != nil {
		return refused
	}
	hook.event, hook.reason = cut(hook.event), cut(hook.reason)
	a := h.take(ctx, e, in, hook)
	a.from = e.key
	a.details = append([]any{"type", e.spec.Type, "event", hook.event}, a.details...)
	return a
}

// pretend takes as long as the verification of a signature that is wrong.
func pretend(in *incoming) {
	mac := hmac.New(sha256.New, []byte(in.path))
	_, _ = mac.Write(in.body) // never fails
	equal(string(mac.Sum(nil)), in.header.Get("X-Signature"))
}

// hookOf returns what a request says, or how to answer one that is not verified.
func hookOf(ctx context.Context, e *entry, in *incoming) (*webhook, *answer) {
	hook, err := e.verifier.verify(ctx, in)
	switch {
	case err == nil:
		return hook, nil
	case errors.Is(err, errUnverified):
		return nil, &answer{code: http.StatusNotFound, err: err, details: []any{"receiver", e.key.String()}}
	case errors.Is(err, errMalformed):
		return nil, &answer{code: http.StatusBadRequest, text: err.Error(), err: err, from: e.key}
	}
	a := busy()
	a.err, a.from = err, e.key
	return nil, a
}

// take does what a verified webhook asks for.
func (h *Handler) take(ctx context.Context, e *entry, in *incoming, hook *webhook) *answer {
	action, refused := h.wants(ctx, e, in, hook)
	gates := e.wanted(hook)
	switch {
	case refused != nil:
		return refused
	case action == "" || len(gates) == 0:
		return &answer{code: http.StatusOK, text: "nothing to request"}
	}
	return h.put(ctx, e, in, hook, action, gates)
}

// wants returns what a receiver makes of a verified webhook, or how to answer one that
// it does not take.
func (h *Handler) wants(ctx context.Context, e *entry, in *incoming, hook *webhook) (v1alpha1.RequestAction, *answer) {
	switch {
	case e.spec.Suspend:
		return "", &answer{code: http.StatusServiceUnavailable, text: "the receiver is suspended"}
	case e.broken != nil:
		return "", &answer{code: http.StatusServiceUnavailable, text: "the receiver is not ready", err: e.broken}
	case !e.limiter.AllowN(in.now, 1):
		return "", &answer{code: http.StatusTooManyRequests, text: fmt.Sprintf("more than %d requests in a second", requestsPerSecond)}
	case !e.takes(hook.event):
		return "", &answer{code: http.StatusBadRequest, text: fmt.Sprintf("the event %q is not among the events of the receiver", hook.event)}
	}
	action, err := e.decide(ctx, in.header, hook)
	if err != nil {
		return "", &answer{code: http.StatusInternalServerError, text: err.Error(), err: err}
	}
	return action, nil
}

// put requests an action of Gates in the name of a receiver.
func (h *Handler) put(ctx context.Context, e *entry, in *incoming, hook *webhook, action v1alpha1.RequestAction, gates []types.NamespacedName) *answer {
	if refused := h.still(ctx, e, in); refused != nil {
		return refused
	}
	a := ask{action: action, by: e.by(), reason: hook.reason, window: e.spec.Window}
	if hook.delivery != "" {
		a.delivery = deliveryOf(e.key.String(), hook.delivery)
	}
	if hook.repeats != "" {
		a.repeats = deliveryOf(e.key.String(), hook.repeats)
	}
	return h.request(ctx, gates, a, in)
}

// still makes sure that the token was not taken out of its Secret since the Secret
// was read last.
func (h *Handler) still(ctx context.Context, e *entry, in *incoming) *answer {
	tokens, err := retried(ctx, func() ([]string, error) { return h.Table.tokens(ctx, e) })
	switch {
	case errors.As(err, new(*Refused)):
		return &answer{code: http.StatusNotFound, err: err}
	case err != nil:
		return &answer{code: http.StatusServiceUnavailable, text: "try again", err: err}
	case slices.Equal(tokens, e.tokens):
		return nil
	}
	fresh := *in
	fresh.tokens = tokens
	if _, err := e.verifier.verify(ctx, &fresh); err != nil || !equalToAny(in.path, pathsOf(e.key, tokens)) {
		return &answer{code: http.StatusNotFound, err: errUnverified}
	}
	return nil
}

// request asks all Gates. If not all could be asked the sender has to try again; those
// that remember the webhook are passed over then.
func (h *Handler) request(ctx context.Context, gates []types.NamespacedName, a ask, in *incoming) *answer {
	var errs []error
	replayed := 0
	for _, key := range gates {
		err := h.Gates.request(ctx, key, a, in.now)
		if errors.Is(err, errReplayed) {
			replayed++
			continue
		}
		errs = append(errs, err)
	}
	result := &answer{details: []any{"action", a.action, "gates", gates, "reason", a.reason}}
	switch err := errors.Join(errs...); {
	case replayed == len(gates):
		result.code, result.text, result.err = http.StatusConflict, errReplayed.Error(), errReplayed
	case err == nil:
		result.code, result.text = http.StatusOK, fmt.Sprintf("%s requested", a.action)
	case errors.Is(err, errTooMany):
		result.code, result.text, result.err = http.StatusTooManyRequests, err.Error(), err
	case errors.Is(err, errAway):
		result.code, result.text, result.err = http.StatusServiceUnavailable, "not every gate could be asked, try again", err
	case errors.Is(err, gate.ErrClosedByPeople):
		result.code, result.text, result.err = http.StatusForbidden, err.Error(), err
	case errors.Is(err, errNoGate):
		result.code, result.text, result.err = http.StatusInternalServerError, err.Error(), err
	default:
		result.code, result.text, result.err = http.StatusInternalServerError, "not every gate could be asked, see the log of the controller", err
	}
	return result
}

// busy asks a sender to try again. It looks the same whether there is such a path or
// not.
func busy() *answer { return &answer{code: http.StatusServiceUnavailable} }

// log says what came of a webhook.
func (h *Handler) log(r *http.Request, a *answer) {
	log := h.Log.WithValues(append([]any{"code", a.code, "remote", r.RemoteAddr}, a.details...)...)
	if a.from.Name != "" {
		log = log.WithValues("receiver", a.from.String())
	}
	switch {
	case a.err != nil:
		log.Error(a.err, "Webhook refused")
	case a.code != http.StatusOK:
		log.Info("Webhook refused", "cause", a.text)
	default:
		log.Info("Webhook taken", "result", a.text)
	}
}

func (h *Handler) write(w http.ResponseWriter, a *answer) {
	text := a.text
	if text != "" {
		text += "\n"
	}
	respond(w, a.code, text)
}

// respond writes an answer.
func respond(w http.ResponseWriter, code int, text string) {
	if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text) // the sender may be gone
}
