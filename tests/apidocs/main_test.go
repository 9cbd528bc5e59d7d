package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePageOfTheAPIIsThatOfTheDefinitions(t *testing.T) {
	root := filepath.Join("..", "..")
	want, err := page(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs", "reference", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error(`docs/reference/api.md is older than the definitions: run "make generate"`)
	}
}

func TestThePageOfTheAPIHasWhatIsNestedWithTypesDefaultsAndBounds(t *testing.T) {
	text, err := page(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n| [Gate](#gate) | `gt` | [gates.md](gates.md) |\n",
		"\n| `default` | `closed`, `opened` | required |  | Default is the state",
		"\n| `interval` | duration | `1m` | at most 32 characters; interval must be a duration of at least 10s, such as 1m | ",
		"\n| `openPeriods` | list of [object](#gate-specopenperiods) |  | at most 100 items | OpenPeriods are the periods",
		"\n### Gate spec.openPeriods\n",
		"\n### Gate spec.closePeriods.calendar.configMapRef\n",
		"\n| `namespaceSelector` | [label selector](",
		"\n| `perMinute` | integer |  | 1 to 60000 | ",
		"\n| `conditions` | list of [Condition](",
		"\n- openPeriods need default: closed",
		"has the columns `OPENED`, `REASON`, `NEXT`, `HELD`, `AGE`, `READY`, `STATUS`, `SUSPENDED` (with `-o wide`), `MODE` (with `-o wide`), `MESSAGE` (with `-o wide`).",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}
