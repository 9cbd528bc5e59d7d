package receivers

import (
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// fluxBody returns an event of kustomize-controller. change has pairs of replaced texts.
func fluxBody(change ...string) string {
	return strings.NewReplacer(change...).Replace(`{"involvedObject":{"kind":"Kustomization","namespace":"flux-system","name":"staging",` +
		`"uid":"8b1c","apiVersion":"kustomize.toolkit.fluxcd.io/v1","resourceVersion":"7"},"severity":"error",` +
		`"timestamp":"2026-03-02T09:59:58Z","message":"Health check failed after 30s\ntimeout waiting for: [Deployment/web]",` +
		`"reason":"HealthCheckFailed","metadata":{"kustomize.toolkit.fluxcd.io/revision":"main@sha1:6d3c78c"},` +
		`"reportingController":"kustomize-controller","reportingInstance":"kustomize-controller-7f"}`)
}

func unsignedFlux() *incoming {
	return request(fluxBody(), []string{testToken}, "Content-Type", "application/json", "Gotk-Component", "kustomize-controller")
}

func signedFlux(body string) *incoming {
	in := unsignedFlux()
	in.body = []byte(body)
	in.header.Set("X-Signature", signatureOf("sha256", sha256.New, testToken, in.body))
	return in
}

func goodFlux() *incoming { return signedFlux(fluxBody()) }

func TestFluxEventSignature(t *testing.T) {
	attempts := signatureAttempts("X-Signature", "sha256", sha256.New, fluxBody())
	attempts = slices.DeleteFunc(attempts, func(a attempt) bool { return a.name == "missing" })
	try(t, fluxEvent{}, goodFlux, attempts)
	try(t, fluxEvent{}, goodFlux, []attempt{
		{"none, as of Provider generic", without("X-Signature"), nil},
		{"with SHA-512, which Flux has not", set("X-Signature", signatureOf("sha512", sha512.New, testToken, []byte(fluxBody()))), errUnverified},
		{"wrong, of a body that makes no sense", func(in *incoming) { in.body = []byte("[]") }, errUnverified},
	})
}

func TestFluxEventNeedsSignatureWithSigningToken(t *testing.T) {
	good := func() *incoming {
		in := unsignedFlux()
		in.signingTokens = []string{previousToken}
		in.header.Set("X-Signature", signatureOf("sha256", sha256.New, previousToken, in.body))
		return in
	}
	try(t, fluxEvent{}, good, []attempt{
		{"of the signing token", func(*incoming) {}, nil},
		{"of the token", set("X-Signature", signatureOf("sha256", sha256.New, testToken, []byte(fluxBody()))), errUnverified},
		{"none", without("X-Signature"), errUnverified},
	})
}

func TestInvalidFluxEventIsRefused(t *testing.T) {
	bodies := map[string]string{
		"an object of nothing":        "{}",
		"no kind":                     fluxBody(`"kind":"Kustomization",`, ``),
		"an empty name":               fluxBody(`"name":"staging"`, `"name":""`),
		"no reason":                   fluxBody(`"reason":"HealthCheckFailed",`, ``),
		"no object":                   fluxBody(`"involvedObject"`, `"object"`),
		"an object that is a text":    `{"involvedObject":"Kustomization/staging","reason":"a","message":"b"}`,
		"a reason that is a number":   fluxBody(`"HealthCheckFailed"`, `7`),
		"a time that is none":         fluxBody("2026-03-02T09:59:58Z", "yesterday"),
		"a time that is a number":     fluxBody(`"2026-03-02T09:59:58Z"`, `1772445598`),
		"metadata that is a list":     fluxBody(`{"kustomize.toolkit.fluxcd.io/revision":"main@sha1:6d3c78c"}`, `["revision"]`),
		"metadata that is not a text": fluxBody(`"main@sha1:6d3c78c"`, `{"a":1}`),
		"names in other case":         fluxBody(`"reason"`, `"Reason"`),
		"a gate that is not named":    fluxBody(`"metadata":{`, `"metadata":{"gate":"",`),
		"a gate that is null":         fluxBody(`"metadata":{`, `"metadata":{"gate":null,`),
		"a gate that is only a comma": fluxBody(`"metadata":{`, `"metadata":{"gate":" , ",`),
	}
	for name, body := range notObjects {
		bodies[name] = body
	}
	for name, body := range bodies {
		try(t, fluxEvent{}, goodFlux, []attempt{
			{name + ", signed", func(in *incoming) { *in = *signedFlux(body) }, errMalformed},
			{name + ", not signed", func(in *incoming) {
				in.header.Del("X-Signature")
				in.body = []byte(body)
			}, errMalformed},
		})
	}
}

func TestFluxEventHasObjectAndReason(t *testing.T) {
	hook := verified(t, fluxEvent{}, goodFlux())
	if hook.event != "HealthCheckFailed" || hook.reason != "Kustomization flux-system/staging: Health check failed after 30s" {
		t.Errorf("event %q, reason %q", hook.event, hook.reason)
	}
	if hook.gates != nil {
		t.Errorf("gates are %v", hook.gates)
	}
	hook = verified(t, fluxEvent{}, signedFlux(fluxBody(`"namespace":"flux-system",`, ``)))
	if want := "Kustomization staging: Health check failed after 30s"; hook.reason != want {
		t.Errorf("reason %q, want %q", hook.reason, want)
	}
	// Expressions read the same value as the verifier.
	twice := fluxBody(`"severity"`, `"involvedObject":{"kind":"HelmRelease","name":"web"},"severity"`)
	hook = verified(t, fluxEvent{}, signedFlux(twice))
	if !strings.HasPrefix(hook.reason, "HelmRelease web: ") || textAt(hook.body, "involvedObject", "namespace") != "" {
		t.Errorf("reason %q of %v", hook.reason, hook.body["involvedObject"])
	}
}

func TestFluxEventMetadataIsReadWithAndWithoutPrefix(t *testing.T) {
	for _, test := range []struct{ name, metadata, key, want string }{
		{"with its prefix", `{"kustomize.toolkit.fluxcd.io/revision":"one"}`, "kustomize.toolkit.fluxcd.io/revision", "one"},
		{"without it", `{"kustomize.toolkit.fluxcd.io/revision":"one"}`, "revision", "one"},
		{"as notification-controller passes it on", `{"revision":"one"}`, "revision", "one"},
		{"what is there stays", `{"kustomize.toolkit.fluxcd.io/revision":"one","revision":"two"}`, "revision", "two"},
		{"of two prefixes the first by name", `{"b.io/revision":"b","a.io/revision":"a"}`, "revision", "a"},
		{"a key that ends in a slash", `{"a.io/":"a"}`, "", "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := fluxBody(`{"kustomize.toolkit.fluxcd.io/revision":"main@sha1:6d3c78c"}`, test.metadata)
			if got := textAt(verified(t, fluxEvent{}, signedFlux(body)).body, "metadata", test.key); got != test.want {
				t.Errorf("%q is %q, want %q", test.key, got, test.want)
			}
		})
	}
	for _, metadata := range []string{`null`, `{}`} {
		verified(t, fluxEvent{}, signedFlux(fluxBody(`{"kustomize.toolkit.fluxcd.io/revision":"main@sha1:6d3c78c"}`, metadata)))
	}
}

func TestAlertRoutesByEventMetadata(t *testing.T) {
	for _, test := range []struct {
		metadata string
		want     []string
	}{
		{`"gate":"production"`, []string{"production"}},
		{`"gate":" production , canary,, "`, []string{"production", "canary"}},
		{`"kustomize.toolkit.fluxcd.io/gate":"production"`, []string{"production"}},
		{`"gating.toolkit.fluxcd.io/gate":"apps/production"`, []string{"apps/production"}}, // an event of our controller, which names no Gate
		{`"Gate":"production"`, nil},
	} {
		body := fluxBody(`"metadata":{`, `"metadata":{`+test.metadata+`,`)
		if got := verified(t, fluxEvent{}, signedFlux(body)).gates; !slices.Equal(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%s: gates are %v, want %v", test.metadata, got, test.want)
		}
	}
}

func TestFluxEventWithSignedTimeIsRecorded(t *testing.T) {
	in := goodFlux()
	if got := verified(t, fluxEvent{}, in).delivery; got != digestOf(in.body) {
		t.Errorf("delivery of a signed one is %q", got)
	}
	if got := verified(t, fluxEvent{}, unsignedFlux()).delivery; got != "" {
		t.Errorf("delivery of one that is not signed is %q", got)
	}
	if got := verified(t, fluxEvent{}, signedFlux(fluxBody(`"2026-03-02T09:59:58Z"`, `null`))).delivery; got != "" {
		t.Errorf("delivery of one without a time is %q", got)
	}
}

func TestSignedTimeOfFluxEventCounts(t *testing.T) {
	at := func(at time.Time) string {
		return fluxBody("2026-03-02T09:59:58Z", at.Format(time.RFC3339))
	}
	for _, far := range []time.Duration{-signedTimeTolerance, signedTimeTolerance, -100 * 365 * 24 * time.Hour} {
		body := at(testNow.Add(far))
		try(t, fluxEvent{}, goodFlux, []attempt{
			{fmt.Sprintf("%s from now, signed", far), func(in *incoming) { *in = *signedFlux(body) }, errMalformed},
			{fmt.Sprintf("%s from now, not signed", far), func(in *incoming) {
				in.header.Del("X-Signature")
				in.body = []byte(body)
			}, nil},
		})
	}
}
