package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// isRelease are the versions of releases, see https://semver.org, with a v as in Go.
var isRelease = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// checksums is the file with those of all others.
const checksums = "checksums.txt"

// writeRelease writes all that a release consists of, and pushes the image and the manifests if there is a repository for them.
// With a key it signs the checksums.
func (s source) writeRelease(ctx context.Context, out, repository, key string) error {
	if err := s.mayRelease(ctx); err != nil {
		return err
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 {
		return errors.Join(err, fmt.Errorf("%s: it is not empty, and a release has nothing of another one", out))
	}
	sign, err := signerOf(key)
	if err != nil {
		return err
	}
	img, err := s.writeImage(ctx, out)
	if err != nil {
		return err
	}
	files, err := s.writeManifests(ctx, out, repository)
	if err != nil {
		return err
	}
	plugins, err := s.writePlugin(ctx, out, laptops)
	if err != nil {
		return err
	}
	files = append(append(files, plugins...), "image.tar")
	for i, platform := range platforms {
		name := fmt.Sprintf("image_%s_%s.cdx.json", platform.OS, platform.Architecture)
		if err := img.writeBOM(i, filepath.Join(out, name)); err != nil {
			return err
		}
		files = append(files, name)
	}
	if err := s.writeChecksums(out, files); err != nil {
		return err
	}
	if err := s.writeProvenance(out, files); err != nil {
		return err
	}
	if sign != nil {
		if err := sign.file(filepath.Join(out, checksums)); err != nil {
			return err
		}
	}
	if repository == "" {
		return nil
	}
	tag, err := s.tagIn(repository)
	if err != nil {
		return err
	}
	return img.push(ctx, tag)
}

// mayRelease returns an error unless the version is that of a release, and all is committed.
func (s source) mayRelease(ctx context.Context) error {
	if !isRelease.MatchString(s.version) {
		return fmt.Errorf("version %q: that of a release is like v0.1.0", s.version)
	}
	changed, err := s.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		first, _, _ := strings.Cut(changed, "\n")
		return fmt.Errorf("not everything is committed: %s", first)
	}
	return nil
}

// writeManifests writes what is installed. It returns the names of the files.
func (s source) writeManifests(ctx context.Context, out, repository string) ([]string, error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	m, err := s.manifestsOf(filepath.Join(folder, "config"), repository)
	if err != nil {
		return nil, err
	}
	files, err := m.write(out)
	if err != nil {
		return nil, err
	}
	chart, err := s.packChart(m, out)
	if err != nil {
		return nil, err
	}
	packed, err := s.pack(m.folder)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(out, "manifests.tar.gz"), packed, 0o644); err != nil { //nolint:gosec // for all to read
		return nil, err
	}
	artifact, err := s.artifact(packed)
	if err != nil {
		return nil, err
	}
	if repository != "" {
		tag, err := s.tagIn(repository + "-manifests")
		if err != nil {
			return nil, err
		}
		if err := pushImage(ctx, tag, artifact); err != nil {
			return nil, err
		}
	}
	return append(files, chart, "manifests.tar.gz"), nil
}

// writeBOM writes the bill of materials of the image of one of the platforms.
func (i image) writeBOM(platform int, path string) error {
	layers, err := i.boms[platform].Layers()
	if err != nil {
		return err
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		return err
	}
	out, err := os.Create(path) //nolint:gosec // where the caller says
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(content)
	return errors.Join(err, content.Close(), out.Close())
}

// writeChecksums writes those of files, as sha256sum checks them.
func (s source) writeChecksums(out string, files []string) error {
	slices.Sort(files)
	var lines strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(out, file)) //nolint:gosec // written before
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum(content), file)
	}
	return os.WriteFile(filepath.Join(out, checksums), []byte(lines.String()), 0o644) //nolint:gosec // for all to read
}

// writeProvenance writes from what the files were built: a statement of in-toto with the predicate of SLSA,
// see https://slsa.dev/spec/v1.1/provenance.
func (s source) writeProvenance(out string, files []string) error {
	var subjects []map[string]any
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(out, file)) //nolint:gosec // written before
		if err != nil {
			return err
		}
		subjects = append(subjects, map[string]any{"name": file, "digest": map[string]any{"sha256": sum(content)}})
	}
	raw, err := json.MarshalIndent(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType": "https://" + module + "/release@v1", "externalParameters": map[string]any{"version": s.version},
				"resolvedDependencies": []map[string]any{{"uri": "git+https://" + module, "digest": map[string]any{"gitCommit": s.commit}}},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": "https://" + module + "/release"}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "provenance.intoto.json"), append(raw, '\n'), 0o644) //nolint:gosec // for all to read
}
