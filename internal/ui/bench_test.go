package ui

import (
	"net/http"
	"net/http/httptest"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fluxcd/gating-controller/internal/preview"
)

var _ = clocktesting.NewFakePassiveClock

// BenchmarkOverview makes the first page of 1,000 Gates with ten periods each, beside the preview that it needs at least.
func BenchmarkOverview(b *testing.B) {
	reader := &fake{gates: many(1000)}
	b.Run("preview alone", func(b *testing.B) {
		for b.Loop() {
			set := preview.FromCluster(reader.gates, nil)
			if _, _, err := set.Preview(preview.Range{From: noon, Until: noon.AddDate(0, 0, 14)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("page", func(b *testing.B) {
		handler := pages(b, reader)
		size := 0
		for b.Loop() {
			request := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/", nil)
			request.Header.Set("Accept-Encoding", "gzip")
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			if recorder.Code != http.StatusOK {
				b.Fatal(recorder.Code, recorder.Body)
			}
			size = recorder.Body.Len()
		}
		b.ReportMetric(float64(size)/1e3, "kB")
	})
}
