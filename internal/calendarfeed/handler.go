package calendarfeed

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/internal/endpoint"
)

// Handler serves calendars. It never logs or returns a path or a token.
type Handler struct {
	Table   *Table
	Clock   clock.PassiveClock
	Log     logr.Logger
	Metrics *Metrics

	// computing allows only one calendar to be computed at a time, so that calendars use at most one CPU.
	computing *semaphore.Weighted
}

// NewHandler returns a Handler for the calendars in a Table.
func NewHandler(table *Table, clock clock.PassiveClock, log logr.Logger, metrics *Metrics) *Handler {
	return &Handler{Table: table, Clock: clock, Log: log, Metrics: metrics, computing: semaphore.NewWeighted(1)}
}

// statusRecorder records the status code of a response.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (a *statusRecorder) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &statusRecorder{ResponseWriter: w, code: http.StatusOK}
	e, err := h.serve(a, r)
	h.Metrics.count(e, a.code)
	log := h.Log.WithValues("code", a.code, "remote", r.RemoteAddr)
	if e != nil {
		log = log.WithValues("calendar", e.key.String())
	}
	if err != nil {
		log.Error(err, "Calendar refused")
		return
	}
	log.V(1).Info("Calendar served")
}

// serve serves a request. It returns the calendar at the path, nil if there is none, and an error if the calendar cannot be computed.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) (e *entry, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = errors.New("panic: " + string(debug.Stack()))
			w.WriteHeader(http.StatusInternalServerError)
		}
	}()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		endpoint.Respond(w, http.StatusMethodNotAllowed, "")
		return nil, nil
	}
	e, certain := h.Table.Find(r.URL.Path)
	switch {
	case e == nil && certain:
		endpoint.Respond(w, http.StatusNotFound, "")
	case e == nil:
		endpoint.Respond(w, http.StatusServiceUnavailable, "")
	case !e.limiter.AllowN(h.Clock.Now(), 1):
		endpoint.Respond(w, http.StatusTooManyRequests, "too many requests\n")
	case e.obj.Spec.Suspend:
		endpoint.Respond(w, http.StatusServiceUnavailable, "the calendar is suspended\n")
	default:
		return e, h.show(w, r, e)
	}
	return e, nil
}

// show responds with a calendar.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, e *entry) error {
	ctx, cancel := context.WithTimeout(r.Context(), responseTimeout)
	defer cancel()
	v, err := h.currentVersion(ctx, e)
	if err != nil {
		endpoint.Respond(w, http.StatusServiceUnavailable, "the calendar is not ready, try again\n")
		return err
	}
	header := w.Header()
	header.Set("Content-Type", "text/calendar; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "private, max-age="+maxAge)
	header.Set("ETag", v.etag)
	http.ServeContent(w, r, "", v.modified, bytes.NewReader(v.body))
	return nil
}
