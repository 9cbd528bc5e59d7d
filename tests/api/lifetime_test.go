package api_test

import (
	"math"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestTTLBounds(t *testing.T) {
	const day = 24 * time.Hour
	for ttl, want := range map[string]time.Duration{
		"1y": 365 * day, "2mo": 60 * day, "90d": 90 * day, "720h": 30 * day, "5m": 5 * time.Minute, "7s": 7 * time.Second,
		"": 365 * day, "9999999y": math.MaxInt64, "292y": 292 * 365 * day, "293y": math.MaxInt64,
		"0d": 0, "-1d": 0, "1": 0, "y": 0, "01d": 0, "1w": 0, "1y ": 0, " 1y": 0, "1Y": 0, "1.5y": 0, "123456789": 0,
	} {
		spec := v1alpha1.MachineCertificateRefreshSpec{TTL: ttl}
		if got := spec.Lifetime(); got != want {
			t.Errorf("%q: got %s, want %s", ttl, got, want)
		}
	}
}
