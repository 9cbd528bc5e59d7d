package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/tests/markdown"
)

// blocksOf returns the blocks of a page, for the namespace of the world.
func (w *world) blocksOf(page string) []markdown.Block {
	w.Helper()
	blocks := markdown.BlocksOf(w, "docs/"+page)
	for i := range blocks {
		blocks[i].Text = strings.ReplaceAll(blocks[i].Text, "flux-system", w.Namespace)
	}
	return blocks
}

// writes writes a block to the file that its first line names, in a folder.
func (w *world) writes(folder string, b markdown.Block) (name string) {
	w.Helper()
	first, rest, _ := strings.Cut(b.Text, "\n")
	name, ok := strings.CutPrefix(first, "# ")
	if !ok {
		w.Fatalf("a manifest without a file name: %s", b.Text)
	}
	path := filepath.Join(folder, name)
	w.Must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.Must(os.WriteFile(path, []byte(rest), 0o600))
	return name
}

// in runs commands with bash in a folder, as GitHub does.
func (w *world) in(folder, commands string) output {
	w.Helper()
	shell := exec.CommandContext(w.Context(), "bash", "-e", "-c", commands)
	shell.Dir = folder
	return w.run(shell)
}

var (
	manyBlanks = regexp.MustCompile(` {2,}`)
	lastBlanks = regexp.MustCompile(`(?m) +$`)
)

// narrow returns a text without the padding of columns, which depends on the name of the namespace.
func narrow(text string) string {
	return manyBlanks.ReplaceAllString(lastBlanks.ReplaceAllString(text, ""), "  ")
}

func TestPreviewPageCommandsPrintShownOutput(t *testing.T) {
	t.Parallel()
	w, folder := newWorld(t), t.TempDir()
	for _, b := range w.blocksOf("guides/preview.md") {
		switch b.Language {
		case "yaml":
			if w.writes(folder, b) == "clusters/production/gate.yaml" {
				if got := w.in(folder, "kubectl apply -f clusters/production"); got.code != 0 {
					t.Fatalf("%+v", got)
				}
				w.Decided(w.ReadGate("every-night"))
			}
		case "console":
			command, want, _ := strings.Cut(strings.TrimPrefix(b.Text, "$ "), "\n")
			got := w.in(folder, command)
			if narrow(got.out) != narrow(want) || got.errOut != "" {
				t.Errorf("%s\nprints\n%s%s\nbut the page shows\n%s", command, got.out, got.errOut, want)
			}
		case "sh":
			if got := w.in(folder, b.Text); got != (output{}) {
				t.Errorf("%s\n%+v", b.Text, got)
			}
		default:
			t.Errorf("no test runs the %s on the page: %s", b.Language, b.Text)
		}
	}
	for _, file := range []string{"closed.ics", "every-night.svg"} {
		if content, err := os.ReadFile(filepath.Join(folder, file)); err != nil || !strings.Contains(string(content), "every-night") {
			t.Errorf("%s: %v: %s", file, err, content)
		}
	}
}

// workflow has the fields of a GitHub workflow that matter here.
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

func TestWorkflowPageComparesPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := filepath.Join(t.TempDir(), "repository")
	var flow workflow
	for _, b := range append(w.blocksOf("guides/preview.md"), w.blocksOf("guides/pull-request-check.md")...) {
		if b.Language == "yaml" && strings.HasPrefix(w.writes(root, b), ".github/") {
			// YAML 1.1 parses the key on as true.
			w.Must(yaml.UnmarshalStrict([]byte(strings.Replace(b.Text, "\non:", "\n\"on\":", 1)), &map[string]any{}))
			w.Must(yaml.Unmarshal([]byte(strings.Replace(b.Text, "\non:", "\n\"on\":", 1)), &flow))
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
	compared := func() output {
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
