package main

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// statement is the in-toto statement of a provenance.
type statement struct {
	Subject []struct {
		Name   string
		Digest map[string]string
	}
	Predicate struct {
		BuildDefinition struct {
			ExternalParameters   map[string]string
			ResolvedDependencies []struct{ Digest map[string]string }
		}
	}
}

// The image and the plugin are built from the commit, for one platform each.
func TestReleaseIsWrittenAndPushed(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	committed, err := here(t).checkout(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	committed.platforms, committed.repository = platforms[:1], strings.TrimPrefix(server.URL, "http://")+"/gating-controller"
	key, public := keyFile(t, "")
	sign, err := signerOf(key)
	if err != nil {
		t.Fatal(err)
	}
	r := &released{source: committed, out: t.TempDir(), sign: sign}
	if err := r.write(t.Context(), []v1.Platform{{OS: runtime.GOOS, Architecture: runtime.GOARCH}}); err != nil {
		t.Fatal(err)
	}
	r.hasChecksumsOfAllFiles(t)
	var says statement
	if err := json.Unmarshal([]byte(read(t, filepath.Join(r.out, provenance))), &says); err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	for _, subject := range says.Subject {
		of[subject.Name] = "sha256:" + subject.Digest["sha256"]
	}
	from := says.Predicate.BuildDefinition
	if len(of) != len(r.files)-1+2 || of["image"] != digest(t, r.img.index) || of["manifests"] != digest(t, r.manifests) ||
		of["install.yaml"] != "sha256:"+sum([]byte(read(t, filepath.Join(r.out, "install.yaml")))) {
		t.Errorf("provenance of %v", of)
	}
	if from.ResolvedDependencies[0].Digest["gitCommit"] != r.commit || from.ExternalParameters["repository"] != r.repository {
		t.Errorf("built from %+v", from)
	}

	for range 2 { // pushing the same release again is allowed
		if err := r.push(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, of := range map[string]interface{ Digest() (v1.Hash, error) }{r.repository: r.img.index, r.repository + "-manifests": r.manifests} {
		isSigned(t, public, name, digest(t, of))
	}
	if r.manifests, err = r.artifact([]byte("something else")); err != nil {
		t.Fatal(err)
	}
	if err := r.push(t.Context()); err == nil || !strings.Contains(err.Error(), "gating-controller-manifests:v1.2.3 is already released") {
		t.Errorf("another release of the same version: %v", err)
	}
}

// hasChecksumsOfAllFiles checks the checksums, and that every file has one.
func (r *released) hasChecksumsOfAllFiles(t *testing.T) {
	t.Helper()
	check := exec.CommandContext(t.Context(), "sha256sum", "--strict", "--quiet", "-c", checksums)
	check.Dir = r.out
	if said, err := check.CombinedOutput(); err != nil {
		t.Errorf("%s, %v", said, err)
	}
	entries, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != checksums && name != "image" && !strings.Contains(read(t, filepath.Join(r.out, checksums)), "  "+name+"\n") {
			t.Errorf("%s has no checksum", name)
		}
	}
}

// isSigned checks that the registry has a signature of an image in the format of cosign.
func isSigned(t *testing.T, public *ecdsa.PublicKey, repository, digest string) {
	t.Helper()
	tag, err := name.NewTag(repository + ":" + strings.Replace(digest, ":", "-", 1) + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(manifest.Layers[0].Annotations["dev.cosignproject.cosign/signature"])
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(signed)
	if !ecdsa.VerifyASN1(public, sum[:], signature) || !strings.Contains(string(signed), `"docker-manifest-digest":"`+digest+`"`) ||
		!strings.Contains(string(signed), `"docker-reference":"`+repository+`"`) {
		t.Errorf("%s does not say that %s is ours: %s", tag, digest, signed)
	}
}
