package ui

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// packed is a page that waits to be sent, compressed: who reads slowly takes little memory. A page that cannot be made whole is not sent.
type packed struct{ bytes.Buffer }

func (p *packed) pack(write func(io.Writer) error) error {
	packs, err := gzip.NewWriterLevel(&p.Buffer, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := write(packs); err != nil {
		return err
	}
	return packs.Close()
}

// send answers with the page.
func (p *packed) send(w http.ResponseWriter, r *http.Request, code int) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		w.WriteHeader(code)
		_, _ = p.WriteTo(w) // who does not wait for the page gets none
		return
	}
	unpacks, err := gzip.NewReader(&p.Buffer)
	if err != nil {
		panic(err) // it was packed above
	}
	w.WriteHeader(code)
	_, _ = io.Copy(w, unpacks) //nolint:gosec // it was packed above
}
