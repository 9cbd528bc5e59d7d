package api_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestLifetimeOfATTL(t *testing.T) {
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

func TestWhichMachineCertificateRefreshesAreAccepted(t *testing.T) {
	const (
		badTTL  = "ttl must be a positive whole number and one of the units y, mo, d, h, m, s, such as 1y"
		short   = "ttl must be at least twice within: write a longer ttl, such as 60d for within: 720h, or a shorter within"
		within  = "within must be a duration from 1m to 87600h (10 years), such as 720h"
		timeout = "timeout must be a duration from 1s to 24h, such as 1h"
	)
	for spec, cause := range map[string]string{
		"": "", "ttl: 60d": "", "ttl: 2mo": "", "ttl: 9999999y, within: 87600h, timeout: 24h": "", "ttl: 120s, within: 1m, timeout: 1s": "",
		`selector: {matchLabels: {"cluster.x-k8s.io/cluster-name": c1}}`: "",
		"ttl: 0d": badTTL, "ttl: -1d": badTTL, `ttl: "1"`: badTTL, `ttl: "1y "`: badTTL, `ttl: " 1y"`: badTTL, `ttl: "1y\n"`: badTTL, "ttl: 01d": badTTL,
		"ttl: 1w": badTTL, "ttl: 1y6mo": badTTL, "ttl: 1.5y": badTTL, "ttl: +1y": badTTL, "ttl: 1ms": badTTL, "ttl: 12345678y": "8",
		"ttl: 30d": short, "ttl: 59d": short, "ttl: 1mo": short, "ttl: 1439m, within: 12h": short, "ttl: 119s, within: 1m": short,
		"within: -1h": within, "within: 59s": within, "within: 0s": within, "within: 87601h, ttl: 99y": within,
		"timeout: -1s": timeout, "timeout: 500ms": timeout, "timeout: 0s": timeout, "timeout: 48h": timeout,
		"gateRefs: []": "at least 1 items", "gateRefs: [{name: a}, {name: a}]": "Duplicate", "gateRefs: [{}]": "Required",
	} {
		if !strings.Contains(spec, "gateRefs") {
			spec = "gateRefs: [{name: nights}], " + spec
		}
		err := admitKind(t, v1alpha1.MachineCertificateRefreshKind, "{"+spec+"}")
		if (err == nil) != (cause == "") || err != nil && !strings.Contains(err.Error(), cause) {
			t.Errorf("%s: got %v, want %q", spec, err, cause)
		}
	}
}
