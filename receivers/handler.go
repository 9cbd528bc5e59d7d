package receivers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/endpoint"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// Handler accepts webhooks. It never logs or returns a path, a token or a signature.
type Handler struct {
	Table   *Table
	Gates   *Gates
	Clock   clock.PassiveClock
	Log     logr.Logger
	Metrics *Metrics

	large largeBodies
}

// NewHandler returns a Handler for the receivers in a Table.
func NewHandler(table *Table, gates *Gates, clock clock.PassiveClock, log logr.Logger, metrics *Metrics) *Handler {
	return &Handler{Table: table, Gates: gates, Clock: clock, Log: log, Metrics: metrics, large: largeBodies{byQuota: map[quotaKey]int{}}}
}

// response is the response to a sender. Its text is empty if the sender is not verified.
type response struct {
	code int
	text string
	// from is the receiver, zero if the sender is not verified.
	from types.NamespacedName
	// details are added to the log entry.
	details []any
	err     error
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.recovered(w)
	a := h.respond(w, r)
	h.Metrics.count(a.from, a.code)
	h.log(r, a)
	h.write(w, a)
}

// recovered responds to a request after its handler has panicked.
func (h *Handler) recovered(w http.ResponseWriter) {
	if cause := recover(); cause != nil {
		// The cause may quote the request.
		h.Log.Error(errors.New("panic"), "A webhook could not be handled", "stack", string(debug.Stack()))
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// respond reads a request and returns the response. It looks up the path first, so that only requests to an existing path use memory. An
// unverified sender cannot tell whether a path exists.
func (h *Handler) respond(w http.ResponseWriter, r *http.Request) *response {
	if refused := acceptable(w, r, maxBodyBytes); refused != nil {
		return refused
	}
	e, certain := h.Table.Find(r.URL.Path)
	in := &incoming{path: r.URL.Path, header: r.Header, now: h.Clock.Now()}
	proven, a := admit(r.Context(), e, in)
	of := newQuotaKey(in.path)
	if proven {
		of = newQuotaKey(e.key.String())
	}
	body, release, refused := h.read(w, r, of, a == nil)
	defer release()
	if refused != nil {
		return refused
	}
	ctx, cancel := context.WithTimeout(r.Context(), responseTimeout)
	defer cancel()
	// The time of the request is when its body has been read. The receiver may have changed while the body arrived.
	in.body, in.now = body, h.Clock.Now()
	if latest, _ := h.Table.Find(in.path); a == nil && latest != e {
		e = latest
		_, a = admit(ctx, e, in)
	}
	if a != nil {
		pretend(in)
	} else {
		a = h.handle(ctx, e, in)
	}
	if a.code == http.StatusNotFound && !certain {
		a.code = http.StatusServiceUnavailable // as for an unknown path
	}
	return a
}

// admit checks the headers of a request. proven is true if the headers verify the sender. refused is the response if they rule out a
// verified sender, nil if the body may still verify the sender.
func admit(ctx context.Context, e *entry, in *incoming) (proven bool, refused *response) {
	if e == nil {
		return false, &response{code: http.StatusNotFound}
	}
	in.tokens, in.signingTokens = e.credentials.Tokens, e.credentials.SigningTokens
	proof, ok := e.verifier.(headerVerifier)
	if !ok {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	proven, err := proof.prove(ctx, in)
	if err != nil {
		return false, unverified(e, err)
	}
	return proven, nil
}

// handle responds to a request whose body has been read.
func (h *Handler) handle(ctx context.Context, e *entry, in *incoming) *response {
	hook, err := e.verifier.verify(ctx, in)
	if err != nil {
		return unverified(e, err)
	}
	hook.event, hook.reason = cut(hook.event), cut(hook.reason)
	a := h.take(ctx, e, in, hook)
	a.from = e.key
	a.details = append([]any{"type", e.spec.Type, "event", hook.event}, a.details...)
	return a
}

// pretend takes as long as verifying an invalid signature, so that the response time does not reveal whether a path exists.
func pretend(in *incoming) {
	_, _ = genericHMAC{}.verify(context.Background(), in) // without a token, no signature is valid
}

// unverified returns the response for an error of a verifier.
func unverified(e *entry, err error) *response {
	switch {
	case errors.Is(err, errUnverified):
		return &response{code: http.StatusNotFound, err: err, details: []any{"receiver", e.key.String()}}
	case errors.Is(err, errMalformed):
		return &response{code: http.StatusBadRequest, text: err.Error(), err: err, from: e.key}
	}
	a := busy()
	a.err, a.from = err, e.key
	return a
}

// take decides on the action of a verified webhook, and requests it.
func (h *Handler) take(ctx context.Context, e *entry, in *incoming, hook *webhook) *response {
	asked, refused := h.decide(ctx, e, in, hook)
	gates := e.gatesFor(hook)
	switch {
	case refused != nil:
		return refused
	case asked.action == v1alpha1.RequestOpen && hook.pathOnly:
		return &response{code: http.StatusForbidden, text: msgPathOnlyOpens}
	case asked.action == "" || len(gates) == 0:
		return &response{code: http.StatusOK, text: msgNothingRequested}
	}
	return h.put(ctx, e, in, hook, asked, gates)
}

// decide returns the action and the targets of a verified webhook, or a response if the receiver refuses the webhook.
func (h *Handler) decide(ctx context.Context, e *entry, in *incoming, hook *webhook) (asked gateRequest, refused *response) {
	switch {
	case e.spec.Suspend:
		return asked, &response{code: http.StatusServiceUnavailable, text: msgSuspended}
	case e.broken != nil:
		return asked, &response{code: http.StatusServiceUnavailable, text: msgNotReady, err: e.broken}
	case !e.limiter.AllowN(in.now, 1):
		return asked, &response{code: http.StatusTooManyRequests, text: fmt.Sprintf(msgRateLimited, requestsPerSecond)}
	case !e.takes(hook.event):
		return asked, &response{code: http.StatusBadRequest, text: fmt.Sprintf(msgEventNotListed, hook.event)}
	}
	asked, err := e.decide(ctx, in.header, hook)
	if err != nil {
		return asked, &response{code: http.StatusInternalServerError, text: err.Error(), err: err}
	}
	return asked, nil
}

// put makes a request on Gates on behalf of a receiver.
func (h *Handler) put(ctx context.Context, e *entry, in *incoming, hook *webhook, a gateRequest, gates []types.NamespacedName) *response {
	if refused := h.recheckToken(ctx, e, in); refused != nil {
		return refused
	}
	a.by, a.reason, a.window = e.by(), hook.reason, e.spec.Window
	if hook.delivery != "" {
		a.delivery = deliveryID(e.key.String(), hook.delivery)
	}
	if hook.repeats != "" {
		a.repeats = deliveryID(e.key.String(), hook.repeats)
	}
	return h.request(ctx, gates, a, in)
}

// recheckToken reads the Secret again. It returns an error response if the token was removed from the Secret, or the Secret cannot be
// read.
func (h *Handler) recheckToken(ctx context.Context, e *entry, in *incoming) *response {
	now, err := retried(ctx, func() (endpoint.Credentials, error) { return h.Table.credentials(ctx, e) })
	switch {
	case errors.As(err, new(*Refused)):
		return &response{code: http.StatusNotFound, err: err}
	case err != nil:
		return &response{code: http.StatusServiceUnavailable, text: msgTryAgain, err: err}
	case now.Equal(e.credentials):
		return nil
	}
	fresh := *in
	fresh.tokens, fresh.signingTokens = now.Tokens, now.SigningTokens
	if _, err := e.verifier.verify(ctx, &fresh); err != nil || !equalToAny(in.path, pathsOf(e.key, now.PathTokens())) {
		return &response{code: http.StatusNotFound, err: errUnverified}
	}
	return nil
}

// request makes the request on all Gates. If it fails for some of them, the sender must try again. Gates that have already recorded the
// webhook are then skipped. A request that needs approval is accepted, and the response reports that it waits for approval.
func (h *Handler) request(ctx context.Context, gates []types.NamespacedName, a gateRequest, in *incoming) *response {
	var errs []error
	replayed, taken := 0, fmt.Sprintf(msgRequested, a.action)
	for _, key := range gates {
		lacks, err := h.Gates.request(ctx, key, a, in.now)
		if errors.Is(err, errReplayed) {
			replayed++
			continue
		}
		if lacks > 0 {
			taken += fmt.Sprintf(msgGateRequest, key, ledger.ApprovalMessage(key.Namespace, key.Name, lacks))
		}
		errs = append(errs, err)
	}
	result := &response{details: []any{"action", a.action, "gates", gates, "reason", a.reason}}
	switch err := errors.Join(errs...); {
	case replayed == len(gates):
		result.code, result.text, result.err = http.StatusConflict, errReplayed.Error(), errReplayed
	case err == nil:
		result.code, result.text = http.StatusOK, taken
	case errors.Is(err, errTooMany):
		result.code, result.text, result.err = http.StatusTooManyRequests, errTooMany.Error(), err
	case errors.Is(err, ledger.ErrTooManyLimited):
		result.code, result.text, result.err = http.StatusTooManyRequests, ledger.ErrTooManyLimited.Error(), err
	case errors.Is(err, errUnreadable):
		result.code, result.text, result.err = http.StatusInternalServerError, errorTexts(errs, errUnreadable), err
	case errors.Is(err, errUnavailable):
		result.code, result.text, result.err = http.StatusServiceUnavailable, msgSomeFailedRetry, err
	case errors.Is(err, ledger.ErrClosedByPeople):
		result.code, result.text, result.err = http.StatusForbidden, errorTexts(errs, ledger.ErrClosedByPeople), err
	case errors.Is(err, errNoGate):
		result.code, result.text, result.err = http.StatusInternalServerError, errorTexts(errs, errNoGate), err
	default:
		result.code, result.text, result.err = http.StatusInternalServerError, msgSomeFailed, err
	}
	return result
}

// errorTexts returns the texts of the errors that wrap kind, one per line. Other errors are only logged, because they may quote the API
// server.
func errorTexts(errs []error, kind error) string {
	var words []string
	for _, err := range errs {
		if errors.Is(err, kind) {
			words = append(words, err.Error())
		}
	}
	return strings.Join(words, "\n")
}

// busy returns the response that makes the sender try again. It does not depend on whether the path exists.
func busy() *response { return &response{code: http.StatusServiceUnavailable} }

// log logs the result of a webhook.
func (h *Handler) log(r *http.Request, a *response) {
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
		log.Info("Webhook accepted", "result", a.text)
	}
}

func (h *Handler) write(w http.ResponseWriter, a *response) {
	text := a.text
	if text != "" {
		text += "\n"
	}
	respond(w, a.code, text)
}

// respond writes a response.
func respond(w http.ResponseWriter, code int, text string) { endpoint.Respond(w, code, text) }
