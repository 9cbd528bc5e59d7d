package ui

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// packed is a page that waits to be sent, compressed: who reads slowly takes little memory. A page that cannot be made whole is not sent.
type packed struct {
	body []byte
	// readers are those to whom it is sent, guarded by the crowd that reads it.
	readers int
}

// small is up to how many bytes a page takes so little memory that any number of them may be sent at once.
const small = 32 << 10

func pack(write func(io.Writer) error) (*packed, error) {
	var body bytes.Buffer
	packs, err := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := write(packs); err != nil {
		return nil, err
	}
	if err := packs.Close(); err != nil {
		return nil, err
	}
	return &packed{body: bytes.Clone(body.Bytes())}, nil
}

// send answers with the page.
func (p *packed) send(w http.ResponseWriter, r *http.Request, code int) {
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
	w.WriteHeader(code)
	_, _ = io.Copy(w, unpacks) //nolint:gosec // it was packed above
}
