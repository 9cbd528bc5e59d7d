package files

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/internal/preview"
)

// isKustomize returns whether a folder contains a kustomization.
func isKustomize(folder string) bool {
	return slices.ContainsFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool {
		info, err := os.Stat(filepath.Join(folder, name))
		return err == nil && info.Mode().IsRegular()
	})
}

// build builds a kustomize folder and reads the result.
func build(set *preview.Set, folder string) error {
	// kustomize does not treat an absolute path as a repository address.
	path, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	disk := &localOnly{FileSystem: filesys.MakeFsOnDisk()}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, path)
	var manifests []byte
	if err == nil {
		manifests, err = objects.AsYaml()
	}
	if disk.refused != nil {
		err = disk.refused // kustomize replaces this error with other messages
	}
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	return set.Read(folder, bytes.NewReader(manifests))
}

// localOnly is a file system that refuses to read files that would make kustomize load something from the network.
type localOnly struct {
	filesys.FileSystem
	refused error
}

// ReadFile reads a file. It returns an error if the file refers to a remote address.
func (l *localOnly) ReadFile(path string) ([]byte, error) {
	content, err := l.FileSystem.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if what := loadsRemote(path, content); what != "" {
		l.refused = fmt.Errorf("%s refers to %q, which is remote: only local files and folders are read", filepath.Base(path), what)
		return nil, l.refused
	}
	return content, nil
}

// loadsRemote returns the first remote address in a file that kustomize would load, empty if there is none.
func loadsRemote(path string, content []byte) string {
	isKustomization := slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path))
	if !isKustomization && !bytes.Contains(content, []byte("builtin")) {
		return ""
	}
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if err != nil {
			return ""
		}
		fields := map[string]any{}
		if sigsyaml.Unmarshal(document, &fields) != nil {
			continue // kustomize reports this error
		}
		if !isKustomization && fields["apiVersion"] != "builtin" {
			continue
		}
		if what := firstRemote(fields); what != "" {
			return what
		}
	}
}

// loadsNothing lists the fields of a kustomization whose values are not loaded.
var loadsNothing = []string{
	"images", "commonLabels", "commonAnnotations", "labels", "metadata", "buildMetadata", "generatorOptions", "options", "literals", "vars",
	"helmCharts", "helmChartInflationGenerator",
}

// firstRemote returns the first remote address in a value that kustomize loads, with fields sorted by key, empty if there is none.
func firstRemote(value any) string {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains(loadsNothing, key) {
				continue
			}
			if what := firstRemote(v[key]); what != "" {
				return what
			}
		}
	case []any:
		for i := range v {
			if what := firstRemote(v[i]); what != "" {
				return what
			}
		}
	case string:
		return remoteIn(v)
	}
	return ""
}

// address matches the start of remote addresses that kustomize can load.
var address = regexp.MustCompile(`(?i)^(git::)?(https?:|ssh:|file:|github\.com[/:]|[a-z][a-z0-9-]*@)`)

// remoteIn returns the remote address in a text, empty if there is none. The address may be the text itself, the part after a key as in
// configMapGenerator.files, or part of an inline transformer.
func remoteIn(text string) string {
	if address.MatchString(text) {
		return text
	}
	if strings.Contains(text, "builtin") {
		fields := map[string]any{}
		if sigsyaml.Unmarshal([]byte(text), &fields) == nil && fields["apiVersion"] == "builtin" {
			return firstRemote(fields)
		}
		return ""
	}
	if _, path, ok := strings.Cut(text, "="); ok && address.MatchString(path) {
		return path
	}
	return ""
}
