package ui

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/gating-controller/internal/limit"
)

// packed is a rendered and compressed page, so that a slow reader takes up little memory. A page that fails to render is not sent.
type packed struct{ body []byte }

const (
	// small is the size in bytes up to which the number of concurrently sent pages is not limited.
	small = 32 << 10
	// unpacking is the time it takes to decompress a byte.
	unpacking = 10 * time.Nanosecond
)

// packers are pooled, because each one takes a megabyte, far more than most pages.
var packers = sync.Pool{New: func() any {
	packs, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return packs
}}

func pack(write func(io.Writer) error) (*packed, error) {
	var body bytes.Buffer
	packs, _ := packers.Get().(*gzip.Writer)
	defer packers.Put(packs)
	packs.Reset(&body)
	if err := write(packs); err != nil {
		return nil, err
	}
	if err := packs.Close(); err != nil {
		return nil, err
	}
	return &packed{body: bytes.Clone(body.Bytes())}, nil
}

// size returns the size of the uncompressed page in bytes. gzip stores it in the last four bytes.
func (p *packed) size() int { return int(binary.LittleEndian.Uint32(p.body[len(p.body)-4:])) }

// send responds with the page. If the client does not accept gzip, the time it takes to decompress a large page is charged to the viewer.
func (p *packed) send(w http.ResponseWriter, r *http.Request, code int, work *limit.Limiter, viewer string) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		w.WriteHeader(code)
		_, _ = w.Write(p.body)
		return
	}
	header.Set("Content-Length", strconv.Itoa(p.size())) // lets a reader detect a truncated page
	if r.Method == http.MethodHead {
		w.WriteHeader(code)
		return
	}
	if p.size() > small {
		if err := work.Spend(r.Context(), viewer, time.Duration(p.size())*unpacking); err != nil {
			header.Del("Content-Length")
			http.Error(w, errBusy.Error()+": try again in a moment, or accept the page compressed", http.StatusServiceUnavailable)
			return
		}
	}
	unpacks, err := gzip.NewReader(bytes.NewReader(p.body))
	if err != nil {
		panic(err) // the body was compressed by pack
	}
	w.WriteHeader(code)
	_, _ = io.Copy(w, unpacks) //nolint:gosec // packed above
}
