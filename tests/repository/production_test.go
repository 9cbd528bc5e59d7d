package repository

import (
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// hereDocument matches the input of a command in the lines below it.
var hereDocument = regexp.MustCompile(`(?s)<<'?[A-Z]+'?\n(.*?\n)[A-Z]+\n`)

// manifestsOf returns the manifests in a page: in its YAML blocks, and in here-documents of commands.
func manifestsOf(page string) (manifests []string) {
	for _, b := range markdown.Blocks(page) {
		texts := []string{b.Text}
		if b.Language != "yaml" {
			texts = nil
			for _, found := range hereDocument.FindAllStringSubmatch(b.Text, -1) {
				texts = append(texts, found[1])
			}
		}
		for _, text := range texts {
			manifests = append(manifests, strings.Split(text, "\n---\n")...)
		}
	}
	return manifests
}

// On every page, a reader finds the same Gate of this name. A manifest without spec.default changes the existing Gate, because the API
// server does not accept a new Gate without it.
func TestProductionGateIsEqualInDocsAndSamples(t *testing.T) {
	files := manifestsInDocs(t)
	want, compared := production(t, "README.md", manifestsOf(markdown.Page(t, "README.md"))), 0
	for path, manifests := range files {
		for _, spec := range production(t, path, manifests) {
			if compared++; len(want) != 1 || !reflect.DeepEqual(spec, want[0]) {
				t.Errorf("%s has another Gate production than README.md: give it another name, or the same spec. It has\n%v\nand README.md has\n%v", path, spec, want)
			}
		}
	}
	if compared < 5 {
		t.Errorf("only %d Gates production", compared)
	}
}

// manifestsInDocs returns the manifests of all docs and samples by file.
func manifestsInDocs(t *testing.T) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	for _, page := range docsOf(t) {
		path := filepath.Join("docs", page)
		files[path] = manifestsOf(markdown.Page(t, path))
	}
	err := filepath.WalkDir(filepath.Join(root, "config", "samples"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".yaml" {
			path = strings.TrimPrefix(path, root+"/")
			files[path] = strings.Split(strings.Join(linesOf(t, path), "\n")+"\n", "\n---\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A Gate that holds the source of its own cluster cannot be opened by a commit.
func TestExamplesDoNotHoldBootstrapSource(t *testing.T) {
	gates := 0
	for path, manifests := range manifestsInDocs(t) {
		for _, manifest := range manifests {
			g := &v1alpha1.Gate{}
			if !strings.Contains(manifest, "kind: Gate\n") {
				continue
			}
			if err := yaml.Unmarshal([]byte(manifest), g); err != nil {
				t.Fatalf("%s: %v in\n%s", path, err, manifest)
			}
			if g.Kind != v1alpha1.GateKind {
				continue
			}
			if gates++; len(gate.HoldsBootstrap(g)) > 0 {
				t.Errorf("%s: Gate %s holds the objects from which Flux applies the cluster", path, g.Name)
			}
		}
	}
	if gates < 20 {
		t.Errorf("only %d Gates were read", gates)
	}
}

// production returns the complete specs of the Gates with this name.
func production(t *testing.T, path string, manifests []string) (specs []map[string]any) {
	t.Helper()
	for _, manifest := range manifests {
		var gate struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     map[string]any
		}
		if !strings.Contains(manifest, "kind: Gate\n") {
			continue
		}
		if err := yaml.Unmarshal([]byte(manifest), &gate); err != nil {
			t.Fatalf("%s: %v in\n%s", path, err, manifest)
		}
		if gate.Kind == "Gate" && gate.Metadata.Name == "production" && gate.Spec["default"] != nil {
			specs = append(specs, gate.Spec)
		}
	}
	return specs
}
