package cli

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var update = flag.Bool("update", false, "write what commands print into testdata, from where docs/cli.md has it")

// shows runs the commands of a file in testdata, each in a line that begins with "$ ", and expects that they print what the file has.
// Times and the name of the namespace may be others: the file has flux-system.
func (w *world) shows(name string) {
	w.Helper()
	path := filepath.Join("testdata", name+".txt")
	want, err := os.ReadFile(path)
	w.Must(err)
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		shell := exec.CommandContext(w.Context(), "bash", "-c", strings.ReplaceAll(command, "flux-system", w.Namespace)) //nolint:gosec // the commands of a file of ours
		var both limited
		shell.Stdout, shell.Stderr = &both, &both
		w.run(shell)
		got.WriteString(line + strings.ReplaceAll(string(both), w.Namespace, "flux-system"))
	}
	if *update {
		w.Must(os.WriteFile(path, []byte(got.String()), 0o600))
		return
	}
	if stable(got.String()) != stable(string(want)) {
		w.Errorf("%s: the commands print\n%s\nand the file has\n%s", path, got.String(), want)
	}
}

var (
	instants  = regexp.MustCompile(`\b[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+( ?[A-Z]{1,4}\b)?)?`)
	distances = regexp.MustCompile(`\b[0-9]+[smhd]( ago)?\b`)
	versions  = regexp.MustCompile(`\(devel\)|\bv[0-9]+\.[0-9]+\.[0-9]+[-+.0-9a-z]*|\b20[0-9]{2}[a-z]\b`)
	blanks    = regexp.MustCompile(` {2,}|-{3,}`)
)

// stable returns a text without what differs each time: times, versions, and the width of columns, which depends on them.
func stable(text string) string {
	text = versions.ReplaceAllString(text, "<version>")
	return blanks.ReplaceAllString(distances.ReplaceAllString(instants.ReplaceAllString(text, "<time>"), "<distance>"), "  ")
}
