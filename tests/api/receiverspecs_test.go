package api_test

import (
	"fmt"
	"strings"
)

const (
	causeReceiverInterval = "interval must be a duration of at least 1s, such as 10m"
	causeReceiverWindow   = "window must be a duration from 1s to 8784h (366 days), such as 1h"
	causeNoProvider       = "generic-oidc receivers must define at least one oidcProvider"
	causeProvider         = "oidcProviders can only be set when type is generic-oidc"
	causeOIDCSecret       = "secretRef cannot be set when type is generic-oidc"
	causeSecret           = "secretRef is required when type is not generic-oidc"
	causeAction           = "exactly one of action and actionExpr must be set"
	causeActions          = `supported values: "open", "close"`
	causeEvents           = "events can only be set when type is github, gitlab, standard-webhooks, flux-event or alertmanager: use filter"
	causeSignature        = "signature can only be set when type is generic-hmac"
	causePrefix           = "prefix can only be set with algorithm: without it, a signature begins with the name of its algorithm, such as sha256="
	causePayload          = "payload can only be set with timestampHeader: without it, the body alone is signed"
	causeGeneric          = "type generic can only close, because the path is its only secret: set action: close without actionExpr"
	causeTimestamp        = "timestampHeader must differ from header"
)

// receiver returns the spec of a receiver of a type, valid without the added fields.
func receiver(kind, more string) string {
	return `{type: ` + kind + `, secretRef: {name: s}, gateRefs: [{name: production}], action: close` + more + `}`
}

// asking returns the spec of a receiver that is valid except for its action.
func asking(action string) string {
	return `{type: github, secretRef: {name: s}, gateRefs: [{name: production}]` + action + `}`
}

// hmac returns the spec of a receiver whose signature has fields.
func hmac(fields string) string { return receiver("generic-hmac", `, signature: {`+fields+`}`) }

// oidc returns the spec of a receiver with providers.
func oidc(providers, more string) string {
	return `{type: generic-oidc, gateRefs: [{name: production}], action: open, oidcProviders: ` + providers + more + `}`
}

func provider(url string) string {
	return `{issuerURL: "` + url + `", validations: [{expression: "claims.sub == 'a'", message: m}]}`
}

// list returns a list of n items, formatted from their numbers.
func list(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func long(n int) string { return strings.Repeat("a", n) }

var badReceivers = []badSpec{
	{"no type", `{secretRef: {name: s}, gateRefs: [{name: a}], action: open}`, "spec.type", "Required value"},
	{"an unknown type", receiver("bitbucket", ""), "spec.type", "Unsupported value"},
	{"no gates", `{type: generic, secretRef: {name: s}, action: close}`, "spec.gateRefs", "Required value"},
	{"an empty list of gates", `{type: generic, secretRef: {name: s}, action: close, gateRefs: []}`, "spec.gateRefs", "should have at least 1 items"},
	{"eleven gates", `{type: generic, secretRef: {name: s}, action: close, gateRefs: ` + list(11, "{name: a%d}") + `}`, "spec.gateRefs", "at most 10 items"},
	{"a gate twice", `{type: generic, secretRef: {name: s}, action: close, gateRefs: [{name: a}, {name: a}]}`, "spec.gateRefs[1]", "Duplicate value"},
	{"neither action nor actionExpr", asking(""), "spec", causeAction},
	{"both action and actionExpr", asking(`, action: open, actionExpr: "'open'"`), "spec", causeAction},
	{"an empty action", asking(`, action: ""`), "spec.action", causeActions},
	{"an expression as action", asking(`, action: "req.ok ? 'open' : 'close'"`), "spec.action", causeActions},
	{"an action in upper case", asking(`, action: Open`), "spec.action", causeActions},
	{"generic that opens", `{type: generic, secretRef: {name: s}, gateRefs: [{name: a}], action: open}`, "spec.type", causeGeneric},
	{"generic with an expression", `{type: generic, secretRef: {name: s}, gateRefs: [{name: a}], actionExpr: "'close'"}`, "spec.type", causeGeneric},
	{"an empty actionExpr", asking(`, actionExpr: ""`), "spec.actionExpr", "should be at least 1 chars long"},
	{"an actionExpr that is too long", asking(`, actionExpr: ` + long(4097)), "spec.actionExpr", "4096"},
	{"a filter that is too long", receiver("generic", `, filter: `+long(4097)), "spec.filter", "4096"},
	{"no Secret", `{type: generic, gateRefs: [{name: a}], action: close}`, "spec", causeSecret},
	{"a Secret without a name", `{type: generic, gateRefs: [{name: a}], action: close, secretRef: {}}`, "spec.secretRef.name", "Required value"},
	{"a Secret with an invalid name", `{type: generic, gateRefs: [{name: a}], action: close, secretRef: {name: S}}`, "spec.secretRef", "secretRef.name must be the name of a Secret"},
	{"a gate with an invalid name", `{type: generic, gateRefs: [{name: A}], action: close, secretRef: {name: s}}`, "spec.gateRefs[0].name", "name must be the name of a Gate"},
	{"a Secret for oidc", oidc("["+provider("https://a")+"]", `, secretRef: {name: s}`), "spec", causeOIDCSecret},
	{"oidc without providers", `{type: generic-oidc, gateRefs: [{name: a}], action: open}`, "spec", causeNoProvider},
	{"oidc with an empty list of providers", oidc("[]", ""), "spec", causeNoProvider},
	{"providers for another type", receiver("github", `, oidcProviders: [`+provider("https://a")+`]`), "spec", causeProvider},
	{"a provider twice", oidc("["+provider("https://a")+","+provider("https://a")+"]", ""), "spec.oidcProviders[1]", "Duplicate value"},
	{"eleven providers", oidc(list(11, `{issuerURL: "https://a%d", validations: [{expression: "true", message: m}]}`), ""), "spec.oidcProviders", "at most 10 items"},
	{"a provider without TLS", oidc("["+provider("http://a")+"]", ""), "spec.oidcProviders[0].issuerURL", "issuerURL must be an https URL"},
	{"a provider without a host", oidc("["+provider("https:///a")+"]", ""), "spec.oidcProviders[0].issuerURL", "issuerURL must be an https URL"},
	{"a provider with a password", oidc("["+provider("https://a:b@c")+"]", ""), "spec.oidcProviders[0].issuerURL", "issuerURL must be an https URL"},
	{"a provider that is a file", oidc("["+provider("file:///etc")+"]", ""), "spec.oidcProviders[0].issuerURL", "issuerURL must be an https URL"},
	{"a provider without validations", oidc(`[{issuerURL: "https://a", validations: []}]`, ""), "spec.oidcProviders[0].validations", "should have at least 1 items"},
	{"a variable that is not an identifier", oidc(`[{issuerURL: "https://a", variables: [{name: "a-b", expression: "1"}], validations: [{expression: "true", message: m}]}]`, ""), "spec.oidcProviders[0].variables[0].name", "name must be a CEL identifier"},
	{"a provider without an issuerURL", oidc(`[{validations: [{expression: "true", message: m}]}]`, ""), "spec.oidcProviders[0].issuerURL", "Required value"},
	{"a provider without a list of validations", oidc(`[{issuerURL: "https://a"}]`, ""), "spec.oidcProviders[0].validations", "Required value"},
	{"an issuerURL that is too long", oidc("["+provider("https://"+long(2041))+"]", ""), "spec.oidcProviders[0].issuerURL", "2048"},
	{"an audience that is too long", oidc(`[{issuerURL: "https://a", validations: [{expression: "true", message: m}], audience: `+long(2049)+`}]`, ""), "spec.oidcProviders[0].audience", "2048"},
	{"33 validations", oidc(`[{issuerURL: "https://a", validations: `+list(33, `{expression: "true", message: m%d}`)+`}]`, ""), "spec.oidcProviders[0].validations", "at most 32 items"},
	{"a validation without an expression", oidc(`[{issuerURL: "https://a", validations: [{message: m}]}]`, ""), "spec.oidcProviders[0].validations[0].expression", "Required value"},
	{"a validation without a message", oidc(`[{issuerURL: "https://a", validations: [{expression: "true"}]}]`, ""), "spec.oidcProviders[0].validations[0].message", "Required value"},
	{"a validation with an empty expression", oidc(`[{issuerURL: "https://a", validations: [{expression: "", message: m}]}]`, ""), "spec.oidcProviders[0].validations[0].expression", "should be at least 1 chars long"},
	{"a validation with an empty message", oidc(`[{issuerURL: "https://a", validations: [{expression: "true", message: ""}]}]`, ""), "spec.oidcProviders[0].validations[0].message", "should be at least 1 chars long"},
	{"a validation whose expression is too long", oidc(`[{issuerURL: "https://a", validations: [{message: m, expression: `+long(4097)+`}]}]`, ""), "spec.oidcProviders[0].validations[0].expression", "4096"},
	{"a validation whose message is too long", oidc(`[{issuerURL: "https://a", validations: [{expression: "true", message: `+long(1025)+`}]}]`, ""), "spec.oidcProviders[0].validations[0].message", "1024"},
	{"33 variables", oidc(`[{issuerURL: "https://a", validations: [{expression: "true", message: m}], variables: `+list(33, `{name: v%d, expression: "1"}`)+`}]`, ""), "spec.oidcProviders[0].variables", "at most 32 items"},
	{"a variable without a name", oidc(`[{issuerURL: "https://a", validations: [{expression: "true", message: m}], variables: [{expression: "1"}]}]`, ""), "spec.oidcProviders[0].variables[0].name", "Required value"},
	{"a variable whose name is too long", oidc(`[{issuerURL: "https://a", validations: [{expression: "true", message: m}], variables: [{expression: "1", name: `+long(64)+`}]}]`, ""), "spec.oidcProviders[0].variables[0].name", "63"},
	{"a variable without an expression", oidc(`[{issuerURL: "https://a", validations: [{expression: "true", message: m}], variables: [{name: v}]}]`, ""), "spec.oidcProviders[0].variables[0].expression", "Required value"},
	{"a variable with an empty expression", oidc(`[{issuerURL: "https://a", validations: [{expression: "true", message: m}], variables: [{name: v, expression: ""}]}]`, ""), "spec.oidcProviders[0].variables[0].expression", "should be at least 1 chars long"},
	{"a variable whose expression is too long", oidc(`[{issuerURL: "https://a", validations: [{expression: "true", message: m}], variables: [{name: v, expression: `+long(4097)+`}]}]`, ""), "spec.oidcProviders[0].variables[0].expression", "4096"},
	{"events for generic", receiver("generic", `, events: [push]`), "spec", causeEvents},
	{"events for generic-hmac", receiver("generic-hmac", `, events: [push]`), "spec", causeEvents},
	{"an empty event", receiver("github", `, events: [""]`), "spec.events[0]", "should be at least 1 chars long"},
	{"an event that is too long", receiver("github", `, events: [`+long(254)+`]`), "spec.events[0]", "253"},
	{"101 events", receiver("github", `, events: `+list(101, "e%d")), "spec.events", "at most 100 items"},
	{"a signature for github", receiver("github", `, signature: {header: X-A}`), "spec", causeSignature},
	{"a header with a colon", hmac(`header: "X-A:"`), "spec.signature.header", "header must be the name of a header"},
	{"an empty header", hmac(`header: ""`), "spec.signature.header", "header must be the name of a header"},
	{"a header that is too long", hmac(`header: ` + long(65)), "spec.signature.header", "64"},
	{"an unknown encoding", hmac(`encoding: base32`), "spec.signature.encoding", `supported values: "hex", "base64"`},
	{"an unknown algorithm", hmac(`algorithm: md5`), "spec.signature.algorithm", `supported values: "sha256", "sha512", "sha1"`},
	{"a prefix without an algorithm", hmac(`prefix: v1=`), "spec.signature", causePrefix},
	{"a prefix with a comma", hmac(`algorithm: sha256, prefix: "v1,"`), "spec.signature.prefix", "prefix must have ASCII"},
	{"a prefix that is too long", hmac(`algorithm: sha256, prefix: ` + long(17)), "spec.signature.prefix", "16"},
	{"a timestampHeader with a colon", hmac(`timestampHeader: "X-T:"`), "spec.signature.timestampHeader", "timestampHeader must be the name of a header"},
	{"a timestampHeader that is too long", hmac(`timestampHeader: ` + long(65)), "spec.signature.timestampHeader", "64"},
	{"a payload that is too long", hmac(`timestampHeader: X-T, payload: "` + long(48) + `{timestamp}:{body}"`), "spec.signature.payload", "64"},
	{"a payload without a time", hmac(`payload: "{timestamp}:{body}"`), "spec.signature", causePayload},
	{"a payload without {body}", hmac(`timestampHeader: X-T, payload: "{timestamp}:"`), "spec.signature.payload", "payload must be {timestamp}"},
	{"a payload without {timestamp}", hmac(`timestampHeader: X-T, payload: "v0:{body}"`), "spec.signature.payload", "payload must be {timestamp}"},
	{"a payload with no separator", hmac(`timestampHeader: X-T, payload: "{timestamp}{body}"`), "spec.signature.payload", "payload must be {timestamp}"},
	{"a payload with a digit as separator", hmac(`timestampHeader: X-T, payload: "{timestamp}.1{body}"`), "spec.signature.payload", "payload must be {timestamp}"},
	{"a payload with the body first", hmac(`timestampHeader: X-T, payload: "{body}:{timestamp}"`), "spec.signature.payload", "payload must be {timestamp}"},
	{"a time in the header of the signature", hmac(`header: X-Sign, timestampHeader: x-sign`), "spec.signature", causeTimestamp},
	{"a time in the default header", hmac(`timestampHeader: x-signature`), "spec.signature", causeTimestamp},
	{"an interval of 0s", receiver("generic", `, interval: 0s`), "spec.interval", causeReceiverInterval},
	{"an interval of -1m", receiver("generic", `, interval: -1m`), "spec.interval", causeReceiverInterval},
	{"an interval of no days", receiver("generic", `, interval: 0d`), "spec.interval", causeReceiverInterval},
	{"a window of 999ms", receiver("generic", `, window: 999ms`), "spec.window", causeReceiverWindow},
	{"a window of more than 366 days", receiver("generic", `, window: 8784h1s`), "spec.window", causeReceiverWindow},
	{"a window of no days", receiver("generic", `, window: 0d`), "spec.window", causeReceiverWindow},
	{"a window of 367 days", receiver("generic", `, window: 367d`), "spec.window", causeReceiverWindow},
	{"a Secret whose name is too long", `{type: generic, gateRefs: [{name: a}], action: close, secretRef: {name: ` + long(254) + `}}`, "spec.secretRef", "secretRef.name must be the name of a Secret"},
	{"a window that is a number", receiver("generic", `, window: 5`), "spec.window", `must be of type string: "integer"`},
}

var goodReceivers = map[string]string{
	"of generic":                      receiver("generic", ""),
	"of generic-hmac":                 receiver("generic-hmac", `, filter: "req.a == 1"`),
	"of github":                       receiver("github", `, events: [push, "*"], interval: 1s, window: 8784h`),
	"with the most days":              receiver("generic", `, interval: 1d, window: 366d`),
	"with the least days":             strings.Replace(receiver("generic", `, window: 1d`), "name: s", "name: "+long(253), 1),
	"of gitlab":                       receiver("gitlab", `, events: []`),
	"of standard-webhooks":            receiver("standard-webhooks", `, events: [deploy.done]`),
	"of Grafana":                      hmac(`header: X-Grafana-Alerting-Signature, algorithm: sha256, timestampHeader: X-Grafana-Alerting-Timestamp`),
	"of Slack":                        hmac(`header: X-Slack-Signature, algorithm: sha256, prefix: v0=, timestampHeader: X-Slack-Request-Timestamp, payload: "v0:{timestamp}:{body}"`),
	"of PagerDuty":                    hmac(`header: X-PagerDuty-Signature, algorithm: sha256, prefix: v1=`),
	"with an empty signature":         hmac(``),
	"with base64":                     hmac(`header: Authorization, encoding: base64, algorithm: sha512, prefix: "HMAC "`),
	"of flux-event":                   receiver("flux-event", `, events: [HealthCheckFailed], window: 1s, suspend: true`),
	"of alertmanager":                 receiver("alertmanager", `, events: [resolved]`),
	"of generic-oidc":                 oidc("["+provider("https://a")+"]", ""),
	"of alertmanager to open":         `{type: alertmanager, secretRef: {name: s}, gateRefs: [{name: a}], actionExpr: "req.status == 'firing' ? 'close' : 'open'"}`,
	"that closes":                     asking(`, action: close`),
	"with an expression":              asking(`, actionExpr: "req.ok ? 'open' : ''"`),
	"with an empty list of providers": receiver("github", `, oidcProviders: []`),
}
