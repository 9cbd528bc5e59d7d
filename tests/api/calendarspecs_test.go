package api_test

const causeChoice = "exactly one of gateRefs and selector must be set"

// showing returns the spec of a calendar that is valid without the added fields.
func showing(more string) string { return `{secretRef: {name: s}, selector: {}` + more + `}` }

var badCalendars = []badSpec{
	{"no Secret", `{selector: {}}`, "spec.secretRef", "Required value"},
	{"no gates", `{secretRef: {name: s}}`, "spec", causeChoice},
	{"gates and a selector", showing(`, gateRefs: [{name: a}]`), "spec", causeChoice},
	{"an empty list of gates", `{secretRef: {name: s}, gateRefs: []}`, "spec.gateRefs", "at least 1"},
	{"101 gates", `{secretRef: {name: s}, gateRefs: ` + list(101, "{name: a%d}") + `}`, "spec.gateRefs", "at most 100 items"},
	{"a gate with an invalid name", `{secretRef: {name: s}, gateRefs: [{name: A}]}`, "spec.gateRefs[0].name", "name must be the name of a Gate"},
	{"a Secret without a name", `{secretRef: {}, selector: {}}`, "spec.secretRef.name", "Required value"},
	{"a Secret with an invalid name", `{secretRef: {name: S}, selector: {}}`, "spec.secretRef", "secretRef.name must be the name of a Secret"},
	{"a selector with an unknown operator", `{secretRef: {name: s}, selector: {matchExpressions: [{key: a, operator: Like}]}}`, "spec.selector.matchExpressions[0].operator", "supported values"},
	{"a selector with an operator without values", `{secretRef: {name: s}, selector: {matchExpressions: [{key: a, operator: In}]}}`, "spec.selector.matchExpressions[0]", "need values"},
	{"a selector with an invalid label", `{secretRef: {name: s}, selector: {matchLabels: {a: b c}}}`, "spec.selector.matchLabels", causeLabels},
	{"a selector with an invalid value", `{secretRef: {name: s}, selector: {matchExpressions: [{key: a, operator: In, values: [b c]}]}}`, "spec.selector.matchExpressions[0].values[0]", causeValue},
	{"a gate twice", `{secretRef: {name: s}, gateRefs: [{name: a}, {name: a}]}`, "spec.gateRefs[1]", "Duplicate value"},
	{"an unknown state", showing(`, state: ajar`), "spec.state", `supported values: "closed", "opened"`},
	{"0 days", showing(`, days: 0`), "spec.days", "greater than or equal to 1"},
	{"366 days", showing(`, days: 366`), "spec.days", "less than or equal to 365"},
	{"an interval of 0s", showing(`, interval: 0s`), "spec.interval", causeReceiverInterval},
}

var goodCalendars = map[string]string{
	"all gates":          showing(``),
	"all fields":         showing(`, state: opened, days: 365, suspend: true, interval: 1s`),
	"gates by labels":    `{secretRef: {name: s}, selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}}`,
	"100 gates by names": `{secretRef: {name: s}, gateRefs: ` + list(100, "{name: a%d}") + `}`,
}
