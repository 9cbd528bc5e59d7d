package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeImage builds the image and writes it as an OCI layout: the folder image, and image.tar.
func (s source) writeImage(ctx context.Context, out string) (img image, err error) {
	var all []built
	for _, platform := range s.platforms {
		b, err := s.buildFor(ctx, ".", platform)
		if err != nil {
			return img, err
		}
		all = append(all, b)
	}
	if img, err = s.assemble(all); err != nil {
		return img, err
	}
	folder := filepath.Join(out, "image")
	if err := os.RemoveAll(folder); err != nil {
		return img, err
	}
	if err := img.write(folder, s.names()); err != nil {
		return img, err
	}
	return img, s.archive(folder, folder+".tar")
}

// tagIn returns the tag of the image in a repository, or the zero tag if the repository is empty.
func (s source) tagIn(repository string) (name.Tag, error) {
	if repository == "" {
		return name.Tag{}, nil
	}
	return name.NewTag(repository+":"+s.version, name.StrictValidation)
}

// buildFor builds a program for a platform, and its bill of materials.
func (s source) buildFor(ctx context.Context, program string, platform v1.Platform) (b built, err error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return b, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "program")
	if err := s.build(ctx, program, platform, path); err != nil {
		return b, err
	}
	b.platform = platform
	if b.binary, err = os.ReadFile(path); err != nil { //nolint:gosec // built above
		return b, err
	}
	b.bom, err = s.bom(path)
	return b, err
}

// names returns the annotations with the names of the image in a layout, see
// https://github.com/opencontainers/image-spec/blob/main/annotations.md. containerd imports the image under the second one.
func (s source) names() map[string]string {
	names := map[string]string{"org.opencontainers.image.ref.name": s.version}
	if s.repository != "" {
		names["io.containerd.image.name"] = s.repository + ":" + s.version
	}
	return names
}

// write writes an image as an OCI layout with the given names. The folder must not exist.
func (i image) write(folder string, names map[string]string) error {
	path, err := layout.Write(folder, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	err = path.AppendIndex(i.index, layout.WithAnnotations(names))
	for _, bom := range i.boms {
		if err == nil {
			err = path.AppendImage(bom)
		}
	}
	return err
}

// archive writes a folder as a reproducible tar.
func (s source) archive(folder, to string) error {
	paths, files, err := filesIn(folder)
	if err != nil {
		return err
	}
	out, err := os.Create(to) //nolint:gosec // where the caller says
	if err != nil {
		return err
	}
	return errors.Join(s.writeTar(out, paths, files), out.Close())
}

// push pushes the attached artifacts, and then the image.
func (i image) push(ctx context.Context, tag name.Tag) error {
	for _, bom := range i.boms {
		digest, err := bom.Digest()
		if err != nil {
			return err
		}
		if err := pushImage(ctx, tag.Context().Digest(digest.String()), bom); err != nil {
			return err
		}
	}
	return remote.WriteIndex(tag, i.index, options(ctx)...)
}

// isFree returns an error if a tag already has other content. Releases are immutable.
func isFree(ctx context.Context, tag name.Tag, what interface{ Digest() (v1.Hash, error) }) error {
	digest, err := what.Digest()
	if err != nil {
		return err
	}
	there, err := remote.Head(tag, options(ctx)...)
	var answer *transport.Error
	switch {
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return nil
	case err != nil:
		return err
	case there.Digest != digest:
		return fmt.Errorf("%s is already released with other content: %s, not %s", tag, there.Digest, digest)
	}
	return nil
}

func pushImage(ctx context.Context, to name.Reference, img v1.Image) error {
	return remote.Write(to, img, options(ctx)...)
}

// options returns the options of all requests to a registry. The credentials are those of the Docker configuration.
func options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}
