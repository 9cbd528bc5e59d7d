package api_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const causeChoice = "exactly one of gates and selector must be set"

// showing returns the spec of a calendar that is good except for what is added.
func showing(more string) string { return `{secretRef: {name: s}, selector: {}` + more + `}` }

var badCalendars = []badSpec{
	{"no Secret", `{selector: {}}`, "spec.secretRef", "Required value"},
	{"no gates", `{secretRef: {name: s}}`, "spec", causeChoice},
	{"gates and a selector", showing(`, gates: [{name: a}]`), "spec", causeChoice},
	{"an empty list of gates", `{secretRef: {name: s}, gates: []}`, "spec.gates", "at least 1"},
	{"101 gates", `{secretRef: {name: s}, gates: ` + list(101, "{name: a%d}") + `}`, "spec.gates", "at most 100 items"},
	{"a gate twice", `{secretRef: {name: s}, gates: [{name: a}, {name: a}]}`, "spec.gates[1]", "Duplicate value"},
	{"a state that is none", showing(`, state: ajar`), "spec.state", `supported values: "closed", "opened"`},
	{"0 days", showing(`, days: 0`), "spec.days", "greater than or equal to 1"},
	{"366 days", showing(`, days: 366`), "spec.days", "less than or equal to 365"},
	{"an interval of 0s", showing(`, interval: 0s`), "spec.interval", causeReceiverInterval},
}

func TestEveryRuleOfACalendarSaysWhatIsWrong(t *testing.T) {
	for _, bad := range badCalendars {
		err := admitKind(t, v1alpha1.CalendarFeedKind, bad.spec)
		if err == nil {
			t.Errorf("%s: accepted", bad.name)
			continue
		}
		if all := causes(t, err); len(all) != 1 || !strings.HasPrefix(all[0], bad.path+": ") || !strings.Contains(all[0], bad.cause) {
			t.Errorf("%s: got %q, want %q at %s and nothing else", bad.name, all, bad.cause, bad.path)
		}
	}
	for _, good := range []string{
		showing(``), showing(`, state: opened, days: 365, suspend: true, interval: 1s`),
		`{secretRef: {name: s}, selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}}`,
		`{secretRef: {name: s}, gates: ` + list(100, "{name: a%d}") + `}`,
	} {
		if err := admitKind(t, v1alpha1.CalendarFeedKind, good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}
