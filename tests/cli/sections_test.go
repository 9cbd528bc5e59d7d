package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// section is a section of a page of docs/operate: its heading, and the text below it.
type section struct{ heading, text string }

var aHeading = regexp.MustCompile(`(?m)^##+ (.*)\n`)

// sectionsOf returns the sections of a page that have commands.
func sectionsOf(t testing.TB, page string) (sections []section) {
	t.Helper()
	content, err := os.ReadFile(pathOf(page))
	if err != nil {
		t.Fatal(err)
	}
	at := aHeading.FindAllStringSubmatchIndex(string(content), -1)
	for i, found := range at {
		end := len(content)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		s := section{string(content[found[2]:found[3]]), string(content[found[1]:end])}
		if markdown.Fence.MatchString(s.text) {
			sections = append(sections, s)
		}
	}
	return sections
}

func pathOf(page string) string {
	return filepath.Join(harness.Root(), "docs", "operate", page+".md")
}

// scene is the state in which a reader runs a section.
type scene struct {
	// has contains the manifests to create in flux-system.
	has string
	// first runs before the commands of the section.
	first func(w *world)
	// who returns the world of the reader. The default is admin.
	who func(w *world) *world
	// then checks what the section has done.
	then func(w *world)
	// skip is a text in the commands that another test runs.
	skip string
}

// plays sets up a scene and runs a section in it.
func (s scene) plays(w *world, page string, of section) {
	w.Helper()
	if s.has != "" {
		w.applied(s.has)
	}
	if s.first != nil {
		s.first(w)
	}
	reader := w
	if s.who != nil {
		reader = s.who(w)
	}
	reader.lives(page, of, s.skip)
	if s.then != nil && !w.Failed() {
		s.then(w)
	}
}

// applied applies manifests and waits until the controller has decided on the Gates among them.
func (w *world) applied(manifests string) {
	w.Helper()
	file := filepath.Join(w.TempDir(), "scene.yaml")
	w.Must(os.WriteFile(file, []byte(strings.ReplaceAll(manifests, "flux-system", w.Namespace)), 0o600))
	_, err := w.Kubectl(w.Context(), "-n", w.Namespace, "create", "-f", file)
	w.Must(err)
	gates := &v1alpha1.GateList{}
	w.Must(w.Client.List(w.Context(), gates))
	for i := range gates.Items {
		if g := &gates.Items[i]; g.Namespace == w.Namespace && !g.Spec.Suspend {
			w.Decided(g)
		}
	}
}

// lives runs the blocks of a section in order, as its reader does. Each command must print what the page shows. A command that only reads
// may take a moment. With -update, the output is written to the page.
func (w *world) lives(page string, of section, skip string) {
	w.Helper()
	folder := w.folder
	if folder == "" {
		folder = w.TempDir()
	}
	text := markdown.Fence.ReplaceAllStringFunc(of.text, func(found string) string {
		parts := markdown.Fence.FindStringSubmatch(found)
		b := markdown.Block{Language: parts[2], Text: w.here().Replace(parts[3])}
		switch {
		case skip != "" && strings.Contains(b.Text, skip):
		case b.Language == "yaml":
			w.writes(folder, b)
		case b.Language == "sh":
			w.succeeds(folder, b.Text)
		case b.Language == "console":
			return "```console\n" + w.printsAll(folder, b, parts[3]) + "```"
		default:
			w.Errorf("no test runs the %s in %q", b.Language, of.heading)
		}
		return found
	})
	if *update {
		rewrite(w, page, of.text, text)
	}
}

// follows follows blocks: it writes files and runs commands, which must print what the page shows.
func (w *world) follows(folder string, blocks ...markdown.Block) {
	w.Helper()
	for _, b := range blocks {
		switch {
		case b.Language == "yaml" && strings.HasPrefix(b.Text, "# "): // other manifests are only examples
			w.writes(folder, b)
		case b.Language == "sh":
			code := 0
			if strings.HasPrefix(b.Text, "kubectl gate diff ") {
				code = 1 // there is a difference
			}
			if got := w.in(folder, b.Text); got.code != code {
				w.Errorf("%s\n%+v", b.Text, got)
			}
		case b.Language == "console":
			w.printsAll(folder, b, b.Text)
		}
	}
}

// succeeds runs commands whose output the page does not show. Commands that only read may take a moment.
func (w *world) succeeds(folder, commands string) {
	w.Helper()
	run := func() error {
		if got := w.in(folder, commands); got.code != 0 {
			return fmt.Errorf("%s\n%+v", commands, got)
		}
		return nil
	}
	if !(docs.Command{Text: commands}).Changes() {
		w.Eventually(commands, run)
	} else if err := run(); err != nil {
		w.Error(err)
	}
}

// here replaces the namespace, the tree and the receivers of the page with those of the world.
func (w *world) here() *strings.Replacer {
	return strings.NewReplacer("flux-system", w.Namespace, "-k config/", "-k "+harness.Root()+"/config/", "$GATING_URL", w.receivers)
}

// printsAll runs the commands of a block. It returns them as on the page, with their output.
func (w *world) printsAll(folder string, b markdown.Block, asWritten string) (text string) {
	w.Helper()
	written := docs.Commands(asWritten)
	for i, c := range docs.Commands(b.Text) {
		run := func() error {
			got := w.in(folder, c.Text)
			printed := got.out + got.errOut
			text = strings.ReplaceAll(printed, w.Namespace, "flux-system")
			if steady(printed) != steady(c.Prints) {
				return fmt.Errorf("%s\nprints\n%s\nbut the page shows\n%s", c.Text, printed, c.Prints)
			}
			return nil
		}
		so := text
		switch {
		case *update:
			if !c.Changes() {
				time.Sleep(2 * time.Second) // the page gets the final output
			}
			_ = run()
		case c.Changes():
			if err := run(); err != nil {
				w.Error(err)
			}
		default:
			w.Eventually(c.Text, run)
		}
		text = so + "$ " + written[i].Text + "\n" + tidy(text)
	}
	return text
}

// tidy returns a text without spaces at the ends of lines and empty lines at its end.
func tidy(text string) string {
	if text = strings.TrimRight(lastBlanks.ReplaceAllString(text, ""), "\n"); text == "" {
		return ""
	}
	return text + "\n"
}

// passes matches the line about a pass that has not ended yet.
var passes = regexp.MustCompile(`(?m)^.*: a pass allows one reconciliation, until .*\n?`)

// steady is docs.Stable without unfinished passes.
func steady(text string) string {
	return strings.TrimSpace(passes.ReplaceAllString(docs.Stable(text), ""))
}

var pages sync.Mutex

// rewrite replaces the output of commands on a page.
func rewrite(w *world, page, old, now string) {
	w.Helper()
	pages.Lock()
	defer pages.Unlock()
	content, err := os.ReadFile(pathOf(page))
	w.Must(err)
	w.Must(os.WriteFile(pathOf(page), []byte(strings.Replace(string(content), old, now, 1)), 0o600))
}
