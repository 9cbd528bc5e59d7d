package main

import (
	"archive/tar"
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// program is the name of the program in the image.
	program = "gating-controller"
	// user runs the program. It is numeric, so that the kubelet can verify runAsNonRoot.
	user = "65532:65532"
	// bomType is the media type of a bill of materials, see https://cyclonedx.org/specification/overview/.
	bomType types.MediaType = "application/vnd.cyclonedx+json"
)

// built is a program that was built for a platform.
type built struct {
	platform v1.Platform
	// binary is the program, and bom is its bill of materials.
	binary, bom []byte
}

// image is an image for all platforms, with its attached artifacts.
type image struct {
	index v1.ImageIndex
	// boms has one bill of materials per platform. Its OCI subject is the image of that platform.
	boms []v1.Image
}

// labels returns the labels of the image, see https://specs.opencontainers.org/image-spec/annotations/.
func (s source) labels() map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title": program, prefix + "description": "Controls when Flux applies changes from Git", prefix + "licenses": "Apache-2.0",
		prefix + "source": "https://" + module, prefix + "version": s.version, prefix + "revision": s.commit,
		prefix + "created": s.at.Format("2006-01-02T15:04:05Z"),
	}
}

// assemble returns the image with the given programs.
func (s source) assemble(all []built) (image, error) {
	of := image{index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	system, err := s.layer(map[string]file{
		"etc/ssl/certs/ca-certificates.crt": {0o644, roots()},
		"etc/passwd":                        {0o644, []byte("nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
	})
	if err != nil {
		return of, err
	}
	for _, b := range all {
		own, err := s.layer(map[string]file{program: {0o755, b.binary}})
		if err != nil {
			return of, err
		}
		img, err := s.imageOf(b.platform, system, own)
		if err != nil {
			return of, err
		}
		of.index = mutate.AppendManifests(of.index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &b.platform}})
		bom, err := attached(img, b.bom)
		if err != nil {
			return of, err
		}
		of.boms = append(of.boms, bom)
	}
	annotated, _ := mutate.Annotations(of.index, s.labels()).(v1.ImageIndex)
	of.index = annotated
	return of, nil
}

// imageOf returns the image of a platform.
func (s source) imageOf(platform v1.Platform, layers ...v1.Layer) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(img, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Created: v1.Time{Time: s.at},
		Config: v1.Config{User: user, Entrypoint: []string{"/" + program}, WorkingDir: "/", Labels: s.labels()},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		if img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: s.at}, CreatedBy: "make image"}}); err != nil {
			return nil, err
		}
	}
	return img, nil
}

// attached returns the bill of materials of an image as an artifact.
func attached(img v1.Image, bom []byte) (v1.Image, error) {
	subject, err := partial.Descriptor(img)
	if err != nil {
		return nil, err
	}
	// Without an artifactType, the media type of the configuration is the type of the artifact.
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), bomType)
	artifact, err = mutate.AppendLayers(artifact, static.NewLayer(bom, bomType))
	if err != nil {
		return nil, err
	}
	of, _ := mutate.Subject(artifact, *subject).(v1.Image)
	return of, nil
}

// layer returns a layer with files by path. They belong to root and have the time of the commit.
func (s source) layer(files map[string]file) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	made := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		parts := strings.Split(path, "/")
		for i := 1; i < len(parts); i++ {
			folder := strings.Join(parts[:i], "/") + "/"
			if made[folder] {
				continue
			}
			made[folder] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755, ModTime: s.at, Format: tar.FormatPAX}); err != nil {
				return nil, err
			}
		}
		if err := s.add(w, path, files[path]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}
