package receivers

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
)

// zeros stand in for bodies that were not kept. They are only read, so there is no memory
// behind them.
var zeros [maxBodyBytes]byte

// acceptable returns how to refuse a request whose headers rule it out, nil if they do
// not.
func acceptable(w http.ResponseWriter, r *http.Request, maxBytes int64) *response {
	if r.ContentLength < 0 {
		// Besides its chunks it may have had a length that a proxy in front of us used.
		// Then the next data on the connection could be from anybody.
		w.Header().Set("Connection", "close")
	}
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return &response{code: http.StatusMethodNotAllowed}
	case !slices.Contains([]string{"", "identity"}, strings.ToLower(r.Header.Get("Content-Encoding"))):
		return &response{code: http.StatusUnsupportedMediaType}
	case r.ContentLength > maxBytes:
		return &response{code: http.StatusRequestEntityTooLarge}
	}
	return nil
}

// read returns the body of a request, and a function that gives its memory back. The body
// of a stranger is not kept, but read and answered as if it were: the result is as many
// zeros.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, of quotaKey, stranger bool) (body []byte, release func(), refused *response) {
	kept := &bytes.Buffer{}
	into := io.Writer(kept)
	if stranger {
		into = io.Discard
	}
	limited := http.MaxBytesReader(w, r.Body, maxBodyBytes)
	release = func() {}
	n, err := io.Copy(into, io.LimitReader(limited, smallBodyBytes))
	if err == nil && n == smallBodyBytes {
		taken := h.large.take(of, !stranger)
		if taken == nil {
			return nil, release, busy()
		}
		release = taken
		if !stranger && r.ContentLength > 0 {
			kept.Grow(int(r.ContentLength-n) + bytes.MinRead)
		}
		var more int64
		more, err = io.Copy(into, limited)
		n += more
	}
	if err != nil {
		return nil, release, unreadable(err)
	}
	if stranger {
		return zeros[:n], release, nil
	}
	return kept.Bytes(), release, nil
}

// unreadable returns how to answer a request whose body cannot be read.
func unreadable(err error) *response {
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return &response{code: http.StatusRequestEntityTooLarge}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &response{code: http.StatusRequestTimeout}
	}
	return &response{code: http.StatusBadRequest}
}

// quotaKey is who a large body counts for: a sender that is known by its headers, or anybody
// who has a path.
type quotaKey [sha256.Size]byte

func newQuotaKey(name string) quotaKey { return sha256.Sum256([]byte(name)) }

// largeBodies is for the large bodies that are being read.
type largeBodies struct {
	mu sync.Mutex
	// taken is how many are kept in memory.
	taken int
	// byQuota counts all of them, including those of strangers.
	byQuota map[quotaKey]int
}

// take returns a function that gives the room for a body back, nil if there is no room. A
// body that is not kept takes no room, but gets it on the same conditions, so that the
// answers do not tell who is a stranger. All bodies of a share count, so filling the room
// with one path does not show that the path exists.
func (r *largeBodies) take(of quotaKey, kept bool) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken >= maxLarge || r.byQuota[of] >= maxLargeOfOne {
		return nil
	}
	r.add(of, kept, 1)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.add(of, kept, -1)
	}
}

func (r *largeBodies) add(of quotaKey, kept bool, n int) {
	if kept {
		r.taken += n
	}
	if r.byQuota[of] += n; r.byQuota[of] == 0 {
		delete(r.byQuota, of)
	}
}
