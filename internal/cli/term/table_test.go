package term

import (
	"reflect"
	"strings"
	"testing"
)

func TestWideTableIsTruncated(t *testing.T) {
	headers := []string{"NAME", "REASON", "NEXT (UTC)", "REQUESTED BY"}
	row := []string{"production", "exception production-20261126-045936", "2026-11-26 22:00 (in 16h)", "alice"}
	for columns, want := range map[int]string{
		120: "production   exception production-20261126-045936   2026-11-26 22:00 (in 16h)   alice",
		80:  "production   exception production-20261126-…   2026-11-26 22:00 (in 16h)   alice",
		60:  "production   exception p…   2026-11-26 22:00 (in 16h)   alice",
	} {
		table := &Table{widths: []int{10, 36, 25, 5}, headers: headers}
		table.fit(columns)
		line := ""
		for i, cell := range row {
			line += cut(cell, table.widths[i]) + "   "
		}
		line = strings.TrimRight(line, " ")
		if line != want {
			t.Errorf("%d columns: %q, want %q", columns, line, want)
		}
	}
	if got := cut("\x1b[31mclosed\x1b[0m", 3); got != "\x1b[31mclosed\x1b[0m" {
		t.Errorf("%q", got)
	}
	narrow := &Table{widths: []int{5, 5}, headers: []string{"A", "B"}}
	if narrow.fit(4); !reflect.DeepEqual(narrow.widths, []int{5, 5}) {
		t.Errorf("%v", narrow.widths)
	}
}
