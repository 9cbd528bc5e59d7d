package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var made = source{version: "v0.1.0", commit: "0123abcd", at: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}

// assembled returns an image whose programs are a line of text.
func assembled(t *testing.T, s source) image {
	t.Helper()
	var all []built
	for _, platform := range platforms {
		all = append(all, built{platform, []byte("program for " + platform.Architecture), []byte(`{"bomFormat":"CycloneDX"}`)})
	}
	img, err := s.assemble(all)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func digest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	hash, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func TestImageIsReproducible(t *testing.T) {
	other, later := made, made
	other.version = "v0.1.1"
	later.at = made.at.Add(time.Second)
	of := digest(t, assembled(t, made).index)
	if again := digest(t, assembled(t, made).index); again != of {
		t.Errorf("%s, and %s the next time", of, again)
	}
	for _, s := range []source{other, later} {
		if digest(t, assembled(t, s).index) == of {
			t.Errorf("version %s at %s is the same image", s.version, s.at)
		}
	}
}

func TestImageHasProgramAndRootsOnly(t *testing.T) {
	img := assembled(t, made)
	manifest, err := img.index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != len(platforms) || manifest.Annotations["org.opencontainers.image.version"] != "v0.1.0" {
		t.Fatalf("manifest %+v", manifest)
	}
	for i, m := range manifest.Manifests {
		if !m.Platform.Equals(platforms[i]) {
			t.Errorf("platform %s, want %s", m.Platform, platforms[i])
		}
		one, err := img.index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := one.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/gating-controller"}) ||
			c.Labels["org.opencontainers.image.revision"] != "0123abcd" || !config.Created.Equal(made.at) {
			t.Errorf("config %+v, created %s", c, config.Created)
		}
		files := filesOf(t, one)
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, []string{"etc/passwd", "etc/ssl/certs/ca-certificates.crt", "gating-controller"}) {
			t.Errorf("files %q", got)
		}
		if got := files["gating-controller"]; got != "program for "+platforms[i].Architecture {
			t.Errorf("the program is %q", got)
		}
	}
}

// filesOf returns the files of an image. It checks that each belongs to root, has the time of the commit, and can be written only by root.
func filesOf(t *testing.T, img v1.Image) map[string]string {
	t.Helper()
	all := mutate.Extract(img)
	defer func() { _ = all.Close() }()
	files := map[string]string{}
	for r := tar.NewReader(all); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(made.at) || header.Mode&0o022 != 0 {
			t.Errorf("%s: %+v", header.Name, header)
		}
		if header.Typeflag == tar.TypeReg {
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[header.Name] = string(content)
		}
	}
}

func TestRootsAreManyCertificates(t *testing.T) {
	n := 0
	for rest := roots(); ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
	}
	if n < 100 {
		t.Errorf("%d", n)
	}
}

func TestPushedImageHasSBOM(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/gating-controller"
	tag, err := made.tagIn(repository)
	if err != nil {
		t.Fatal(err)
	}
	img := assembled(t, made)
	if err := img.push(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := digest(t, index), digest(t, img.index); got != want {
		t.Errorf("%s is pushed as %s", want, got)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		referrers, err := remote.Referrers(tag.Context().Digest(m.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		found, err := referrers.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Manifests) != 1 || found.Manifests[0].ArtifactType != string(bomType) {
			t.Errorf("attached to %s: %+v", m.Platform, found.Manifests)
		}
	}
}

func TestLayoutIsReproducible(t *testing.T) {
	var archives [][]byte
	named := made
	named.repository = "registry.test/gating"
	for range 2 {
		folder := filepath.Join(t.TempDir(), "image")
		if err := assembled(t, made).write(folder, named.names()); err != nil {
			t.Fatal(err)
		}
		index, err := layout.ImageIndexFromPath(folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if m := manifest.Manifests; len(m) != 1+len(platforms) || m[0].Annotations["org.opencontainers.image.ref.name"] != "v0.1.0" ||
			m[0].Annotations["io.containerd.image.name"] != "registry.test/gating:v0.1.0" {
			t.Errorf("layout of %+v", m)
		}
		if err := made.archive(folder, folder+".tar"); err != nil {
			t.Fatal(err)
		}
		archive, err := os.ReadFile(folder + ".tar")
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, archive)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same image differ")
	}
}

// The modules of the test program are known, so it serves as an example.
func TestSBOMListsModules(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := made.bom(self)
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := json.Unmarshal(raw, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" || bom.Metadata.Component.Version != "v0.1.0" || bom.Metadata.Timestamp != "2026-11-25T12:00:00Z" {
		t.Errorf("metadata %+v of a %s", bom.Metadata, bom.BOMFormat)
	}
	var found []string
	for _, c := range *bom.Components {
		found = append(found, c.Name)
	}
	for _, want := range []string{"std", "github.com/google/go-containerregistry", "github.com/CycloneDX/cyclonedx-go"} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not among %q", want, found)
		}
	}
	if again, err := made.bom(self); err != nil || !bytes.Equal(again, raw) {
		t.Errorf("another one the next time, %v", err)
	}
}

// --version prints the version of the release.
func TestProgramPrintsItsVersion(t *testing.T) {
	s, err := sourceIn(t.Context(), "..", "v0.1.0-test")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubectl-gate")
	if err := s.build(t.Context(), "./cmd/kubectl-gate", v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}, path); err != nil {
		t.Fatal(err)
	}
	raw, err := exec.CommandContext(t.Context(), path, "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(raw), "v0.1.0-test, time zone data ") {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestInvalidInputIsOneError(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing to build":     {nil, "expected one argument: chart, image or release"},
		"something unknown":    {[]string{"binary"}, "expected one argument: chart, image or release"},
		"a version with a /":   {[]string{"-root", "..", "-version", "v1/2", "image"}, `version "v1/2": must be the tag of an image`},
		"no repository of git": {[]string{"-root", t.TempDir(), "image"}, "not a git repository"},
		"no place to push":     {[]string{"-root", "..", "-version", "v1", "-out", t.TempDir(), "-push", "UPPER/case", "image"}, "UPPER/case"},
	} {
		if err := run(t.Context(), tc.args); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
