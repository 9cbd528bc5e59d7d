package ui

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// The build fails if a link is broken.
func TestDocsSiteIsAccessibleAndSearchable(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm on this machine")
	}
	folder := filepath.Join(t.TempDir(), "site")
	if out, err := exec.CommandContext(t.Context(), filepath.Join(harness.Root(), "site", "build.sh"), folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := httptest.NewServer(http.FileServerFS(os.DirFS(folder)))
	t.Cleanup(server.Close)
	s := &site{newBrowser(t).open(), server.URL}

	pages := 0
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".html" && path != "404.html" {
			pages++
			s.fits("/" + path)
		}
		return err
	})
	if err != nil || pages < 30 {
		t.Errorf("%d pages, %v", pages, err)
	}
	s.finds("oauth2", "wall")
	for _, problem := range s.wrong() {
		t.Errorf("the browser reports %.500s", problem)
	}
}

// site is a tab in which a user reads the docs.
type site struct {
	*tab
	address string
}

func (s *site) opens(path string) {
	s.Helper()
	s.does("Page.navigate", map[string]any{"url": s.address + path}, nil)
	// The address of a home page has no file name.
	s.until(path+" is loaded", fmt.Sprintf(`location.pathname === %q && document.readyState === "complete" && document.querySelector("main h1")`, strings.TrimSuffix(path, "index.html")))
}

// fits checks a page on a phone with dark colors and on a screen with light colors. A table that is too wide must scroll.
func (s *site) fits(path string) {
	s.Helper()
	for width, colors := range map[int]string{320: "dark", 1400: "light"} {
		s.emulate(width, colors, "screen")
		s.opens(path)
		var is struct {
			Width  int
			Dark   bool
			Others []string
		}
		s.eval(fmt.Sprintf(`({
			width: document.documentElement.scrollWidth, dark: document.documentElement.classList.contains("dark"),
			others: performance.getEntriesByType("resource").map(r => r.name).filter(name => !name.startsWith(%q)),
		})`, s.address), &is)
		if is.Width > width || is.Dark != (colors == "dark") || len(is.Others) > 0 {
			s.Errorf("%s is %d wide on a screen of %d, dark: %t with %s colors, and loads %q from other hosts", path, is.Width, width, is.Dark, colors, is.Others)
		}
		if *shots != "" {
			s.shot(filepath.Join(*shots, fmt.Sprintf("site%s-%d.png", strings.ReplaceAll(strings.TrimSuffix(path, ".html"), "/", "-"), width)), width, 1600)
		}
	}
}

// finds searches for a word, and opens the first page in the results.
func (s *site) finds(word, page string) {
	s.Helper()
	s.emulate(1400, "light", "screen")
	s.opens("/index.html")
	s.eval(`document.querySelector(".VPNavBarSearch button").click()`, nil)
	s.until("the search is open", `document.activeElement.matches(".VPLocalSearchBox input")`)
	s.does("Input.insertText", map[string]any{"text": word}, nil)
	s.until("there are results", `document.querySelector(".VPLocalSearchBox a.result")`)
	if *shots != "" {
		s.shot(filepath.Join(*shots, "site-search.png"), 1400, 800)
	}
	s.press("Enter", 13)
	s.until("the page is open", fmt.Sprintf(`location.pathname.includes(%q) && document.querySelector("main").innerText.includes(%q)`, page, word))
}
