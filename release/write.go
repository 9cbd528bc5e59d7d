package main

import (
	"archive/tar"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeImage builds the image and writes it as an OCI layout, in the folder image, and as a tar of that, image.tar. It pushes it
// as well if there is a repository for it.
func (s source) writeImage(ctx context.Context, out, repository string) error {
	tag, err := s.tagIn(repository)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // others may read what is built
		return err
	}
	var all []built
	for _, platform := range platforms {
		b, err := s.buildFor(ctx, platform)
		if err != nil {
			return err
		}
		all = append(all, b)
	}
	img, err := s.assemble(all)
	if err != nil {
		return err
	}
	folder := filepath.Join(out, "image")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := img.write(folder, s.version); err != nil {
		return err
	}
	if err := s.archive(folder, folder+".tar"); err != nil {
		return err
	}
	digest, err := img.index.Digest()
	if err != nil {
		return err
	}
	fmt.Println(digest)
	if repository == "" {
		return nil
	}
	return img.push(ctx, tag)
}

// tagIn returns where to push the image, nothing if it is not to be pushed.
func (s source) tagIn(repository string) (name.Tag, error) {
	if repository == "" {
		return name.Tag{}, nil
	}
	return name.NewTag(repository+":"+s.version, name.StrictValidation)
}

// buildFor builds the program for a platform, and what it consists of.
func (s source) buildFor(ctx context.Context, platform v1.Platform) (b built, err error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return b, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, program)
	if err := s.build(ctx, ".", platform, path); err != nil {
		return b, err
	}
	b.platform = platform
	if b.binary, err = os.ReadFile(path); err != nil { //nolint:gosec // built above
		return b, err
	}
	b.bom, err = s.bom(path)
	return b, err
}

// write writes an image as an OCI layout into a folder that does not exist.
func (i image) write(folder, version string) error {
	path, err := layout.Write(folder, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	err = path.AppendIndex(i.index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version}))
	for _, bom := range i.boms {
		if err == nil {
			err = path.AppendImage(bom)
		}
	}
	return err
}

// archive writes a folder as a tar, the same for the same files.
func (s source) archive(folder, to string) (err error) {
	out, err := os.Create(to) //nolint:gosec // where the caller says
	if err != nil {
		return err
	}
	defer func() {
		if closed := out.Close(); err == nil {
			err = closed
		}
	}()
	w := tar.NewWriter(out)
	err = fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, path)) //nolint:gosec // one of the folder
		if err != nil {
			return err
		}
		header := tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: int64(len(content)), ModTime: s.at, Format: tar.FormatPAX}
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// push pushes an image and what is attached to it. Who may do so is known from the configuration of Docker, as everywhere.
func (i image) push(ctx context.Context, tag name.Tag) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.WriteIndex(tag, i.index, options...); err != nil {
		return err
	}
	for _, bom := range i.boms {
		digest, err := bom.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(tag.Context().Digest(digest.String()), bom, options...); err != nil {
			return err
		}
	}
	return nil
}
