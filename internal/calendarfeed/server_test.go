package calendarfeed

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// listening serves a calendar with a changed server. dial returns a connection on which a text has been sent.
func listening(t *testing.T, change func(*http.Server)) (dial func(text string) net.Conn, path string) {
	t.Helper()
	r, path := production(t)
	server := newServer(r.Handler)
	change(server)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }() // until the server is closed
	t.Cleanup(func() { _ = server.Close() })
	return func(text string) net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		_, _ = io.WriteString(conn, text) // the server may close the connection before it has read all of it
		return conn
	}, path
}

// first returns the first line of a response.
func first(t *testing.T, conn net.Conn) string {
	t.Helper()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func TestServerHasAllTimeouts(t *testing.T) {
	s := newServer(nil)
	if s.ReadHeaderTimeout != headerTimeout || s.ReadTimeout != headerTimeout || s.WriteTimeout != writeTimeout || s.IdleTimeout != idleTimeout || s.MaxHeaderBytes != maxHeaderBytes {
		t.Errorf("got %+v", s)
	}
	if writeTimeout <= responseTimeout || shutdownTimeout <= responseTimeout || readTimeout >= responseTimeout {
		t.Error("an answer may be cut off")
	}
}

func TestSlowRequestsAreDisconnected(t *testing.T) {
	dial, path := listening(t, func(*http.Server) {})
	for name, tc := range map[string]struct{ request, want string }{
		"one that is good":            {"GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK"},
		"one with a body":             {"GET " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 OK"},
		"one of HTTP 1.0":             {"GET " + path + " HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK"},
		"one through a proxy":         {"GET http://other.example.com" + path + " HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK"},
		"headers without end":         {"GET " + path + " HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large"},
		"many headers":                {"GET " + path + " HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: a\r\n", 8<<10) + "\r\n", "HTTP/1.1 431 Request Header Fields Too Large"},
		"two hosts":                   {"GET " + path + " HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"a path that climbs":          {"GET /calendar/../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 Not Found"},
		"an escaped path that climbs": {"GET /calendar/%2e%2e%2fmetrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 Not Found"},
		"a method in a header":        {"POST " + path + " HTTP/1.1\r\nHost: a\r\nX-HTTP-Method-Override: GET\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"},
		"many ranges":                 {"GET " + path + " HTTP/1.1\r\nHost: a\r\nRange: bytes=" + strings.Repeat("0-,", 1000) + "0-\r\n\r\n", "HTTP/1.1 200 OK"},
	} {
		if got := first(t, dial(tc.request)); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestSlowClientIsDisconnected(t *testing.T) {
	dial, path := listening(t, func(s *http.Server) { s.ReadHeaderTimeout, s.ReadTimeout = 100*time.Millisecond, 100*time.Millisecond })
	for name, text := range map[string]string{"with headers": "GET " + path + " HTTP/1.1\r\nHost: a\r\nX-A", "with anything": ""} {
		if answer, err := io.ReadAll(dial(text)); err != nil || strings.Contains(string(answer), "VCALENDAR") {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
	}
}

func TestServerAndWatchesEndWithProcess(t *testing.T) {
	r, _ := serving(t, nil, gateOf("shop", withHolidays))
	r.watches.set("apps/days", 1, holidays)
	r.get(r.load("production"))
	server := NewServer("127.0.0.1:0", r.Handler, r.objects)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- server.Start(ctx) }()
	for deadline := time.Now().Add(10 * time.Second); server.Listens(nil) != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not listen")
		}
	}
	cancel()
	if err := <-stopped; err != nil || r.watches.open != 0 {
		t.Errorf("%v, %d watches are open", err, r.watches.open)
	}
}
