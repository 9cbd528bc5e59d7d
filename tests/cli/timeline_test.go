package cli

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestListTimelineHasBarPerGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed})
	w.Gate("web", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Decided(w.ReadGate("production"))
	w.Decided(w.ReadGate("web"))
	rows := func(name, state, character string, columns int) string {
		return fmt.Sprintf("%-10s   %s   %s\n", name, state, strings.Repeat(character, columns))
	}
	lines := func(columns uint16, args ...string) string {
		return strings.ReplaceAll(w.inTerminalOf(columns, nil, args...), "\r\n", "\n")
	}
	legend := "█ opened   ░ closed   ▒ both   | midnight UTC\n"
	if got, want := w.gate("list", "--timeline", "--no-headers"), rows("production", "closed", "░", 77)+rows("web", "opened", "█", 77); got != (output{out: want}) {
		t.Errorf("%+v\nwant\n%s", got, want)
	}
	got := lines(80, "list", "--timeline", "--color", "never")
	header, rest, _ := strings.Cut(got, "\n")
	if want := rows("production", "closed", "░", 57) + rows("web", "opened", "█", 57) + legend; rest != want || !strings.HasPrefix(header, "NAME         STATE    ") || strings.Count(header, "|") != 7 {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := lines(80, "list", "--timeline", "--until", "2d", "--color", "never"); strings.Count(strings.Split(got, "\n")[0], "|") != 2 {
		t.Errorf("%s", got)
	}
	if got := lines(80, "list", "web", "--timeline"); !strings.Contains(got, "\x1b[32m"+strings.Repeat("█", 63)+"\x1b[0m\n") {
		t.Errorf("without its color: %q", got)
	}
	narrow := lines(50, "list", "--timeline", "--color", "never")
	first, rest, _ := strings.Cut(narrow, "\n")
	if first != "warning: the terminal has 50 columns and a timeline needs 60: printing the table" || !strings.HasPrefix(rest, "NAME ") || strings.Contains(rest, "█") || !strings.Contains(rest, "REQUESTED BY") {
		t.Errorf("%s", narrow)
	}
}

func TestListTimelineHasExceptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Gate("web", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Decided(w.ReadGate("web"))
	now, start, end := metav1.Now(), "00:00", "24:00"
	w.Create(&v1alpha1.GateException{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.GateExceptionSpec{
		GateRef: v1alpha1.GateReference{Name: "web"}, TimeZone: "UTC", ValidFrom: now, ValidUntil: metav1.NewTime(now.AddDate(0, 0, 80)),
		ClosePeriods: []v1alpha1.Period{{Name: "all", Start: &start, End: &end}},
	}})
	if got := w.gate("list", "--timeline"); got.code != 0 || strings.Contains(strings.Split(got.out, "\n")[1], "█") || !strings.Contains(got.out, strings.Repeat("░", 80)) {
		t.Errorf("%+v", got)
	}
}

func TestTimelineRefusesConflictingFlags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for args, want := range map[string]string{
		"--days 3":                       "error: --days needs --timeline\n",
		"--until 3d":                     "error: --until needs --timeline\n",
		"--timeline --days 3 --until 3d": "error: --until and --days exclude each other: use one of them\n",
		"--timeline --until never":       "error: --until must be a time, and \"never\" cannot be read as a time: write 17:30, 5pm, tomorrow 08:00, monday 08:00, 2026-12-24, 2026-12-24 08:00, 2h, 3d or a time in RFC 3339\n",
		"--timeline --watch":             "error: --watch prints a table: omit --timeline\n",
		"--timeline -o json":             "error: --timeline cannot be combined with -o json: kubectl gate preview -o json prints the same data\n",
		"--timeline --days 0":            "error: --days 0: use a number from 1 to 366\n",
		"--timeline --days 10000":        "error: --days 10000: use a number from 1 to 366\n",
	} {
		if got := w.gate(append([]string{"list"}, strings.Fields(args)...)...); got != (output{errOut: want, code: 2}) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
