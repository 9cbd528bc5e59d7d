package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/tests/markdown"
)

// block is a code block of a page.
type block struct{ language, text string }

// blocksOf returns the code blocks of a page, in its namespace.
func (w *world) blocksOf(page string) (blocks []block) {
	w.Helper()
	for _, b := range markdown.BlocksOf(w, "docs/"+page) {
		blocks = append(blocks, block{b.Language, strings.ReplaceAll(b.Text, "flux-system", w.Namespace)})
	}
	return blocks
}

// write writes a block to the file that its first line names, below a folder.
func (b block) write(w *world, folder string) (name string) {
	w.Helper()
	first, rest, _ := strings.Cut(b.text, "\n")
	name, ok := strings.CutPrefix(first, "# ")
	if !ok {
		w.Fatalf("a manifest without the name of its file: %s", b.text)
	}
	path := filepath.Join(folder, name)
	w.Must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.Must(os.WriteFile(path, []byte(rest), 0o600))
	return name
}

// in runs commands with bash in a folder, as GitHub does.
func (w *world) in(folder, commands string) said {
	w.Helper()
	shell := exec.CommandContext(w.Context(), "bash", "-e", "-c", commands)
	shell.Dir = folder
	return w.run(shell)
}

// commandsOf returns the commands of a block, each with what the page says that it prints.
func (b block) commandsOf() (commands [][2]string) {
	for _, part := range strings.Split("\n"+b.text, "\n$ ")[1:] {
		command, printed, _ := strings.Cut(part, "\n")
		commands = append(commands, [2]string{command, printed})
	}
	return commands
}

// prints runs a command in a folder, and returns an error if it does not print what the page has.
func (w *world) prints(folder, command, want string) error {
	w.Helper()
	got := w.in(folder, command)
	if printed := stable(got.out + got.errOut); strings.TrimSpace(printed) != strings.TrimSpace(stable(want)) {
		return fmt.Errorf("%s\nprints\n%s\nand the page has\n%s", command, got.out+got.errOut, want)
	}
	return nil
}

var (
	manyBlanks = regexp.MustCompile(` {2,}`)
	lastBlanks = regexp.MustCompile(`(?m) +$`)
)

// narrow returns a text without the widths of columns, which depend on the name of the namespace.
func narrow(text string) string {
	return manyBlanks.ReplaceAllString(lastBlanks.ReplaceAllString(text, ""), "  ")
}

func TestEveryCommandOfThePageOnPreviewsPrintsWhatItSays(t *testing.T) {
	t.Parallel()
	w, folder, ran := newWorld(t), t.TempDir(), 0
	for _, b := range w.blocksOf("guides/preview.md") {
		switch b.language {
		case "yaml":
			if b.write(w, folder) == "clusters/production/gate.yaml" {
				if got := w.in(folder, "kubectl apply -f clusters/production"); got.code != 0 {
					t.Fatalf("%+v", got)
				}
				w.Decided(w.ReadGate("every-night"))
			}
		case "console":
			command, want, _ := strings.Cut(strings.TrimPrefix(b.text, "$ "), "\n")
			got := w.in(folder, command)
			if narrow(got.out) != narrow(want) || got.errOut != "" {
				t.Errorf("%s\nprints\n%s%s\nand the page has\n%s", command, got.out, got.errOut, want)
			}
			ran++
		case "sh":
			if got := w.in(folder, b.text); got != (said{}) {
				t.Errorf("%s\n%+v", b.text, got)
			}
			ran++
		default:
			t.Errorf("no test runs the %s on the page: %s", b.language, b.text)
		}
	}
	for _, file := range []string{"closed.ics", "every-night.svg"} {
		if content, err := os.ReadFile(filepath.Join(folder, file)); err != nil || !strings.Contains(string(content), "every-night") {
			t.Errorf("%s: %v: %s", file, err, content)
		}
	}
	if ran < 6 {
		t.Errorf("only %d blocks with commands", ran)
	}
}

// workflow is what a workflow of GitHub does, as far as it matters here.
type workflow struct {
	On          map[string]any
	Permissions map[string]string
	Jobs        map[string]struct {
		Steps []struct {
			Name, Uses, Run string
			Env             map[string]string
		}
	}
}

func TestTheWorkflowOnThePageComparesAPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := filepath.Join(t.TempDir(), "repository")
	var flow workflow
	for _, b := range append(w.blocksOf("guides/preview.md"), w.blocksOf("guides/pull-request-check.md")...) {
		if b.language == "yaml" && strings.HasPrefix(b.write(w, root), ".github/") {
			// YAML 1.1 takes the key on for true.
			w.Must(yaml.UnmarshalStrict([]byte(strings.Replace(b.text, "\non:", "\n\"on\":", 1)), &map[string]any{}))
			w.Must(yaml.Unmarshal([]byte(strings.Replace(b.text, "\non:", "\n\"on\":", 1)), &flow))
		}
	}
	steps := flow.Jobs["diff"].Steps
	if len(steps) != 4 || flow.On["pull_request"] == nil || flow.Permissions["pull-requests"] != "write" || len(flow.Permissions) != 2 {
		t.Fatalf("%+v", flow)
	}
	compare := steps[2]
	if compare.Name != "Compare" || !strings.Contains(compare.Run, "kubectl gate diff") || compare.Env["BASE"] != "${{ github.event.pull_request.base.sha }}" || strings.Contains(compare.Run, "${{") {
		t.Fatalf("%+v", compare)
	}
	git := "git -c user.name=a -c user.email=a@example.com "
	prepare := "git init -q . && git add clusters && " + git + "commit -qm base && git rev-parse HEAD"
	base := w.in(root, prepare)
	if base.code != 0 {
		t.Fatalf("%+v", base)
	}
	compared := func() said {
		return w.in(root, "export KUBECONFIG=/nowhere BASE="+strings.TrimSpace(base.out)+"\ngit worktree remove --force ../base 2>/dev/null || true\nset -e\n"+compare.Run+"\ncat comment.md")
	}
	if got := compared(); got.code != 0 || !strings.Contains(got.out, "```\nNo gate changes its state from ") {
		t.Errorf("without a change: %+v", got)
	}
	if got := w.in(root, "cp clusters/production/gate.yaml new && sed 's/22:00/23:00/' new > clusters/production/gate.yaml && rm new"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := compared(); got.code != 0 || strings.Count(got.out, "opened   closed   outside open periods, was open period nights") < 29 {
		t.Errorf("with a change: %+v", got)
	}
	if got := w.in(root, "sed -i s/closed/ajar/ clusters/production/gate.yaml"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := compared(); got.code == 0 || !strings.Contains(got.errOut, "clusters/production/gate.yaml: "+w.Namespace+"/every-night: spec.default: ") {
		t.Errorf("with a mistake: %+v", got)
	}
}
