package receivers

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newHandler returns a handler for the receivers in a Table and the Gates of a client, at testNow.
func newHandler(table *Table, c client.Client) *Handler {
	return NewHandler(table, NewGates(c), clocktesting.NewFakePassiveClock(testNow), logr.Discard(), MustMakeMetrics(prometheus.NewRegistry()))
}

// slow serves an empty Table with a changed server. It returns a function that opens a connection.
func slow(t *testing.T, change func(*http.Server)) func(text string) net.Conn {
	t.Helper()
	table, _ := newTable(nil)
	dial, _ := serve(t, table, defaultBodyRate, change)
	return dial
}

// serve serves a Table with a minimum rate of bodies. It returns a function that opens a connection, and the handler.
func serve(t *testing.T, table *Table, p bodyRate, changes ...func(*http.Server)) (func(text string) net.Conn, *Handler) {
	t.Helper()
	handler := newHandler(table, nil)
	server := newServer(handler, p)
	for _, change := range changes {
		change(server)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }() // ends when the server is closed
	t.Cleanup(func() { _ = server.Close() })
	return func(text string) net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		return conn
	}, handler
}

func code(t *testing.T, conn net.Conn) int {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestServerHasAllTimeouts(t *testing.T) {
	s := newServer(nil, defaultBodyRate)
	if s.ReadHeaderTimeout != readHeaderTimeout || s.ReadTimeout != readTimeout || s.WriteTimeout != writeTimeout || s.IdleTimeout != idleTimeout || s.MaxHeaderBytes != maxHeaderBytes {
		t.Errorf("got %+v", s)
	}
	if writeTimeout <= readTimeout+responseTimeout || shutdownTimeout <= responseTimeout {
		t.Error("an answer may be cut off")
	}
}

func TestSlowHeadersAreDisconnected(t *testing.T) {
	short := 100 * time.Millisecond
	for name, tc := range map[string]struct {
		text   string
		change func(*http.Server)
		want   string
	}{
		"with headers":             {"POST /hook/x HTTP/1.1\r\nHost: a\r\nX-A", func(s *http.Server) { s.ReadHeaderTimeout = short }, "HTTP/1.1 400"},
		"with the next request":    {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(s *http.Server) { s.IdleTimeout = short }, "HTTP/1.1 405"},
		"with anything whatsoever": {"", func(s *http.Server) { s.ReadHeaderTimeout = short }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := io.ReadAll(slow(t, tc.change)(tc.text))
			if err != nil || !strings.HasPrefix(string(answer), tc.want) || tc.want == "" && len(answer) > 0 {
				t.Errorf("got %q, %v", answer, err)
			}
		})
	}
}
