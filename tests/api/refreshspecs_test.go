package api_test

const (
	causeTTL     = "ttl must be a positive whole number and one of the units y, mo, d, h, m, s, such as 1y"
	causeTwo     = "ttl must be at least twice within: write a longer ttl, such as 60d for within: 720h, or a shorter within"
	causeWithin  = "within must be a duration from 1m to 87600h (10 years), such as 720h"
	causeTimeout = "timeout must be a duration from 1s to 24h, such as 1h"
)

// refreshing returns the spec of a MachineCertificateRefresh that is valid without the added fields.
func refreshing(more string) string { return `{gateRefs: [{name: nights}]` + more + `}` }

var badRefreshes = []badSpec{
	{"no gates", `{}`, "spec.gateRefs", "Required value"},
	{"an empty list of gates", `{gateRefs: []}`, "spec.gateRefs", "should have at least 1 items"},
	{"11 gates", `{gateRefs: ` + list(11, "{name: a%d}") + `}`, "spec.gateRefs", "at most 10 items"},
	{"a gate twice", `{gateRefs: [{name: a}, {name: a}]}`, "spec.gateRefs[1]", "Duplicate value"},
	{"a gate without a name", `{gateRefs: [{}]}`, "spec.gateRefs[0].name", "Required value"},
	{"a gate with an invalid name", `{gateRefs: [{name: A}]}`, "spec.gateRefs[0].name", "name must be the name of a Gate"},
	{"a selector with an invalid label", refreshing(`, selector: {matchLabels: {a: b c}}`), "spec.selector.matchLabels", causeLabels},
	{"a selector with an operator without values", refreshing(`, selector: {matchExpressions: [{key: a, operator: In}]}`), "spec.selector.matchExpressions[0]", "need values"},
	{"a ttl of no days", refreshing(`, ttl: "0d"`), "spec.ttl", causeTTL},
	{"a ttl of -1d", refreshing(`, ttl: "-1d"`), "spec.ttl", causeTTL},
	{"a ttl of a number", refreshing(`, ttl: "1"`), "spec.ttl", causeTTL},
	{"a ttl of a year and a blank", refreshing(`, ttl: "1y "`), "spec.ttl", causeTTL},
	{"a ttl of a blank and a year", refreshing(`, ttl: " 1y"`), "spec.ttl", causeTTL},
	{"a ttl of a year and a new line", refreshing(`, ttl: "1y\n"`), "spec.ttl", causeTTL},
	{"a ttl of 01d", refreshing(`, ttl: "01d"`), "spec.ttl", causeTTL},
	{"a ttl of a week", refreshing(`, ttl: "1w"`), "spec.ttl", causeTTL},
	{"a ttl of two units", refreshing(`, ttl: "1y6mo"`), "spec.ttl", causeTTL},
	{"a ttl of half a year", refreshing(`, ttl: "1.5y"`), "spec.ttl", causeTTL},
	{"a ttl of +1y", refreshing(`, ttl: "+1y"`), "spec.ttl", causeTTL},
	{"a ttl of milliseconds", refreshing(`, ttl: "1ms"`), "spec.ttl", causeTTL},
	{"a ttl of nine characters", refreshing(`, ttl: "12345678y"`), "spec.ttl", "8"},
	{"a ttl of 30 days", refreshing(`, ttl: 30d`), "spec", causeTwo},
	{"a ttl of 59 days", refreshing(`, ttl: 59d`), "spec", causeTwo},
	{"a ttl of a month", refreshing(`, ttl: 1mo`), "spec", causeTwo},
	{"a ttl of less than a day", refreshing(`, ttl: 1439m, within: 12h`), "spec", causeTwo},
	{"a ttl of less than two minutes", refreshing(`, ttl: 119s, within: 1m`), "spec", causeTwo},
	{"a ttl of less than two weeks", refreshing(`, ttl: 335h, within: 1w`), "spec", causeTwo},
	{"within -1h", refreshing(`, within: -1h`), "spec.within", causeWithin},
	{"within 59s", refreshing(`, within: 59s`), "spec.within", causeWithin},
	{"within 0s", refreshing(`, within: 0s`), "spec.within", causeWithin},
	{"within no days", refreshing(`, within: 0d`), "spec.within", causeWithin},
	{"within more than 10 years", refreshing(`, within: 87601h, ttl: 99y`), "spec.within", causeWithin},
	{"within more than 10 years in days", refreshing(`, within: 3651d, ttl: 99y`), "spec.within", causeWithin},
	{"within a year", refreshing(`, within: 1y`), "spec.within", causeWithin},
	{"a timeout of -1s", refreshing(`, timeout: -1s`), "spec.timeout", causeTimeout},
	{"a timeout of 500ms", refreshing(`, timeout: 500ms`), "spec.timeout", causeTimeout},
	{"a timeout of 0s", refreshing(`, timeout: 0s`), "spec.timeout", causeTimeout},
	{"a timeout of 48h", refreshing(`, timeout: 48h`), "spec.timeout", causeTimeout},
	{"a timeout of two days", refreshing(`, timeout: 2d`), "spec.timeout", causeTimeout},
	{"a timeout of no days", refreshing(`, timeout: 0d`), "spec.timeout", causeTimeout},
}

var goodRefreshes = map[string]string{
	"only gates":         refreshing(``),
	"60 days":            refreshing(`, ttl: 60d`),
	"two months":         refreshing(`, ttl: 2mo`),
	"the largest values": refreshing(`, ttl: 9999999y, within: 87600h, timeout: 24h`),
	"the least values":   refreshing(`, ttl: 120s, within: 1m, timeout: 1s`),
	"days and weeks":     refreshing(`, ttl: 336h, within: 1w, timeout: 1d`),
	"the least days":     refreshing(`, within: 1d`),
	"the most days":      refreshing(`, within: 3650d, ttl: 99y`),
	"Machines by labels": refreshing(`, selector: {matchLabels: {"cluster.x-k8s.io/cluster-name": c1}}`),
	"all Machines":       refreshing(`, selector: {}`),
}
