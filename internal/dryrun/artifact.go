/*
Package dryrun says what would change in a cluster if Flux applied a Kustomization at the
revision that waits. It writes nothing: the API server answers each apply as a dry run, to the
person who asks and with what that person may do.

It builds like kustomize-controller, with the libraries of Flux. It differs in what a person
has not: it decrypts nothing, and it follows no remote bases.
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

// maxArtifact is how large an artifact may be, in bytes, packed and unpacked: as much as the flux CLI takes.
const maxArtifact = 100 << 20

var (
	repository = fields.New[sourcev1.GitRepository]()
	urlPath    = fields.Path(repository, &repository.Status.Artifact.URL)
	digestPath = fields.Path(repository, &repository.Status.Artifact.Digest)
)

// Opener opens the address of an artifact, which is an URL in the cluster.
type Opener func(ctx context.Context, url string) (io.ReadCloser, error)

// Fetch unpacks the artifact of a source into an empty folder. An artifact that does not have the digest that the source names is not unpacked.
func Fetch(ctx context.Context, source *unstructured.Unstructured, dir string, open Opener) error {
	url, digest := text(source, urlPath), text(source, digestPath)
	want, ok := strings.CutPrefix(digest, "sha256:")
	switch {
	case url == "":
		return errors.New("the source has no artifact")
	case !ok:
		return fmt.Errorf("the artifact has the digest %q: only sha256 is known here", digest)
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
		return fmt.Errorf("the artifact has the digest sha256:%s, the source says %s: it may have changed meanwhile, try again", got, digest)
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
