package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestTimeIsFromResponseHeader(t *testing.T) {
	shown := time.Date(2026, 11, 23, 12, 0, 7, 0, time.UTC)
	for name, tc := range map[string]struct {
		date string
		code int
		fine bool
	}{
		"an answer":                             {shown.Format(http.TimeFormat), http.StatusOK, true},
		"an answer that is not for us":          {shown.Format(http.TimeFormat), http.StatusForbidden, true},
		"no answer of the API server":           {shown.Format(http.TimeFormat), http.StatusBadGateway, false},
		"an answer without a time":              {"", http.StatusOK, false},
		"an answer with something else as time": {"noon", http.StatusOK, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/version" || r.Method != http.MethodGet {
					t.Errorf("%s %s", r.Method, r.URL.Path)
				}
				w.Header()["Date"] = nil
				if tc.date != "" {
					w.Header().Set("Date", tc.date)
				}
				w.WriteHeader(tc.code)
			}))
			defer server.Close()
			got, err := requestTimeFrom(server.Client(), server.URL+"/version")(t.Context())
			if (err == nil) != tc.fine || tc.fine && !got.Equal(shown) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	if _, err := requestTimeFrom(http.DefaultClient, "http://127.0.0.1:1/version")(t.Context()); err == nil {
		t.Error("nobody answers, and that is not an error")
	}
}
