package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/kustomize/api/krusty"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Media types of a Flux artifact, see https://fluxcd.io/flux/cheatsheets/oci-artifacts/.
const (
	fluxConfig  types.MediaType = "application/vnd.cncf.flux.config.v1+json"
	fluxContent types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// noAddOns are the folders of config that are not add-ons. reducedPolicies is one of them, because it replaces policies.
var noAddOns = []string{"chart", "crd", "default", "flux-alerts", "k9s", "manager", reducedPolicies, "rbac", "samples"}

// reducedPolicies is the folder with policies for clusters that do not support config/policies.
const reducedPolicies = "policies-1.30"

// manifests is the folder config of a release.
type manifests struct {
	folder string
}

// versionLabel is a recommended label, see https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/.
const versionLabel = "app.kubernetes.io/version"

// manifestsOf copies the folder config and sets the image in it: its version, and its repository unless that is empty.
func (s source) manifestsOf(folder, repository string) (manifests, error) {
	m := manifests{folder}
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(s.root, "config"))); err != nil {
		return m, err
	}
	// writeChart writes the complete chart, and config.go is not a manifest.
	for _, name := range []string{"chart", "config.go"} {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return m, err
		}
	}
	path := filepath.Join(folder, "manager", "kustomization.yaml")
	raw, err := os.ReadFile(path) //nolint:gosec // copied above
	if err != nil {
		return m, err
	}
	var k kustomize.Kustomization
	if err := yaml.UnmarshalStrict(raw, &k); err != nil {
		return m, err
	}
	if len(k.Images) != 1 {
		return m, fmt.Errorf("%s: it sets %d images, not one", path, len(k.Images))
	}
	k.Images[0].NewName, k.Images[0].NewTag = repository, s.version
	if len(k.Labels) != 1 || k.Labels[0].Pairs[versionLabel] == "" {
		return m, fmt.Errorf("%s: it does not set the label %s", path, versionLabel)
	}
	k.Labels[0].Pairs[versionLabel] = s.version
	if raw, err = yaml.Marshal(k); err != nil {
		return m, err
	}
	return m, os.WriteFile(path, raw, 0o644) //nolint:gosec // for all to read
}

// render builds a folder with kustomize.
func (m manifests) render(name string) ([]byte, error) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(m.folder, name))
	if err != nil {
		return nil, fmt.Errorf("config/%s: %w", name, err)
	}
	return made.AsYaml()
}

// addOns returns the add-ons to config/default.
func (m manifests) addOns() ([]string, error) {
	entries, err := os.ReadDir(m.folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && !slices.Contains(noAddOns, entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// isComponent returns whether an add-on is a kustomize component. Only other add-ons can be applied separately.
func (m manifests) isComponent(addOn string) (bool, error) {
	raw, err := os.ReadFile(filepath.Join(m.folder, addOn, "kustomization.yaml")) //nolint:gosec // one of the folders
	if err != nil {
		return false, err
	}
	var k kustomize.Kustomization
	err = yaml.UnmarshalStrict(raw, &k)
	return k.Kind == kustomize.ComponentKind, err
}

// write writes install.yaml and a file for each add-on that can be applied separately, and returns the names of these files.
func (m manifests) write(folder string) ([]string, error) {
	names, err := m.addOns()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, name := range append([]string{"default", reducedPolicies}, names...) {
		if component, err := m.isComponent(name); err != nil || component {
			if err != nil {
				return nil, err
			}
			continue
		}
		raw, err := m.render(name)
		if err != nil {
			return nil, err
		}
		file := strings.Replace(name, "default", "install", 1) + ".yaml"
		if err := os.WriteFile(filepath.Join(folder, file), raw, 0o644); err != nil { //nolint:gosec // for all to read
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// filesIn returns the files of a folder, and their sorted paths.
func filesIn(folder string) (paths []string, files map[string]file, err error) {
	files = map[string]file{}
	err = fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, path)) //nolint:gosec // one of the folder
		if err != nil {
			return err
		}
		paths, files[path] = append(paths, path), file{0o644, content}
		return nil
	})
	return paths, files, err
}

// pack returns a folder as a reproducible tar.gz.
func (s source) pack(folder string) ([]byte, error) {
	paths, files, err := filesIn(folder)
	if err != nil {
		return nil, err
	}
	return s.tarOf(paths, files)
}

// artifact returns a tar.gz of manifests as an artifact for an OCIRepository of Flux.
func (s source) artifact(packed []byte) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), fluxConfig)
	img, err := mutate.AppendLayers(img, static.NewLayer(packed, fluxContent))
	if err != nil {
		return nil, err
	}
	annotated, _ := mutate.Annotations(img, map[string]string{
		"org.opencontainers.image.created": s.at.Format("2006-01-02T15:04:05Z"), "org.opencontainers.image.source": "https://" + module,
		"org.opencontainers.image.revision": s.version + "@sha1:" + s.commit,
	}).(v1.Image)
	return annotated, nil
}
