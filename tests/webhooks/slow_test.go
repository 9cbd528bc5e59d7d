package webhooks

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// largest is the maximum length of a body. stalled is the length of a partial body that exceeds the limit for small bodies.
const (
	largest = 3 << 20
	stalled = 64<<10 + 1
)

// stall sends the headers of a request and a part of its body, and then nothing.
func (w *world) stall(path string, body int, headers ...string) net.Conn {
	w.Helper()
	conn, err := new(net.Dialer).DialContext(w.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
	w.Must(err)
	w.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n", path, largest)
	for i := 0; i+1 < len(headers); i += 2 {
		head += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	_, err = io.WriteString(conn, head+"\r\n"+strings.Repeat(" ", body))
	w.Must(err)
	return conn
}

func TestStalledUnverifiedRequestsBlockNoLargeWebhook(t *testing.T) {
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("ci", v1alpha1.GenericHMACReceiver)
	body := `{"reason":"a large one"}` + strings.Repeat(" ", 1<<20)
	signature := sign(body)
	for i := range 50 {
		w.stall("/hook/"+strings.Repeat("0", i), stalled)
		if got := w.post(path, body, "X-Signature", signature); got.code != http.StatusOK {
			t.Fatalf("behind %d strangers: %+v", i+1, got)
		}
	}
	if _, _, reason := w.request("production", v1alpha1.RequestOpen); reason != "a large one" {
		t.Errorf("requested because %q", reason)
	}
}

// A client must not learn from a stall whether a path exists.
func TestStalledRequestsAreDisconnectedEquallyOnAllPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[string][]string{}
	try := func(name, path string, headers ...string) {
		for _, body := range []int{0, 1, stalled} {
			conn := w.stall(path, body, headers...)
			began := time.Now()
			group.Go(func() {
				response, err := io.ReadAll(conn)
				// The server permits 30 seconds for a whole body.
				if took := time.Since(began); err != nil || took > 25*time.Second {
					t.Errorf("%s with %d bytes: after %s: %v", name, body, took, err)
				}
				before, date, _ := strings.Cut(string(response), "Date: ")
				_, after, _ := strings.Cut(date, "\r\n")
				mu.Lock()
				defer mu.Unlock()
				seen[before+after] = append(seen[before+after], name)
			})
		}
	}
	for kind, attempt := range types {
		try(kind, w.receiver(kind, kind), attempt.headers...)
		try("no "+kind, "/hook/"+kind, attempt.headers...)
	}
	try("generic", w.receiver("generic", v1alpha1.GenericReceiver))
	group.Wait()
	if len(seen) != 1 {
		t.Errorf("the responses differ: %v", seen)
	}
	for response := range seen {
		if !strings.HasPrefix(response, "HTTP/1.1 408 ") || !strings.Contains(response, "Connection: close\r\n") {
			t.Errorf("got %q", response)
		}
	}
	w.expectNoRequest()
}

func TestTricklingRequestReleasesItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cluster.Client)
	w.ClosedGate("production")
	path := w.receiver("ci", v1alpha1.GenericHMACReceiver)
	conn := w.stall(path, stalled)
	began := time.Now()
	go func() {
		for {
			if _, err := conn.Write([]byte(" ")); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	response := make([]byte, len("HTTP/1.1 408 "))
	if _, err := io.ReadFull(conn, response); err != nil || string(response) != "HTTP/1.1 408 " || time.Since(began) > 25*time.Second {
		t.Errorf("got %q after %s: %v", response, time.Since(began), err)
	}
	w.expectNoRequest()
}
