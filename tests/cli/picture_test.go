package cli

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// columns is the width of the terminal in the picture.
const columns = 112

// colored matches a colored text in the output of a program.
var colored = regexp.MustCompile("\x1b\\[([0-9]+)m([^\x1b]*)\x1b\\[0m")

// inks has the colors of the picture, by SGR code.
var inks = map[string]string{"31": "#ff8a80", "32": "#7ee787", "33": "#f2cc60", "1": "#ffffff", "2": "#8b949e", "": "#e6edf3"}

// span renders a text from a column on, as wide as in a terminal.
func span(column, line int, ink, text string) string {
	const letter, height = 8, 20
	return fmt.Sprintf(`<text x="%d" y="%d" textLength="%d" fill="%s">%s</text>`+"\n", 16+letter*column, 60+height*line, letter*len([]rune(text)), ink, strings.ReplaceAll(html.EscapeString(text), " ", "\u00a0"))
}

// picture renders the content of a terminal.
func picture(shown string) string {
	lines := strings.Split(strings.TrimRight(shown, "\n"), "\n")
	var drawn strings.Builder
	for i, line := range lines {
		column := 0
		put := func(ink, text string) {
			if inks[ink] == "" {
				panic("no ink is defined for color " + ink)
			}
			if strings.TrimSpace(text) != "" {
				drawn.WriteString(span(column, i, inks[ink], text))
			}
			column += len([]rune(text))
		}
		for found := colored.FindStringSubmatchIndex(line); found != nil; found = colored.FindStringSubmatchIndex(line) {
			put("", line[:found[0]])
			put(line[found[2]:found[3]], line[found[4]:found[5]])
			line = line[found[1]:]
		}
		put("", line)
	}
	width, height := 32+8*columns, 60+20*len(lines)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="13">`+"\n", width, height, width, height) +
		fmt.Sprintf(`<rect width="%d" height="%d" rx="8" fill="#161b22"/>`+"\n", width, height) +
		`<circle cx="20" cy="20" r="6" fill="#ff5f57"/><circle cx="40" cy="20" r="6" fill="#febc2e"/><circle cx="60" cy="20" r="6" fill="#28c840"/>` + "\n" + drawn.String() + "</svg>\n"
}

// wordsOf returns the words of a picture, without those that differ each day. Where the terminal cuts a word depends on the width of the
// times.
func wordsOf(svg string) []string {
	text := html.UnescapeString(regexp.MustCompile(`<[^>]*>|[^\s\x{a0}]*…`).ReplaceAllString(svg, " "))
	words := regexp.MustCompile(`[A-Za-z][A-Za-z/.:\[\]-]{2,}`).FindAllString(text, -1)
	return slices.DeleteFunc(words, func(word string) bool { return regexp.MustCompile(`^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)$`).MatchString(word) })
}

func TestTerminalPictureIsCurrent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heldApps()
	today := metav1.Now()
	night, morning := today.UTC().Add(6*time.Hour).Format("15:00"), today.UTC().Add(13*time.Hour).Format("15:00") // closed at any time of the current day
	from, until := metav1.NewTime(today.AddDate(0, 0, 3)), metav1.NewTime(today.AddDate(0, 0, 5))
	w.Gate("nights", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{{Name: "nights", Start: &night, End: &morning}}})
	w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "audit", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}}}})
	for _, name := range []string{"nights", "staging"} {
		w.Decided(w.ReadGate(name))
	}
	shown := ""
	for _, args := range []string{"list --timeline --days 7", "why kustomization/apps"} {
		shown += "$ kubectl gate " + args + "\n" + w.inTerminalOf(columns, nil, strings.Fields(args)...) + "\n"
	}
	drawn := picture(strings.ReplaceAll(strings.ReplaceAll(shown, "\r\n", "\n"), w.Namespace, "shop"))
	path := filepath.Join(harness.Root(), "docs", "images", "terminal.svg")
	if *update {
		w.Must(os.WriteFile(path, []byte(drawn), 0o600))
	}
	kept, err := os.ReadFile(path)
	w.Must(err)
	if got, want := wordsOf(string(kept)), wordsOf(drawn); !slices.Equal(got, want) || len(want) < 30 {
		t.Errorf("docs/images/terminal.svg shows\n%q\nbut a terminal\n%q\nrun go test ./tests/cli -run Picture -update", got, want)
	}
}
