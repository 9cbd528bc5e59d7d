package ui

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/limit"
)

func TestErrorPageTakesLittleMemory(t *testing.T) { // not parallel, because it measures the process
	h := pages(t, reader())
	const many = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range many {
		if code, page := asks(t, h, "/nothing", time.Minute); code != http.StatusNotFound || !strings.Contains(page, "there is no such page") {
			t.Fatalf("%d %s", code, mainOf(page))
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / many; each > 600<<10 {
		t.Errorf("each takes %d bytes", each)
	}
}

func TestUnpackingCountsAgainstBudget(t *testing.T) {
	t.Parallel()
	page := func(size int) *packed {
		p, err := pack(func(w io.Writer) error {
			_, err := w.Write(make([]byte, size))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const little, much = small, 16 << 20
	paid := func() *limit.Limiter { return limit.New(1, 1, 1, time.Minute) }
	for name, c := range map[string]struct {
		page           *packed
		method, accept string
		work           *limit.Limiter
		code           int
		whole          bool
	}{
		"there is time":                {page(much), http.MethodGet, "", paid(), http.StatusOK, true},
		"there was none left":          {page(much), http.MethodGet, "", spent(), http.StatusServiceUnavailable, false},
		"it is small":                  {page(little), http.MethodGet, "", spent(), http.StatusOK, true},
		"it need not be unpacked":      {page(much), http.MethodGet, "gzip", spent(), http.StatusOK, false},
		"only its head is asked for":   {page(much), http.MethodHead, "", paid(), http.StatusOK, false},
		"only the head of a small one": {page(little), http.MethodHead, "", spent(), http.StatusOK, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			request, recorder := httptest.NewRequestWithContext(ctx, c.method, "/", nil), httptest.NewRecorder()
			request.Header.Set("Accept-Encoding", c.accept)
			c.page.send(recorder, request, http.StatusOK, c.work, "")
			if whole := recorder.Body.Len() == c.page.size(); recorder.Code != c.code || whole != c.whole {
				t.Errorf("it answers %d with %d bytes of %d", recorder.Code, recorder.Body.Len(), c.page.size())
			}
			if c.method == http.MethodHead && recorder.Body.Len() > 0 {
				t.Errorf("a head has %d bytes", recorder.Body.Len())
			}
		})
	}
}

// spent returns a Limiter that has no time left for a minute.
func spent() *limit.Limiter {
	l := limit.New(1, 1, 1, time.Minute)
	if end, err := l.Begin(context.Background(), ""); err == nil {
		end(2 * time.Minute)
	}
	return l
}

// A client must not take a part of a page for the whole page.
func TestTruncatedPageIsDetected(t *testing.T) {
	t.Parallel()
	p, err := pack(func(w io.Writer) error {
		_, err := w.Write(make([]byte, 16<<20))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		p.send(w, r, http.StatusOK, limit.New(1, 1, 0, 0), "")
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "identity")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it is only read
	time.Sleep(time.Second)     // longer than the timeout for sending
	if n, err := io.Copy(io.Discard, response.Body); err == nil {
		t.Errorf("%d bytes seem to be all", n)
	}
}
