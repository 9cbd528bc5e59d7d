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
func acceptable(w http.ResponseWriter, r *http.Request, maxBytes int64) *answer {
	if r.ContentLength < 0 {
		// Besides its chunks it may have had a length that a proxy in front of us used.
		// Then the next data on the connection could be from anybody.
		w.Header().Set("Connection", "close")
	}
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return &answer{code: http.StatusMethodNotAllowed}
	case !slices.Contains([]string{"", "identity"}, strings.ToLower(r.Header.Get("Content-Encoding"))):
		return &answer{code: http.StatusUnsupportedMediaType}
	case r.ContentLength > maxBytes:
		return &answer{code: http.StatusRequestEntityTooLarge}
	}
	return nil
}

// read returns the body of a request, and a function that gives its memory back. The body
// of a stranger is not kept, but read and answered as if it were: the result is as many
// zeros.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, of share, stranger bool) (body []byte, release func(), refused *answer) {
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
func unreadable(err error) *answer {
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return &answer{code: http.StatusRequestEntityTooLarge}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &answer{code: http.StatusRequestTimeout}
	}
	return &answer{code: http.StatusBadRequest}
}

// share is who a large body counts for: a sender that is known by its headers, or anybody
// who has a path.
type share [sha256.Size]byte

func shareOf(name string) share { return sha256.Sum256([]byte(name)) }

// room is for the large bodies that are being read.
type room struct {
	mu sync.Mutex
	// taken is how many are kept in memory.
	taken int
	// of counts all of them, including those of strangers.
	of map[share]int
}

// take returns a function that gives the room for a body back, nil if there is no room. A
// body that is not kept takes no room, but gets it on the same conditions, so that the
// answers do not tell who is a stranger. All bodies of a share count, so filling the room
// with one path does not show that the path exists.
func (r *room) take(of share, kept bool) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken >= maxLarge || r.of[of] >= maxLargeOfOne {
		return nil
	}
	r.add(of, kept, 1)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.add(of, kept, -1)
	}
}

func (r *room) add(of share, kept bool, n int) {
	if kept {
		r.taken += n
	}
	if r.of[of] += n; r.of[of] == 0 {
		delete(r.of, of)
	}
}
