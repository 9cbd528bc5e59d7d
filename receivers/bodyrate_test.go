package receivers

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// patient is a rate without effective limits.
var patient = bodyRate{interval: time.Hour, bytes: 1, whole: time.Hour}

// head returns the start of a request with a body of length bytes.
func head(path string, length int, headers ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n", path, length, strings.Join(append(headers, ""), "\r\n"))
}

func TestStalledBodyIsDisconnectedEarly(t *testing.T) {
	table, path := oneReceiver(t)
	short := bodyRate{interval: 100 * time.Millisecond, bytes: 1000, whole: time.Hour}
	for name, tc := range map[string]struct{ text, want string }{
		"a body":                         {head("/hook/x", 1000) + "{", "HTTP/1.1 408"},
		"a body on a path that there is": {head(path, 1000) + "{", "HTTP/1.1 408"},
		"a large body":                   {head("/hook/x", maxBodyBytes) + strings.Repeat(" ", 2*smallBodyBytes), "HTTP/1.1 408"},
		"a large body on such a path":    {head(path, maxBodyBytes) + strings.Repeat(" ", 2*smallBodyBytes), "HTTP/1.1 408"},
		"chunks":                         {"POST /hook/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", "HTTP/1.1 408"},
		"nothing":                        {head(path, 1), "HTTP/1.1 408"},
		"the body of a GET":              {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 405"},
		"a body that is encoded":         {head(path, 9, "Content-Encoding: gzip"), "HTTP/1.1 415"},
	} {
		t.Run(name, func(t *testing.T) {
			dial, handler := serve(t, table, short)
			answer, err := io.ReadAll(dial(tc.text))
			if err != nil || !strings.HasPrefix(string(answer), tc.want) {
				t.Errorf("got %q, %v", answer, err)
			}
			if all, kept := handler.large.all(); all+kept > 0 {
				t.Errorf("there is less room for large bodies: by %d, %d of them kept", all, kept)
			}
		})
	}
}

// trickle sends one byte every millisecond until the connection is closed.
func trickle(conn io.Writer) {
	for {
		if _, err := conn.Write([]byte(" ")); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTricklingBodyIsDisconnected(t *testing.T) {
	table, path := oneReceiver(t)
	for name, p := range map[string]bodyRate{
		"too slow":         {interval: 100 * time.Millisecond, bytes: smallBodyBytes, whole: time.Hour},
		"fast, and no end": {interval: time.Hour, bytes: 1, whole: 300 * time.Millisecond},
	} {
		for _, path := range []string{path, "/hook/x"} {
			t.Run(name, func(t *testing.T) {
				dial, handler := serve(t, table, p)
				conn := dial(head(path, maxBodyBytes) + strings.Repeat(" ", smallBodyBytes))
				go trickle(conn)
				if got := code(t, conn); got != http.StatusRequestTimeout {
					t.Errorf("got %d", got)
				}
				eventually(t, "the room is given back", func() bool { all, kept := handler.large.all(); return all+kept == 0 })
			})
		}
	}
}

// deadlines records the deadlines that are set on a connection.
type deadlines struct {
	http.ResponseWriter
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// piecemeal returns one piece per read.
type piecemeal struct{ pieces []int }

func (p *piecemeal) Read(_ []byte) (int, error) {
	if len(p.pieces) == 0 {
		return 0, io.EOF
	}
	n := p.pieces[0]
	p.pieces = p.pieces[1:]
	return n, nil
}

func TestProgressExtendsReadDeadlineUpToLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		pieces []int
		whole  time.Duration
		want   int
	}{
		"nothing":                {nil, time.Hour, 2},
		"less than is progress":  {[]int{1, 1, 97}, time.Hour, 2},
		"progress":               {[]int{100}, time.Hour, 3},
		"three times":            {[]int{99, 1, 250, 50, 50}, time.Hour, 5},
		"progress until the end": {[]int{100, 100, 100, 100}, time.Minute, 6},
	} {
		w := &deadlines{ResponseWriter: httptest.NewRecorder()}
		p := bodyRate{interval: 2 * time.Minute, bytes: 100, whole: tc.whole}
		began := time.Now()
		p.keep(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			buffer := make([]byte, 1000)
			for err := error(nil); err == nil; _, err = r.Body.Read(buffer) {
			}
			// From here on, net/http waits for the next request.
			if _, err := r.Body.Read(buffer); !errors.Is(err, io.EOF) {
				t.Errorf("%s: behind the end: %v", name, err)
			}
		})).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", &piecemeal{tc.pieces}))
		if len(w.set) != tc.want {
			t.Errorf("%s: %d deadlines, want %d", name, len(w.set), tc.want)
		}
		for _, at := range w.set {
			if in := at.Sub(began); in < min(p.interval, p.whole) || at.After(time.Now().Add(min(p.interval, p.whole))) {
				t.Errorf("%s: a deadline in %s", name, in)
			}
		}
	}
}

// A sender of a complete request may wait for the response.
func TestResponseMayTakeLongerThanBody(t *testing.T) {
	p := bodyRate{interval: 50 * time.Millisecond, bytes: 1, whole: time.Hour}
	for name, text := range map[string]string{
		"a body":  head("/", 2) + "{}",
		"chunks":  "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"no body": head("/", 0),
		"a GET":   "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadAll(io.MultiReader(r.Body, r.Body)); err != nil {
					t.Error(err)
				}
				select {
				case <-r.Context().Done():
					t.Errorf("the request is over: %v", r.Context().Err())
				case <-time.After(4 * p.interval):
				}
				w.WriteHeader(http.StatusOK)
			})
			table, _ := newTable(nil)
			dial, _ := serve(t, table, p, func(s *http.Server) { s.Handler = p.keep(handler) })
			if got := code(t, dial(text)); got != http.StatusOK {
				t.Errorf("got %d", got)
			}
		})
	}
}

func TestUnreadableBodyGetsSpecificStatusCode(t *testing.T) {
	for want, err := range map[int]error{
		http.StatusRequestEntityTooLarge: fmt.Errorf("read: %w", &http.MaxBytesError{Limit: 1}),
		http.StatusRequestTimeout:        fmt.Errorf("read: %w", os.ErrDeadlineExceeded),
		http.StatusBadRequest:            io.ErrUnexpectedEOF,
	} {
		if got := unreadable(err).code; got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}
