package harness

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"
)

// EventSink accepts events as notification-controller does, for --events-addr.
type EventSink struct {
	*httptest.Server

	mu     sync.Mutex
	events []eventv1.Event
	faults []string
	refuse map[string]int
}

// StartEventSink starts a sink on loopback. Close stops it.
func StartEventSink() *EventSink {
	s := &EventSink{refuse: map[string]int{}}
	s.Server = httptest.NewServer(s)
	return s
}

// ServeHTTP implements http.Handler.
func (s *EventSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	event := eventv1.Event{}
	if err == nil {
		err = decoder.Decode(&event)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.faults = append(s.faults, err.Error()+": "+string(body))
	case event.Action == "":
		s.faults = append(s.faults, "no action: "+string(body))
	case r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json":
		s.faults = append(s.faults, r.Method+" "+r.Header.Get("Content-Type"))
	}
	s.events = append(s.events, event)
	if s.refuse[event.Reason] > 0 {
		s.refuse[event.Reason]--
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// Refuse makes the sink respond with 500 to the next event with a reason.
func (s *EventSink) Refuse(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse[reason]++
}

// Take returns all bodies that were posted since the last call, including refused ones and those that are not events.
func (s *EventSink) Take() (events []eventv1.Event, faults []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, faults = s.events, s.faults
	s.events, s.faults = nil, nil
	return events, faults
}

// EventKey returns the key by which notification-controller deduplicates events for five minutes. Its source is
// fluxcd/notification-controller: cleanupMetadata in internal/server/event_server.go drops metadata without the prefix of the object's API
// group, and eventKeyFunc there (EventKey in later versions of internal/notifier) uses name, namespace, kind, message, and from the
// metadata the revision and the token.
func EventKey(event eventv1.Event) string {
	object := event.InvolvedObject
	group := object.GroupVersionKind().Group
	parts := []string{object.Name, object.Namespace, object.Kind, event.Message}
	for _, key := range []string{eventv1.MetaOriginRevisionKey, eventv1.MetaRevisionKey, eventv1.MetaTokenKey} {
		parts = append(parts, key+"="+event.Metadata[group+"/"+key])
	}
	return strings.Join(parts, "\n")
}
