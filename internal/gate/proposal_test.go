package gate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// proposed are the types of exceptions of proposal 003: whether the Gate is out of its default state at a time,
// for times in its own periods and in those of the exception.
var proposed = map[string]func(own, exceptional bool) bool{
	"extend":  func(own, exceptional bool) bool { return own || exceptional },
	"suspend": func(own, exceptional bool) bool { return own && !exceptional },
	"replace": func(_, exceptional bool) bool { return exceptional },
}

// proposalTable returns the table of docs/guides/exceptions.md that maps the types of proposal 003: by type, the cells for
// Gates that are closed and opened by default.
func proposalTable(t *testing.T) map[string][2]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "exceptions.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| proposal 003 | closed by default | opened by default |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string][2]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\w+) \| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(table+"\n", -1) {
		rows[row[1]] = [2]string{row[2], row[3]}
	}
	return rows
}

// fromCell returns an exception with the fields that a cell names, with a period from 12:00 to 15:00.
func fromCell(t *testing.T, cell string) *v1alpha1.GateException {
	t.Helper()
	e, period := exception(valid("2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z")), weekly("exceptional", "12:00", "15:00")
	for _, field := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		switch name, value, _ := strings.Cut(field[1], ": "); name {
		case "openPeriods":
			opensIn(period)(e)
		case "closePeriods":
			closesIn(period)(e)
		case "default":
			byDefault(v1alpha1.State(value))(e)
		default:
			t.Fatalf("unknown field %q", field[1])
		}
	}
	if errs := timetable.ValidateException(e); len(errs) > 0 {
		t.Fatal(errs)
	}
	return e
}

func TestProposalTypesAreMappedInDocs(t *testing.T) {
	own := weekly("own", "10:00", "13:00")
	gates := [2]*v1alpha1.Gate{production(closed(windows(own))), production(opened(closePeriods(closing(own, ""))))}
	states := [2][2]v1alpha1.State{{isClosed, isOpened}, {isOpened, isClosed}} // of each Gate: its default, the other one
	table := proposalTable(t)
	if len(table) != len(proposed) {
		t.Fatalf("the table has the rows %v", table)
	}
	for name, isOut := range proposed {
		for i, cell := range table[name] {
			t.Run(name+", "+string(gates[i].Spec.Default)+" by default", func(t *testing.T) {
				e := fromCell(t, cell)
				for hour := range 24 {
					want := states[i][0]
					if isOut(10 <= hour && hour < 13, 12 <= hour && hour < 15) {
						want = states[i][1]
					}
					now := utc("2026-11-23T00:00:00Z").Add(time.Duration(hour) * time.Hour)
					if d := gate.Decide(gates[i], now, e); d.State != want {
						t.Errorf("with %s, the Gate is %s at %02d:00, want %s", cell, d.State, hour, want)
					}
				}
			})
		}
	}
}
