package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// scenario is a part of the page.
type scenario struct {
	// name is what -only takes, title the heading of the section.
	name, title string
	// about says what is measured and how to read it. It is true of every result.
	about string
	run   func(context.Context, *bench) (*result, error)
}

// scenarios are all of them, in the order of the page and of the run.
// The last ones make the cluster larger.
var scenarios = []scenario{throughput, repeated, fairness, restless, overlap, precision, idle, startup, memoryGrowth, growth, spanning, plugin, pages, others}

func names(of []scenario) string {
	var all []string
	for _, s := range of {
		all = append(all, s.name)
	}
	return strings.Join(all, ", ")
}

// result is what a scenario measured.
type result struct {
	figures []figure
	tables  []table
	plots   []plot
	missed  []miss
}

// figure is one measured value.
type figure struct {
	name  string
	unit  string
	value float64
	// meaning says what was measured, without a verdict.
	meaning string
}

// table is of values that belong together.
type table struct {
	title   string
	columns []string
	rows    [][]string
}

func (r *result) figure(name string, value float64, unit, meaning string) {
	r.figures = append(r.figures, figure{name: name, unit: unit, value: value, meaning: meaning})
}

func (t *table) row(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		switch cell := cell.(type) {
		case float64:
			row[i] = digits(cell)
		default:
			row[i] = fmt.Sprint(cell)
		}
	}
	t.rows = append(t.rows, row)
}

// digits writes a value with three digits that count.
func digits(value float64) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return "–"
	}
	if value == math.Trunc(value) || math.Abs(value) >= 1000 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(math.Abs(value)))))
	return strconv.FormatFloat(value, 'f', min(decimals, 6), 64)
}

// text is for who runs the bench.
func (r *result) text() string {
	var b strings.Builder
	for _, f := range r.figures {
		fmt.Fprintf(&b, "  %-60s %10s %-5s %s\n", f.name, digits(f.value), f.unit, f.meaning)
	}
	for _, t := range r.tables {
		fmt.Fprintf(&b, "  %s\n  %s\n", t.title, strings.Join(t.columns, " | "))
		for _, row := range t.rows {
			fmt.Fprintf(&b, "  %s\n", strings.Join(row, " | "))
		}
	}
	b.WriteString(r.misses())
	return b.String()
}
