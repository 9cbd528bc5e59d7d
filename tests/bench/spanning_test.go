package main

import (
	"math"
	"reflect"
	"testing"
)

func TestWhatANamespaceAddsToMemoryIsToldWithoutItsTargets(t *testing.T) {
	open := memories{20: {heap: 10 * mebi, resident: 11 * mebi}, 1044: {heap: 12 * mebi, resident: 13 * mebi}}
	held := memories{20: {heap: 20 * mebi, resident: 21 * mebi}, 1044: {heap: 25 * mebi, resident: 26 * mebi}}
	r := &result{}
	r.byNamespaces(5000, open, held)
	if got, want := r.tables[0].rows, [][]string{{"20", "10", "20", "11", "21"}, {"1044", "12", "25", "13", "26"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(r.figures) != 2 || math.Abs(r.figures[0].value-2) > 1e-9 || math.Abs(r.figures[1].value-5) > 1e-9 {
		t.Errorf("got %+v, want 2 KiB and 5 KiB", r.figures)
	}
	if want := []miss{{"Heap per namespace, held: 5 KiB, the limit is 4.", false}}; !reflect.DeepEqual(r.missed, want) {
		t.Errorf("got %v, want %v", r.missed, want)
	}
	quick := &result{}
	quick.byNamespaces(5000, open, memories{})
	if want := [][]string{{"20", "10", "", "11", ""}, {"1044", "12", "", "13", ""}}; !reflect.DeepEqual(quick.tables[0].rows, want) || len(quick.figures) != 1 {
		t.Errorf("nothing was held: %v, %v", quick.tables[0].rows, quick.figures)
	}
}

func TestAChangeOfNamespacesMayCostNoMoreThanItChanges(t *testing.T) {
	cost := func(applied, status, locks float64) usage {
		all := calls{{"PATCH", "gates", "status"}: 1}
		for call, n := range (calls{{"APPLY", "kustomizations", ""}: applied, {"PATCH", "kustomizations", "status"}: status, {"PUT", "gatelocks", ""}: locks}) {
			if n > 0 {
				all[call] = n
			}
		}
		return usage{calls: all}
	}
	for name, c := range map[string]struct {
		targets int
		locks   float64
		used    usage
		row     []string
		missed  string
	}{
		"what it changes":         {5, 0, cost(5, 5, 0), []string{"it", "5", "5", "5", "1", "0", "0", "0", "0"}, ""},
		"one target too many":     {5, 0, cost(6, 6, 0), []string{"it", "5", "6", "6", "1", "0", "0", "0", "0"}, "A table, it: 2.4 writes per target, the limit is 2."},
		"the GateLocks of a Gate": {5, 2, cost(5, 5, 2), []string{"it", "5", "5", "5", "1", "2", "0", "0", "0"}, ""},
		"a GateLock too many":     {5, 0, cost(5, 5, 1), []string{"it", "5", "5", "5", "1", "1", "0", "0", "0"}, "A table, it: 1 writes of GateLocks, the limit is 0."},
		"nothing":                 {0, 0, usage{}, []string{"it", "0", "0", "0", "0", "0", "0", "0", "0"}, ""},
		"a write without a cause": {0, 0, cost(0, 0, 0), []string{"it", "0", "0", "0", "1", "0", "0", "0", "0"}, "A table, it: 1 writes, the limit is none: 1 PATCH gates/status."},
	} {
		t.Run(name, func(t *testing.T) {
			r := &result{}
			ch := &changes{bench: &bench{}, result: r, table: table{title: "A table"}}
			ch.note("it", c.targets, c.locks, c.used)
			if !reflect.DeepEqual(ch.table.rows, [][]string{c.row}) {
				t.Errorf("got %v, want %v", ch.table.rows, c.row)
			}
			if c.missed == "" && len(r.missed) > 0 || c.missed != "" && !reflect.DeepEqual(r.missed, []miss{{c.missed, true}}) {
				t.Errorf("got %v, want %q", r.missed, c.missed)
			}
		})
	}
}
