package cli

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/fluxcd/gating-controller/tests/docs"
)

var update = flag.Bool("update", false, "write what commands print into testdata, from where docs/reference/cli.md has it")

// shows runs the commands of a file in testdata, each in a line that begins with "$ ", and expects the output in the file. Times may
// differ, and the namespace is flux-system in the file.
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
	if docs.Stable(got) != docs.Stable(string(want)) {
		w.Errorf("%s: the commands print\n%s\nbut the file has\n%s", path, got, want)
	}
}

// transcript runs the commands of a text, each in a line that begins with "$ ", and returns them with their output.
func (w *world) transcript(text string) string {
	w.Helper()
	var got strings.Builder
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		shell := exec.CommandContext(w.Context(), "bash", "-c", strings.ReplaceAll(command, "flux-system", w.Namespace))
		var both captured
		shell.Stdout, shell.Stderr = &both, &both
		w.run(shell)
		got.WriteString(line + strings.ReplaceAll(string(both), w.Namespace, "flux-system"))
	}
	return got.String()
}
