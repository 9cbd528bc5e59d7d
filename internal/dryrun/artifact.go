/*
Package dryrun computes the changes in a cluster if Flux applied a Kustomization at the waiting
revision. It writes nothing: each apply is a dry run, with the permissions of the user.

It builds like kustomize-controller, with the libraries of Flux. Unlike kustomize-controller, it
does not decrypt, and does not load remote bases.
*/
package dryrun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/pkg/tar"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// maxArtifact bounds the size of an artifact in bytes, both packed and unpacked, as in the flux CLI.
const maxArtifact = 100 << 20

var (
	repository = fields.New[sourcev1.GitRepository]()
	urlPath    = fields.Path(repository, &repository.Status.Artifact.URL)
	digestPath = fields.Path(repository, &repository.Status.Artifact.Digest)
)

// Opener opens the URL of an artifact in the cluster.
type Opener func(ctx context.Context, url string) (io.ReadCloser, error)

// Fetch unpacks the artifact of a source into an empty folder. It rejects an artifact whose digest differs from the digest in the source.
func Fetch(ctx context.Context, source *unstructured.Unstructured, dir string, open Opener) error {
	url, digest := text(source, urlPath), text(source, digestPath)
	want, ok := strings.CutPrefix(digest, "sha256:")
	switch {
	case url == "":
		return errors.New("the source has no artifact")
	case !ok:
		return fmt.Errorf("the artifact has the digest %q: only sha256 is supported", digest)
	}
	packed, err := os.CreateTemp(filepath.Dir(dir), "artifact-*.tar.gz")
	if err != nil {
		return err
	}
	defer func() { _, _ = packed.Close(), os.Remove(packed.Name()) }()
	body, err := open(ctx, url)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(packed, sum), io.LimitReader(body, maxArtifact+1))
	err = errors.Join(err, body.Close())
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
		return fmt.Errorf("the artifact cannot be read: %w", err)
	case n > maxArtifact:
		return fmt.Errorf("the artifact is larger than %d MiB", maxArtifact>>20)
	case got != want:
		return fmt.Errorf("the artifact has the digest sha256:%s, but the source has %s: it may have changed in the meantime, try again", got, digest)
	}
	if _, err := packed.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return tar.Untar(packed, dir, tar.WithMaxUntarSize(maxArtifact))
}

func text(obj *unstructured.Unstructured, path []string) string {
	value, _, _ := unstructured.NestedString(obj.Object, path...)
	return value
}
