package ui

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// gateState is the state of a Gate in JSON, for pipelines.
type gateState struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// At is the instant in the request, nil for now.
	At *time.Time `json:"at,omitempty"`
	// State is opened or closed, or unknown if neither is certain.
	State string `json:"state"`
	// Reason is the reason of the condition Opened at the instant. Message is its current message.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Mode is spec.mode, if it is not Enforce.
	Mode v1alpha1.Mode `json:"mode,omitempty"`
	// Until is the known end of the state. Next is the state after it.
	Until *time.Time `json:"until,omitempty"`
	Next  string     `json:"next,omitempty"`
	// Warnings are the warnings about a planned state, such as exceptions that the viewer may not list.
	Warnings []string `json:"warnings,omitempty"`
}

// state serves the state of a Gate as JSON. The parameter at is a time from now on, at most 366 days ahead.
func (h *handler) state(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), making)
	defer cancel()
	var body any
	state, err := h.readState(&request{Request: r.WithContext(ctx)})
	code, header := codeOf(err), w.Header()
	if body = state; err != nil {
		body = map[string]any{"error": err.Error()}
	}
	if code == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", "Bearer")
	}
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		panic(err) // texts and times can always be encoded
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "private, no-cache") // a stored response could be opened after the Gate has closed
	header.Set("Vary", "Authorization")
	if err == nil {
		tag := fmt.Sprintf(`"%x"`, sha256.Sum256(raw.Bytes()))
		header.Set("ETag", tag)
		if strings.Contains(r.Header.Get("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sending)) //nolint:forbidigo // a network deadline
	w.WriteHeader(code)
	_, _ = w.Write(raw.Bytes()) // the client may have disconnected
}

func (h *handler) readState(asks *request) (*gateState, error) {
	var err error
	if asks.view, err = h.view(asks, nil); err != nil {
		return nil, err
	}
	if asks.viewer, err = h.Viewers.Of(asks.Request); err != nil {
		return nil, err
	}
	if asks.viewer.Bare {
		return nil, ErrBare
	}
	now := h.Clock.Now()
	at, err := instant(asks.URL.Query().Get("at"), now)
	if err != nil {
		return nil, err
	}
	end, err := h.limitsOf(asks).begin(asks.Context(), asks.viewer.Person)
	if err != nil {
		return nil, err
	}
	took := time.Duration(0)
	defer func() { end(took) }()
	g, err := h.one(asks)
	if err != nil {
		return nil, err
	}
	if at == nil {
		return stateNow(g.Gate, now), nil
	}
	rendered, err := h.rendering.Begin(asks.Context(), "")
	if err != nil {
		return nil, err
	}
	defer rendered(0)
	begin := h.Clock.Now()
	defer func() { took = h.Clock.Since(begin) }()
	t, warnings, err := g.timeline(asks.Context(), preview.Range{From: now, Until: now.Add(ahead)})
	s := stateAt(g.Gate, t, *at)
	if s.Warnings = slices.Concat(g.known.Notes, warnings); len(g.known.Notes) > 0 && s.State == string(v1alpha1.StateOpened) {
		s.State = unknown // an exception that the viewer may not see can close the Gate
	}
	return s, err
}

// instant parses the parameter at. It returns nil without the parameter.
func instant(value string, now time.Time) (*time.Time, error) {
	if value == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil || at.Before(now.Truncate(time.Second)) || !at.Before(now.Add(ahead)) {
		return nil, badf("at=%s: must be a time such as %s, from now on, at most 366 days ahead", value, now.UTC().Format(time.RFC3339))
	}
	return &at, nil
}

// stateNow returns the state according to the status of a Gate, unknown if it is not certain.
func stateNow(g *v1alpha1.Gate, now time.Time) *gateState {
	s := newState(g, unknown)
	c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	switch {
	case c == nil || g.Status.ObservedGeneration != g.Generation:
		return s
	case gate.ReportedOpen(g, now):
		s.State = string(v1alpha1.StateOpened)
	case !gate.IsOpen(g, now):
		s.State = string(v1alpha1.StateClosed)
	}
	s.Reason, s.Message = c.Reason, c.Message
	if next := g.Status.NextTransition; next != nil && next.At.After(now) {
		s.Until, s.Next = &next.At.Time, string(next.State)
	}
	return s
}

// stateAt returns the state at an instant according to a timeline.
func stateAt(g *v1alpha1.Gate, t preview.Timeline, at time.Time) *gateState {
	s := newState(g, unknown)
	s.At = &at
	for n, i := range t.Intervals {
		if at.Before(i.From.Time) || !at.Before(i.Until.Time) {
			continue
		}
		s.State, s.Reason = i.State, i.Reason
		if n+1 < len(t.Intervals) {
			s.Until, s.Next = &i.Until.Time, t.Intervals[n+1].State
		}
	}
	return s
}

func newState(g *v1alpha1.Gate, state string) *gateState {
	s := &gateState{Namespace: g.Namespace, Name: g.Name, State: state}
	if g.Spec.Mode != v1alpha1.ModeEnforce {
		s.Mode = g.Spec.Mode
	}
	return s
}
