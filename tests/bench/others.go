package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/tests/harness"
)

var others = scenario{
	name: "parts", title: "Parts of it", run: runOthers,
	about: `
The benchmarks of "go test -bench" of single parts: the schedule engine, what targets cost in the cache and in each round, with the lock of config/lock as well, what that
lock costs those who create objects, and webhooks. The checks of Flagger come last. The code says above each benchmark what its columns mean. A column whose name begins with "of-" is a
ratio to a yardstick in the same run.`,
}

// suite is a package with benchmarks.
type suite struct {
	title, folder string
	args          []string
}

var suites = []suite{
	{"Schedule engine", "./internal/schedule", []string{"-bench", ".", "-benchmem"}},
	{"Targets in the cache", "./internal/target", []string{"-bench", ".", "-benchmem"}},
	{"A round in which nothing is written", "./controllers", []string{"-bench", "."}},
	{"Lock", "./tests/lock", []string{"-bench", ".", "-benchtime", "1x"}},
	{"Flagger", "./tests/webhooks", []string{"-bench", "Flagger"}},
	{"Webhooks", "./tests/webhooks", []string{"-bench", "Webhook", "-benchtime", "1x"}},
}

func runOthers(ctx context.Context, b *bench) (*result, error) {
	r := &result{}
	for _, s := range suites {
		if b.quick && slices.Contains([]string{"./tests/lock", "./tests/webhooks"}, s.folder) {
			continue
		}
		t, err := b.runSuite(ctx, s)
		if err != nil {
			return nil, err
		}
		r.tables = append(r.tables, t)
	}
	return r, nil
}

// runSuite runs the benchmarks of a package, and returns a table of them.
func (b *bench) runSuite(ctx context.Context, s suite) (table, error) {
	args := append([]string{"test", "-run", "^$", "-timeout", "30m"}, s.args...)
	if b.quick {
		args = append(args, "-benchtime", "10x")
	}
	b.say("go test %s %s", strings.Join(s.args, " "), s.folder)
	cmd := exec.CommandContext(ctx, "go", append(args, s.folder)...) //nolint:gosec // a list of ours
	cmd.Dir, cmd.WaitDelay = harness.Root(), time.Minute
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return table{}, fmt.Errorf("%s: %w: %s", s.folder, err, out)
	}
	t, err := benchmarks(s.title, out)
	if err != nil {
		return t, fmt.Errorf("%s: %w", s.folder, err)
	}
	return t, nil
}

// benchmarks reads what "go test -bench" prints into a table: a row for each benchmark
// and a column for each unit.
func benchmarks(title string, output []byte) (table, error) {
	t := table{title: title, columns: []string{"benchmark"}}
	type measured map[string]float64
	var names []string
	rows := map[string]measured{}
	lines := bufio.NewScanner(bytes.NewReader(output))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || len(fields)%2 != 0 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(fields[0], "Benchmark")
		if end := strings.LastIndex(name, "-"); end > 0 {
			if _, err := strconv.Atoi(name[end+1:]); err == nil {
				name = name[:end]
			}
		}
		row := measured{}
		for i := 2; i < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return t, err
			}
			row[fields[i+1]] = value
			if !slices.Contains(t.columns, fields[i+1]) {
				t.columns = append(t.columns, fields[i+1])
			}
		}
		names, rows[name] = append(names, name), row
	}
	if len(names) == 0 {
		return t, fmt.Errorf("no benchmark in: %s", output)
	}
	for _, name := range names {
		cells := []any{"`" + name + "`"}
		for _, unit := range t.columns[1:] {
			if value, ok := rows[name][unit]; ok {
				cells = append(cells, value)
			} else {
				cells = append(cells, "")
			}
		}
		t.row(cells...)
	}
	return t, nil
}
