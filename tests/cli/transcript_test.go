package cli

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var update = flag.Bool("update", false, "write what commands print into testdata, from where docs/reference/cli.md has it")

// shows runs the commands of a file in testdata, each in a line that begins with "$ ", and expects that they print what the file has.
// Times and the name of the namespace may be others: the file has flux-system.
func (w *world) shows(name string) {
	w.Helper()
	path := filepath.Join("testdata", name+".txt")
	want, err := os.ReadFile(path)
	w.Must(err)
	got := w.transcript(string(want))
	if *update {
		w.Must(os.WriteFile(path, []byte(got), 0o600))
		return
	}
	if stable(got) != stable(string(want)) {
		w.Errorf("%s: the commands print\n%s\nand the file has\n%s", path, got, want)
	}
}

// transcript runs the commands of a text, each in a line that begins with "$ ", and returns them with what they print.
func (w *world) transcript(text string) string {
	w.Helper()
	var got strings.Builder
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		shell := exec.CommandContext(w.Context(), "bash", "-c", strings.ReplaceAll(command, "flux-system", w.Namespace))
		var both limited
		shell.Stdout, shell.Stderr = &both, &both
		w.run(shell)
		got.WriteString(line + strings.ReplaceAll(string(both), w.Namespace, "flux-system"))
	}
	return got.String()
}

var (
	instants  = regexp.MustCompile(`\b[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+( ?[A-Z]{1,4}\b)?)?`)
	distances = regexp.MustCompile(`\b([0-9]+[smhd])+( ago)?\b`)
	versions  = regexp.MustCompile(`\(devel\)|\bv[0-9]+\.[0-9]+\.[0-9]+[-+.0-9a-z]*|\b20[0-9]{2}[a-z]\b`)
	commits   = regexp.MustCompile(`\bsha1:[0-9a-f]{8,}\b`)
	blanks    = regexp.MustCompile(` {2,}|-{3,}`)
)

// stable returns a text without what differs each time: times, versions, commits, and the width of columns, which depends on them.
func stable(text string) string {
	text = commits.ReplaceAllString(versions.ReplaceAllString(text, "<version>"), "<commit>")
	return blanks.ReplaceAllString(distances.ReplaceAllString(instants.ReplaceAllString(text, "<time>"), "<distance>"), "  ")
}
