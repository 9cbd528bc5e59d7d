// Package docs runs the commands on pages, as a reader would, and compares their output with the pages.
package docs

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// Reader is a user who follows pages.
type Reader struct {
	// Kubeconfig is the path of the user's kubeconfig.
	Kubeconfig string
	// Folder is where commands run. A Session without one creates a folder with a copy of config.
	Folder string
	// Path has folders that precede those of the tools in PATH.
	Path []string
	// Env has additional variables, as NAME=VALUE.
	Env []string
	// Words replaces words of the page with those of the test, nil for none.
	Words *strings.Replacer
}

// command returns a command of the reader.
func (r Reader) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // a command of the page
	path := append(append([]string{}, r.Path...), filepath.Join(harness.Tools(), "bin"), os.Getenv("PATH"))
	cmd.Dir = r.Folder
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+r.Kubeconfig, "TZ=UTC", "PATH="+strings.Join(path, ":")), r.Env...)
	return cmd
}

// Bash runs a script and returns its output. It stops at the first command that fails.
func (r Reader) Bash(ctx context.Context, script string) (string, error) {
	out, err := r.command(ctx, "bash", "-euo", "pipefail", "-c", script).CombinedOutput()
	return string(out), err
}

// Session is the shell of a reader. Its variables last from one block to the next. It stops at the first command that fails.
type Session struct {
	Reader
	testing.TB
	shell  *exec.Cmd
	input  io.Writer
	ends   *bufio.Reader
	errors bytes.Buffer
	output string
}

// Start starts a session with a POSIX shell, for as long as the test runs.
func Start(t testing.TB, r Reader) *Session {
	t.Helper()
	if r.Folder == "" {
		r.Folder = t.TempDir()
		if err := os.CopyFS(filepath.Join(r.Folder, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))); err != nil {
			t.Fatal(err)
		}
	}
	s := &Session{Reader: r, TB: t, output: filepath.Join(t.TempDir(), "output")}
	ends, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.ends = bufio.NewReader(ends)
	s.shell = r.command(t.Context(), "sh", "-eu")
	s.shell.Stderr, s.shell.ExtraFiles = &s.errors, []*os.File{writes}
	if s.input, err = s.shell.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.shell.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writes.Close()
	t.Cleanup(func() { _ = s.shell.Wait() }) // the end of the context has terminated it
	return s
}

// Run runs commands and returns their output.
func (s *Session) Run(commands string) (string, error) {
	if _, err := fmt.Fprintf(s.input, "{\n%s\n} > '%s' 2>&1 < /dev/null\necho >&3\n", commands, s.output); err != nil {
		return "", fmt.Errorf("the shell has ended: %w", err)
	}
	_, err := s.ends.ReadString('\n')
	if err != nil {
		err = fmt.Errorf("the shell has ended: %s", &s.errors)
	}
	raw, readErr := os.ReadFile(s.output)
	if err == nil {
		err = readErr
	}
	return string(raw), err
}

// named matches the first line of a block with the content of a file.
var named = regexp.MustCompile(`^(?:#|//) (\S+\.[a-z]+)\n`)

// Follow follows the blocks of a page, and returns the output of their commands. It writes blocks that begin with the name of a file to
// that file. The commands of sh must succeed and print the text block below, if there is one. The commands of console must print what they
// show. Those that only read may take a moment. Follow ignores other blocks.
func (s *Session) Follow(blocks ...markdown.Block) (printed string) {
	s.Helper()
	commands := 0
	for i, b := range blocks {
		text := s.replaced(b.Text)
		switch b.Language {
		case "sh":
			commands++
			out, err := s.Run(text)
			if err != nil {
				s.Fatalf("%s%v: %s", text, err, out)
			}
			if printed += out; i+1 < len(blocks) && blocks[i+1].Language == "text" && out != s.replaced(blocks[i+1].Text) {
				s.Errorf("%sprints\n%s\nbut the page shows\n%s", text, out, blocks[i+1].Text)
			}
		case "console":
			for _, c := range Commands(text) {
				commands++
				printed += s.shows(c)
			}
		default:
			s.Write(text)
		}
	}
	if commands == 0 {
		s.Error("the page shows no commands")
	}
	return printed
}

func (s *Session) replaced(text string) string {
	if s.Words == nil {
		return text
	}
	return s.Words.Replace(text)
}

// Write writes a block to the file that its first line names, if any.
func (s *Session) Write(text string) {
	s.Helper()
	found := named.FindStringSubmatch(text)
	if found == nil {
		return
	}
	path := filepath.Join(s.Folder, found[1])
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// shows runs a command until it prints what the page shows, but only once if it changes something.
func (s *Session) shows(c Command) (printed string) {
	s.Helper()
	run := func() (err error) {
		if printed, err = s.Run("(\n" + c.Text + "\n) || :"); err != nil { // the page may show a refusal
			return harness.Permanent(fmt.Errorf("%s\n%w: %s", c.Text, err, printed))
		}
		if Stable(printed) != Stable(c.Prints) {
			return fmt.Errorf("%s\nprints\n%s\nbut the page shows\n%s", c.Text, printed, c.Prints)
		}
		return nil
	}
	err := run()
	if err != nil && !c.Changes() {
		err = harness.Eventually(s.Context(), harness.Patience, c.Text, run)
	}
	if err != nil {
		s.Error(err)
	}
	return printed
}
