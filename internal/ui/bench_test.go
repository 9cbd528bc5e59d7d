package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fluxcd/gating-controller/internal/preview"
)

// BenchmarkOverview makes the first page of 1,000 Gates with ten periods each, beside the preview that it needs at least when nothing is
// known. A page is new after a Gate has changed, or the minute. It is the same for whoever sees the same.
func BenchmarkOverview(b *testing.B) {
	reader := &fake{gates: many(1000), versioned: true}
	b.Run("preview alone", func(b *testing.B) {
		for b.Loop() {
			set := preview.FromCluster(reader.gates, nil)
			if _, _, err := set.Preview(preview.Range{From: noon, Until: noon.AddDate(0, 0, 14)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, change := range map[string]func(i int){
		"the first page": func(i int) {
			for _, g := range reader.gates {
				g.ResourceVersion = fmt.Sprint(i)
			}
		},
		"a page after a change": func(i int) { reader.gates[i%len(reader.gates)].ResourceVersion = fmt.Sprint("x", i) },
		"the same page":         func(int) {},
	} {
		b.Run(name, func(b *testing.B) {
			handler, size, i := pages(b, reader), 0, 0
			for b.Loop() {
				i++
				change(i)
				size = overviewOf(b, handler)
			}
			b.ReportMetric(float64(size)/1e3, "kB")
		})
	}
}

// overviewOf loads the first page, and returns how large it is.
func overviewOf(t testing.TB, handler http.Handler) int {
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	request.Header.Set("Accept-Encoding", "gzip")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		t.Fatal(recorder.Code, recorder.Body)
	}
	return recorder.Body.Len()
}
