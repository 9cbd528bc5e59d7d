package ui

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/fluxcd/gating-controller/internal/budget"
)

// packed is a page that waits to be sent, compressed: who reads slowly takes little memory. A page that cannot be made whole is not sent.
type packed struct {
	body []byte
	// readers are those to whom it is sent, guarded by the crowd that reads it.
	readers int
}

// small is up to how many bytes a page takes so little memory that any number of them may be sent at once.
const small = 32 << 10

// packers compress. One takes a megabyte, which is far more than most pages do.
var packers = sync.Pool{New: func() any {
	packs, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // there is this level
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

// size is how many bytes the page has for whoever takes none that is compressed: the format ends with that.
func (p *packed) size() int { return int(binary.LittleEndian.Uint32(p.body[len(p.body)-4:])) }

// send answers with the page. If it is large and has to be unpacked, that is work within a budget.
func (p *packed) send(w http.ResponseWriter, r *http.Request, code int, of *budget.Budget) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		w.WriteHeader(code)
		_, _ = w.Write(p.body)
		return
	}
	unpacks, err := gzip.NewReader(bytes.NewReader(p.body))
	if err != nil {
		panic(err) // it was packed above
	}
	from := io.Reader(unpacks)
	if p.size() > small {
		if err := of.Wait(r.Context()); err != nil {
			http.Error(w, errBusy.Error()+": try again in a moment, or take the page compressed", http.StatusServiceUnavailable)
			return
		}
		from = &work{r.Context(), unpacks, of}
	}
	header.Set("Content-Length", strconv.Itoa(p.size())) // a page that is cut off is known to be
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, from)
	}
}

// work is what is read within a budget, a piece at a time. Whoever waits for its pieces does not count.
type work struct {
	ctx  context.Context
	from io.Reader
	of   *budget.Budget
}

// Read implements io.Reader.
func (w *work) Read(into []byte) (n int, err error) {
	if err := w.of.Wait(w.ctx); err != nil {
		return 0, err
	}
	w.of.Do(func() { n, err = w.from.Read(into) })
	return n, err
}
