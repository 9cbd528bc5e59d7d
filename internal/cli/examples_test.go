package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// shellWords matches the words of a command line. Quoted words may contain blanks.
var shellWords = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"']+`)

// parses checks that a line is a command whose flags exist.
func parses(t *testing.T, where, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " | ")
	line, _, _ = strings.Cut(line, " > ")
	line, _, _ = strings.Cut(line, " #")
	args := shellWords.FindAllString(strings.TrimSpace(strings.TrimPrefix(line, "kubectl gate")), -1)
	cmd, rest, err := Command().Find(args)
	if err != nil || cmd.Name() == "kubectl-gate" && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		t.Errorf("%s: %s: there is no such command: %v", where, line, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%s: %s: %v", where, line, err)
	}
}

func TestExamplesOfEachCommandParse(t *testing.T) {
	n := 0
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			check(sub)
		}
		if cmd.Runnable() && cmd.Example == "" && cmd.Name() != "help" && cmd.Name() != "version" && cmd.Parent() != nil && cmd.Parent().Name() != "completion" {
			t.Errorf("%s has no example", cmd.Name())
		}
		for line := range strings.Lines(cmd.Example) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "kubectl gate") {
				n++
				parses(t, cmd.Name(), line)
			}
		}
	}
	check(Command())
	if n < 10 {
		t.Errorf("only %d examples", n)
	}
}

func TestDocumentedCommandsExist(t *testing.T) {
	n := 0
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, block := range regexp.MustCompile("(?s)\n```(?:sh|console)\n(.*?)```").FindAllStringSubmatch(strings.ReplaceAll(string(page), "\\\n", " "), -1) {
			for line := range strings.Lines(block[1]) {
				if line = strings.TrimPrefix(strings.TrimSpace(line), "$ "); strings.HasPrefix(line, "kubectl gate ") && !strings.Contains(line, "[") && !strings.Contains(line, "...") {
					n++
					parses(t, path, line)
				}
			}
		}
		return nil
	})
	if err != nil || n < 20 {
		t.Errorf("%d commands, %v", n, err)
	}
}
