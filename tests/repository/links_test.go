package repository

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	blocks   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	spans    = regexp.MustCompile("`[^`\n]+`")
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// dropped matches the parts of a heading that its anchor does not have.
	dropped = regexp.MustCompile(`\]\([^)]*\)|[^\p{L}\p{N} _-]`)
)

// A link must work in the repository, on the site that is built from docs, and on the web.
func TestDocsLinksResolve(t *testing.T) {
	pages, checked := pagesOf(t), 0
	for path, text := range pages {
		for _, link := range links.FindAllStringSubmatch(spans.ReplaceAllString(text, ""), -1) {
			to, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			checked++
			target := path
			if to != "" {
				target = filepath.Join(filepath.Dir(path), to)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: the file of the link %s does not exist", path, link[1])
			} else if text, isPage := pages[target]; anchor != "" && (!isPage || !anchorsOf(text)[anchor]) {
				t.Errorf("%s: the heading of the link %s is not in %s", path, link[1], target)
			}
		}
	}
	if len(pages) < 30 || checked < 300 {
		t.Errorf("%d links on %d pages", checked, len(pages))
	}
}

// pagesOf returns all pages without their code blocks.
func pagesOf(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "dist"):
			return filepath.SkipDir
		case filepath.Ext(name) != ".md":
			return nil
		}
		content, err := os.ReadFile(path)
		pages[strings.TrimPrefix(path, root+"/")] = blocks.ReplaceAllString(string(content), "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// anchorsOf returns the anchors of a page, as GitHub and site/config.mjs generate them.
func anchorsOf(page string) map[string]bool {
	anchors := map[string]bool{}
	for _, heading := range headings.FindAllStringSubmatch(page, -1) {
		anchor := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading[1])), ""), " ", "-")
		for i, first := 1, anchor; anchors[anchor]; i++ {
			anchor = fmt.Sprintf("%s-%d", first, i)
		}
		anchors[anchor] = true
	}
	return anchors
}
