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

// zeros is returned instead of a discarded body. All requests share it, because it is only read.
var zeros [maxBodyBytes]byte

// acceptable checks the headers of a request. It returns nil if they are acceptable, otherwise the response to the request.
func acceptable(w http.ResponseWriter, r *http.Request, maxBytes int64) *response {
	if r.ContentLength < 0 {
		// A chunked request may also have had a Content-Length, which a proxy in front of this server may have used. The next data on the
		// connection could then be from any sender.
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

// read returns the body of a request, and a function that releases its memory. If keep is false, it discards the body and returns the
// same number of zeros, so that an unverified sender gets the same response.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, of quotaKey, keep bool) (body []byte, release func(), refused *response) {
	kept := &bytes.Buffer{}
	into := io.Writer(kept)
	if !keep {
		into = io.Discard
	}
	limited := http.MaxBytesReader(w, r.Body, maxBodyBytes)
	release = func() {}
	n, err := io.Copy(into, io.LimitReader(limited, smallBodyBytes))
	if err == nil && n == smallBodyBytes {
		taken := h.large.take(of, keep)
		if taken == nil {
			return nil, release, busy()
		}
		release = taken
		if keep && r.ContentLength > 0 {
			kept.Grow(int(r.ContentLength-n) + bytes.MinRead)
		}
		var more int64
		more, err = io.Copy(into, limited)
		n += more
	}
	if err != nil {
		return nil, release, unreadable(err)
	}
	if !keep {
		return zeros[:n], release, nil
	}
	return kept.Bytes(), release, nil
}

// unreadable returns the response to a request whose body cannot be read.
func unreadable(err error) *response {
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return &response{code: http.StatusRequestEntityTooLarge}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &response{code: http.StatusRequestTimeout}
	}
	return &response{code: http.StatusBadRequest}
}

// quotaKey identifies the quota for a large body. The quota belongs to the sender if the headers verify the sender, otherwise to the
// path.
type quotaKey [sha256.Size]byte

func newQuotaKey(name string) quotaKey { return sha256.Sum256([]byte(name)) }

// largeBodies limits the large bodies that are being read.
type largeBodies struct {
	mu sync.Mutex
	// taken is the number of bodies in memory.
	taken int
	// byQuota counts all large bodies by quota, including bodies of unverified senders.
	byQuota map[quotaKey]int
}

// take reserves memory for a body. It returns a function that releases the memory, or nil if a limit is reached. For a body that is not
// kept, it reserves no memory, but the same limits apply, so that responses do not reveal whether a sender is verified. All bodies of a
// quota count, so that a client cannot find out whether a path exists by filling the quota with requests to it.
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
