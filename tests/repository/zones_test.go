package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// looksUp lists the packages of the product that may look up time zones, with the reason why they do not read those of the machine.
var looksUp = map[string]string{
	"github.com/google/cel-go/common/stdlib": "internal/expression declares its functions again",
	"github.com/google/cel-go/common/types":  "the same",
	"github.com/robfig/cron/v3":              "internal/schedule refuses expressions with a time zone",
}

func TestProductDoesNotReadHostTimeZones(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{if not .Standard}}{{.ImportPath}} {{.Dir}} {{join .GoFiles " "}}{{end}}`, ".", "./cmd/...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		for _, file := range fields[2:] {
			source, err := os.ReadFile(filepath.Join(fields[1], file))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(source), "time.LoadLocation(") || strings.Contains(string(source), `"time/tzdata"`) {
				found = append(found, fields[0])
			}
		}
	}
	for _, path := range slices.Compact(found) {
		if looksUp[path] == "" {
			t.Errorf("%s reads the time zones of the machine, use internal/tz", path)
		}
	}
	for path := range looksUp {
		if !slices.Contains(found, path) {
			t.Errorf("%s is in the list, but does not look up time zones", path)
		}
	}
}
