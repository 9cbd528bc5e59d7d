package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"
)

// plugin is the program of the kubectl plugin.
const plugin = "kubectl-gate"

// The other files of an archive: the script that kubectl runs to complete the arguments of the plugin, and the shortcuts for k9s.
const (
	completion = "kubectl_complete-gate"
	shortcuts  = "k9s.yaml"
)

// laptops are the platforms of the plugin.
var laptops = []v1.Platform{
	{OS: "darwin", Architecture: "amd64"}, {OS: "darwin", Architecture: "arm64"}, {OS: "linux", Architecture: "amd64"},
	{OS: "linux", Architecture: "arm64"}, {OS: "windows", Architecture: "amd64"}, {OS: "windows", Architecture: "arm64"},
}

// krewPlatform is an entry of the krew manifest: the archive for a platform.
type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

// writePlugin builds the plugin for platforms. It writes an archive and a bill of materials for each, and the krew manifest, and returns
// the names of these files.
func (s source) writePlugin(ctx context.Context, folder string, platforms []v1.Platform) ([]string, error) {
	besides := map[string]file{}
	for name, from := range map[string]struct {
		path string
		mode int64
	}{
		"LICENSE": {"LICENSE", 0o644}, shortcuts: {filepath.Join("config", "k9s", "plugins.yaml"), 0o644},
		completion: {filepath.Join("cmd", plugin, completion), 0o755},
	} {
		content, err := os.ReadFile(filepath.Join(s.root, from.path))
		if err != nil {
			return nil, err
		}
		besides[name] = file{from.mode, content}
	}
	var files []string
	var all []krewPlatform
	for _, platform := range platforms {
		b, err := s.buildFor(ctx, "./cmd/"+plugin, platform)
		if err != nil {
			return nil, err
		}
		bin, ending, pack, names := plugin, ".tar.gz", s.tarOf, []string{"LICENSE", shortcuts, plugin, completion}
		if platform.OS == "windows" {
			bin, ending, pack, names = plugin+".exe", ".zip", s.zipOf, []string{"LICENSE", shortcuts, plugin + ".exe"}
		}
		besides[bin] = file{0o755, b.binary}
		packed, err := pack(names, besides)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%s_%s_%s_%s", plugin, s.version, platform.OS, platform.Architecture)
		for file, content := range map[string][]byte{name + ending: packed, name + ".cdx.json": b.bom} {
			if err := os.WriteFile(filepath.Join(folder, file), content, 0o644); err != nil { //nolint:gosec // for all to read
				return nil, err
			}
			files = append(files, file)
		}
		found := krewPlatform{URI: s.download(name + ending), SHA256: sum(packed), Bin: bin}
		found.Selector.MatchLabels = map[string]string{"os": platform.OS, "arch": platform.Architecture}
		all = append(all, found)
	}
	slices.Sort(files)
	return append(files, "gate.yaml"), s.writeKrew(filepath.Join(folder, "gate.yaml"), all)
}

// download returns the URL of a file of the release.
func (s source) download(file string) string {
	return fmt.Sprintf("https://%s/releases/download/%s/%s", module, s.version, file)
}

// writeKrew writes the krew manifest of the plugin, see https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
func (s source) writeKrew(path string, platforms []krewPlatform) error {
	raw, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]any{"name": "gate"},
		"spec": map[string]any{
			"version": s.version, "homepage": "https://" + module, "shortDescription": "List, open and close Gates of Flux",
			"description": "Lists, opens and closes Gates, explains why an object is held, writes and approves exceptions,\nand shows when the Gates in manifests will open and close.\n", "platforms": platforms,
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644) //nolint:gosec // for all to read
}

func sum(content []byte) string {
	of := sha256.Sum256(content)
	return hex.EncodeToString(of[:])
}
