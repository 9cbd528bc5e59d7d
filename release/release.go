package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// isRelease matches the version of a release: a semantic version (https://semver.org) with a leading v.
var isRelease = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// checksums is the name of the file with the checksums of all other files.
const checksums = "checksums.txt"

// release has the options of a release.
type release struct {
	// out is the output folder. It must be empty.
	out string
	// key is the file of a private key. If it is empty, nothing is signed.
	key string
	// pushes is true if the image and the manifests are pushed to the repository.
	pushes bool
}

// released is a release that is being written.
type released struct {
	source
	// out is the output folder, and files has the names of the files in it.
	out   string
	files []string
	img   image
	// sign is nil if nothing is signed.
	sign *signer
	// manifests is the Flux artifact with the manifests.
	manifests v1.Image
}

// writeRelease writes all files of a release. With a key, it signs the checksums. It pushes the manifests last, so that clients that
// follow them find the image.
func (s source) writeRelease(ctx context.Context, wanted release) error {
	if err := s.mayRelease(ctx, wanted.pushes); err != nil {
		return err
	}
	if entries, err := os.ReadDir(wanted.out); err != nil || len(entries) > 0 {
		return errors.Join(err, fmt.Errorf("%s must be empty", wanted.out))
	}
	sign, err := signerOf(wanted.key)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	committed, err := s.checkout(ctx, folder)
	if err != nil {
		return err
	}
	r := &released{source: committed, out: wanted.out, sign: sign}
	if err := r.write(ctx, laptops); err != nil {
		return err
	}
	if sign != nil {
		if err := sign.file(filepath.Join(wanted.out, checksums)); err != nil {
			return err
		}
		if err := sign.writePublicKey(filepath.Join(wanted.out, "cosign.pub")); err != nil {
			return err
		}
	}
	if !wanted.pushes {
		return nil
	}
	return r.push(ctx)
}

// write writes all files except signatures, with the plugin for the given platforms.
func (r *released) write(ctx context.Context, plugins []v1.Platform) (err error) {
	if r.img, err = r.writeImage(ctx, r.out); err != nil {
		return err
	}
	r.files = []string{"image.tar"}
	if err := r.writeManifests(); err != nil {
		return err
	}
	names, err := r.writePlugin(ctx, r.out, plugins)
	if err != nil {
		return err
	}
	r.files = append(r.files, names...)
	for i, platform := range r.platforms {
		name := fmt.Sprintf("image_%s_%s.cdx.json", platform.OS, platform.Architecture)
		if err := r.img.writeBOM(i, filepath.Join(r.out, name)); err != nil {
			return err
		}
		r.files = append(r.files, name)
	}
	if err := r.writeProvenance(); err != nil {
		return err
	}
	r.files = append(r.files, provenance)
	return r.writeChecksums()
}

// push pushes the image and then the manifests. It returns an error if this version was already released with other content.
func (r *released) push(ctx context.Context) error {
	tag, err := r.tagIn(r.repository)
	if err != nil {
		return err
	}
	manifests, err := r.tagIn(r.repository + "-manifests")
	if err != nil {
		return err
	}
	for of, what := range map[name.Tag]interface{ Digest() (v1.Hash, error) }{tag: r.img.index, manifests: r.manifests} {
		if err := isFree(ctx, of, what); err != nil {
			return err
		}
	}
	if r.sign != nil { // signatures first, so that no client can pull an unsigned image
		if err := errors.Join(r.sign.push(ctx, tag, r.img.index), r.sign.push(ctx, manifests, r.manifests)); err != nil {
			return err
		}
	}
	if err := r.img.push(ctx, tag); err != nil {
		return err
	}
	return pushImage(ctx, manifests, r.manifests)
}

// mayRelease returns an error unless the version is a release version and everything is committed. For a push, the version must also be a
// git tag of the commit.
func (s source) mayRelease(ctx context.Context, pushes bool) error {
	if !isRelease.MatchString(s.version) {
		return fmt.Errorf("version %q: must be the version of a release such as v0.1.0", s.version)
	}
	changed, err := s.git(ctx, "status", "--porcelain", "--untracked-files=normal")
	if err != nil {
		return err
	}
	if changed != "" {
		first, _, _ := strings.Cut(changed, "\n")
		return fmt.Errorf("the work tree has uncommitted changes: %s", first)
	}
	if !pushes {
		return nil
	}
	if tagged, err := s.git(ctx, "rev-parse", "--verify", "--quiet", "refs/tags/"+s.version+"^{commit}"); err != nil || tagged != s.commit {
		return fmt.Errorf("version %s: must be a git tag of this commit to be pushed", s.version)
	}
	return nil
}

// writeManifests writes the manifests, the Helm chart and the Flux artifact.
func (r *released) writeManifests() error {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	m, err := r.manifestsOf(filepath.Join(folder, "config"), r.repository)
	if err != nil {
		return err
	}
	files, err := m.write(r.out)
	if err != nil {
		return err
	}
	chart, err := r.packChart(m, r.out)
	if err != nil {
		return err
	}
	packed, err := r.pack(m.folder)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, "manifests.tar.gz"), packed, 0o644); err != nil { //nolint:gosec // for all to read
		return err
	}
	r.files = append(append(r.files, files...), chart, "manifests.tar.gz")
	r.manifests, err = r.artifact(packed)
	return err
}

// writeBOM writes the bill of materials of the image of a platform.
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

// writeChecksums writes the checksums of all files in the format of sha256sum.
func (r *released) writeChecksums() error {
	slices.Sort(r.files)
	var lines strings.Builder
	for _, file := range r.files {
		content, err := os.ReadFile(filepath.Join(r.out, file)) //nolint:gosec // written before
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum(content), file)
	}
	return os.WriteFile(filepath.Join(r.out, checksums), []byte(lines.String()), 0o644) //nolint:gosec // for all to read
}

// provenance is the name of the file that states the sources of the other files.
const provenance = "provenance.intoto.json"

// writeProvenance writes an in-toto statement with SLSA provenance for all files and images, see https://slsa.dev/spec/v1.1/provenance.
func (r *released) writeProvenance() error {
	var subjects []map[string]any
	for _, file := range r.files {
		content, err := os.ReadFile(filepath.Join(r.out, file)) //nolint:gosec // written before
		if err != nil {
			return err
		}
		subjects = append(subjects, map[string]any{"name": file, "digest": map[string]any{"sha256": sum(content)}})
	}
	for name, of := range map[string]interface{ Digest() (v1.Hash, error) }{"image": r.img.index, "manifests": r.manifests} {
		digest, err := of.Digest()
		if err != nil {
			return err
		}
		subjects = append(subjects, map[string]any{"name": name, "digest": map[string]any{digest.Algorithm: digest.Hex}})
	}
	slices.SortFunc(subjects, func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a["name"]), fmt.Sprint(b["name"])) })
	raw, err := json.MarshalIndent(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          "https://" + module + "/release@v1",
				"externalParameters": map[string]any{"version": r.version, "repository": r.repository},
				"internalParameters": map[string]any{"go": runtime.Version()},
				"resolvedDependencies": []map[string]any{
					{"uri": "git+https://" + module, "digest": map[string]any{"gitCommit": r.commit}},
				},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": "https://" + module + "/release"}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, provenance), append(raw, '\n'), 0o644) //nolint:gosec // for all to read
}
