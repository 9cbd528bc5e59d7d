package term

import (
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Table prints rows under headers, as kubectl does. It keeps the column widths between calls of Print, so that later rows line up with
// earlier rows.
type Table struct {
	w         io.Writer
	noHeaders bool
	Wide      bool
	headers   []string
	widths    []int
	printed   bool
}

const (
	// columnGap separates two columns.
	columnGap = 3
	// minColumnWidth is the width to which a column may be cut.
	minColumnWidth = 12
)

// Print prints rows. The first call also prints the headers. In a terminal, it truncates the widest columns until rows fit, except with
// -o wide.
func (t *Table) Print(headers []string, rows ...[]string) error {
	if !t.printed {
		t.headers = headers
	}
	if !t.printed && !t.noHeaders {
		rows = append([][]string{headers}, rows...)
	}
	t.printed = true
	for _, row := range rows {
		for i, cell := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], visible(cell))
		}
	}
	if columns := Width(t.w); columns > 0 && !t.Wide {
		t.fit(columns)
	}
	var text strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			cell = cut(cell, t.widths[i])
			line += cell
			if i < len(row)-1 {
				line += strings.Repeat(" ", max(0, t.widths[i]-visible(cell))+columnGap)
			}
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(t.w, text.String())
	return err
}

// fit narrows the widest columns until a row fits. Columns with times keep their width.
func (t *Table) fit(columns int) {
	for {
		total, widest := -columnGap, -1
		for i, width := range t.widths {
			total += width + columnGap
			isTime := i < len(t.headers) && strings.Contains(t.headers[i], "(")
			if !isTime && width > minColumnWidth && (widest < 0 || width > t.widths[widest]) {
				widest = i
			}
		}
		if total <= columns || widest < 0 {
			return
		}
		t.widths[widest]--
	}
}

// cut shortens a text to a number of columns. It never shortens colored texts, because they are short.
func cut(text string, columns int) string {
	if visible(text) <= columns || strings.Contains(text, "\x1b") {
		return text
	}
	return string([]rune(text)[:columns-1]) + "…"
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// visible returns how many columns a text takes.
func visible(text string) int { return utf8.RuneCountInString(escapes.ReplaceAllString(text, "")) }

// Width returns the number of columns of a terminal, 0 if w is not a terminal.
func Width(w io.Writer) int {
	file, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}
