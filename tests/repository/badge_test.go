package repository

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/images/tested.svg, from what docs/reference/versions.md says")

var release = regexp.MustCompile(`\b([0-9]+)\.([0-9]+)\b`)

// ran returns the versions in a cell of docs/reference/versions.md about test runs, without those that were not run.
func ran(cell string) string {
	var minors []int
	major := ""
	for sentence := range strings.SplitSeq(cell, ". ") {
		if strings.Contains(sentence, "not run") {
			continue
		}
		for _, found := range release.FindAllStringSubmatch(sentence, -1) {
			minor, _ := strconv.Atoi(found[2])
			major, minors = found[1], append(minors, minor)
		}
	}
	slices.Sort(minors)
	minors = slices.Compact(minors)
	if n := len(minors); n > 2 && minors[n-1]-minors[0] == n-1 {
		return fmt.Sprintf("%s.%d–%s.%d", major, minors[0], major, minors[n-1])
	}
	var all []string
	for _, minor := range minors {
		all = append(all, fmt.Sprintf("%s.%d", major, minor))
	}
	return strings.Join(all, ", ")
}

// badge returns a picture with the tested versions.
func badge(right string) string {
	const left, perLetter, margin = "tested with", 6.4, 8
	widthOf := func(text string) int { return int(perLetter*float64(len([]rune(text)))) + 2*margin }
	l, r := widthOf(left), widthOf(right)
	text := func(x, width int, text string) string {
		return fmt.Sprintf("  <text x=\"%d\" y=\"14\" textLength=\"%d\">%s</text>\n", x+margin, width-2*margin, text)
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"20\" role=\"img\" aria-label=\"%s %s\">\n", l+r, left, right) +
		fmt.Sprintf("  <clipPath id=\"round\"><rect width=\"%d\" height=\"20\" rx=\"3\"/></clipPath>\n", l+r) +
		fmt.Sprintf("  <g clip-path=\"url(#round)\"><rect width=\"%d\" height=\"20\" fill=\"#555\"/><rect x=\"%d\" width=\"%d\" height=\"20\" fill=\"#0b5fa5\"/></g>\n", l, l, r) +
		"  <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">\n" + text(0, l, left) + text(l, r, right) + "  </g>\n</svg>\n"
}

func TestBadgeReportsLastRun(t *testing.T) {
	page := strings.Join(linesOf(t, "docs/reference/versions.md"), "\n")
	var parts []string
	for _, name := range []string{"Kubernetes", "Flux", "cert-manager"} {
		row := regexp.MustCompile(`(?m)^\| ` + name + ` \| [^|]+ \| ([^|]+) \|$`).FindStringSubmatch(page)
		if row == nil || ran(row[1]) == "" {
			t.Fatalf("docs/reference/versions.md has no row about the tests with %s", name)
		}
		parts = append(parts, name+" "+ran(row[1]))
	}
	want, path := badge(strings.Join(parts, " · ")), filepath.Join(root, "docs", "images", "tested.svg")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("run make generate: docs/images/tested.svg differs from docs/reference/versions.md, %v", err)
	}
}
