package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"sigs.k8s.io/yaml"
)

// here returns the repository as the source of a release.
func here(t *testing.T) source {
	t.Helper()
	s, err := sourceIn(t.Context(), "..", "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestInstalledImagesHaveReleaseVersion(t *testing.T) {
	for repository, image := range map[string]string{"": "fluxcd/gating-controller:v1.2.3", "localhost:5000/mirror/gating": "localhost:5000/mirror/gating:v1.2.3"} {
		m, err := here(t).manifestsOf(filepath.Join(t.TempDir(), "config"), repository)
		if err != nil {
			t.Fatal(err)
		}
		out := t.TempDir()
		files, err := m.write(out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(m.folder, "config.go")); err == nil {
			t.Error("the manifests have Go code")
		}
		slices.Sort(files)
		if want := []string{"activation.yaml", "calendars.yaml", "install.yaml", "lock.yaml", "machines.yaml", "monitoring.yaml", "policies-1.30.yaml", "policies.yaml", "webhooks.yaml"}; !slices.Equal(files, want) {
			t.Errorf("files %q, want %q", files, want)
		}
		install := read(t, filepath.Join(out, "install.yaml"))
		for _, want := range []string{"image: " + image + "\n", "        app.kubernetes.io/version: v1.2.3\n", "kind: CustomResourceDefinition", "name: gates.gating.toolkit.fluxcd.io", "kind: Deployment"} {
			if !strings.Contains(install, want) {
				t.Errorf("install.yaml has no %q", want)
			}
		}
	}
}

// packed returns the files of a tar.gz or a zip.
func packed(t *testing.T, path string) map[string]string {
	t.Helper()
	raw := []byte(read(t, path))
	files := map[string]string{}
	if strings.HasSuffix(path, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			files[f.Name] = string(content)
		}
		return files
	}
	uncompressed, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(uncompressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}

func TestKrewInstallsPlugin(t *testing.T) {
	s, out := here(t), t.TempDir()
	own := v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	files, err := s.writePlugin(t.Context(), out, []v1.Platform{own})
	if err != nil {
		t.Fatal(err)
	}
	archive := "kubectl-gate_v1.2.3_" + own.OS + "_" + own.Architecture + ".tar.gz"
	if want := []string{strings.TrimSuffix(archive, ".tar.gz") + ".cdx.json", archive, "gate.yaml"}; !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []krewPlatform
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(out, "gate.yaml"))), &manifest); err != nil {
		t.Fatal(err)
	}
	found := manifest.Spec.Platforms[0]
	if manifest.Spec.Version != "v1.2.3" || found.Selector.MatchLabels["arch"] != own.Architecture || !strings.HasSuffix(found.URI, "/download/v1.2.3/"+archive) ||
		found.SHA256 != sum([]byte(read(t, filepath.Join(out, archive)))) {
		t.Errorf("krew finds %+v", manifest)
	}
	content := packed(t, filepath.Join(out, archive))
	if len(content) != 4 || !strings.Contains(content["LICENSE"], "Apache License") || !strings.Contains(content["k9s.yaml"], "gate-open:") ||
		!strings.HasPrefix(content["kubectl_complete-gate"], "#!/bin/sh\n") {
		t.Errorf("it has %d files", len(content))
	}
	program := filepath.Join(t.TempDir(), found.Bin)
	if err := os.WriteFile(program, []byte(content[found.Bin]), 0o700); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput(); err != nil || !strings.Contains(string(said), "kubectl-gate v1.2.3, time zone data ") {
		t.Errorf("%s, %v", said, err)
	}
}

func TestZipHasItsFiles(t *testing.T) {
	raw, err := made.zipOf([]string{"a", "b"}, map[string]file{"a": {0o644, []byte("one")}, "b": {0o755, []byte("two")}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.zip")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := packed(t, path); len(got) != 2 || got["a"] != "one" || got["b"] != "two" {
		t.Errorf("files %q", got)
	}
}

// Flux and kubectl build the content of the archive.
func TestManifestArchiveBuildsInstalledObjects(t *testing.T) {
	s, folder := here(t), t.TempDir()
	m, err := s.manifestsOf(filepath.Join(folder, "config"), "")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.pack(m.folder)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(folder, "manifests.tar.gz")
	if err := os.WriteFile(archive, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	unpacked := t.TempDir()
	for name, content := range packed(t, archive) {
		path := filepath.Join(unpacked, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := m.render("default")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (manifests{unpacked}).render("default"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("it makes something else, %v", err)
	}
	img, err := s.artifact(raw)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Config.MediaType != fluxConfig || manifest.Layers[0].MediaType != fluxContent || manifest.Annotations["org.opencontainers.image.revision"] != "v1.2.3@sha1:"+s.commit {
		t.Errorf("manifest %+v", manifest)
	}
}

// The output depends neither on the environment nor on the folder.
func TestProgramIsReproducible(t *testing.T) {
	home := t.TempDir()
	hostile := filepath.Join(home, ".config", "go", "env") // the file that "go env -w" writes
	if err := errors.Join(os.MkdirAll(filepath.Dir(hostile), 0o700), os.WriteFile(hostile, []byte("GOFLAGS=-tags=hostile\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // HOME changes below
		folder, err := output(exec.CommandContext(t.Context(), "go", "env", name))
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, folder)
	}
	var sums []string
	for _, set := range []map[string]string{nil, {"HOME": home, "GOENV": hostile, "GOFLAGS": "-race", "GOAMD64": "v3"}} {
		for name, value := range set {
			t.Setenv(name, value)
		}
		committed, err := here(t).checkout(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		b, err := committed.buildFor(t.Context(), "./cmd/"+plugin, v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH})
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum(b.binary)+sum(b.bom))
	}
	if sums[0] != sums[1] {
		t.Error("it differs from the one in another folder with another environment")
	}
}

// Uncommitted files are not part of a release.
func TestCheckoutHasCommittedFilesOnly(t *testing.T) {
	folder := committedIn(t)
	if err := os.WriteFile(filepath.Join(folder, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_DIR", filepath.Join("..", ".git")) // of another repository
	s, err := sourceIn(t.Context(), folder, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	committed, err := s.checkout(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(committed.root)
	if err != nil || len(entries) != 1 || entries[0].Name() != "file" {
		t.Errorf("it has %v, %v", entries, err)
	}
}

// keyFile writes a private key in the format of cosign.
func keyFile(t *testing.T, password string) (string, *ecdsa.PublicKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := encrypted.Encrypt(der, []byte(password))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cosign.key")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: sealed}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, &key.PublicKey
}

func TestSignatureIsVerifiedByKey(t *testing.T) {
	path, public := keyFile(t, "secret")
	t.Setenv("COSIGN_PASSWORD", "secret")
	s, err := signerOf(path)
	if err != nil {
		t.Fatal(err)
	}
	signed := filepath.Join(t.TempDir(), checksums)
	if err := errors.Join(os.WriteFile(signed, []byte("content"), 0o600), s.file(signed)); err != nil {
		t.Fatal(err)
	}
	var b sigstoreBundle
	if err := json.Unmarshal([]byte(read(t, signed+".sigstore.json")), &b); err != nil {
		t.Fatal(err)
	}
	digest, other := sha256.Sum256([]byte("content")), sha256.Sum256([]byte("other content"))
	if signature := b.MessageSignature.Signature; !ecdsa.VerifyASN1(public, digest[:], signature) || ecdsa.VerifyASN1(public, other[:], signature) {
		t.Error("it is not one of the content")
	}
	if !bytes.Equal(b.MessageSignature.MessageDigest.Digest, digest[:]) || len(b.VerificationMaterial.PublicKey.Hint) != sha256.Size {
		t.Errorf("bundle %+v", b)
	}
	t.Setenv("COSIGN_PASSWORD", "wrong")
	if _, err := signerOf(path); err == nil || !strings.Contains(err.Error(), "COSIGN_PASSWORD does not decrypt it") {
		t.Errorf("with another password: %v", err)
	}
	if _, err := signerOf(filepath.Join("..", "LICENSE")); err == nil || !strings.Contains(err.Error(), "must be a private key of cosign") {
		t.Errorf("of a file that is none: %v", err)
	}
}

// committedIn returns the folder of a repository with one commit of one file, whose tag is v1.2.3.
func committedIn(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "file"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first"}, {"tag", "v1.2.3"},
	} {
		if _, err := output(exec.CommandContext(t.Context(), "git", append([]string{"-C", folder}, args...)...)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestOnlyCommittedVersionIsReleased(t *testing.T) {
	folder := committedIn(t)
	for _, tc := range []struct {
		version string
		pushes  bool
		want    string
	}{
		{"v1.2.3", false, ""}, {"v1.2.3", true, ""}, {"v1.2.4-rc.1", false, ""},
		{"v1.2.4-rc.1", true, "version v1.2.4-rc.1: must be a git tag of this commit"},
		{"1.2.3", false, `version "1.2.3"`}, {"v1.2", false, `version "v1.2"`}, {"", false, ""},
	} {
		s, err := sourceIn(t.Context(), folder, tc.version)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.mayRelease(t.Context(), tc.pushes); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("version %q, pushed %t: %v", tc.version, tc.pushes, err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sourceIn(t.Context(), folder, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.mayRelease(t.Context(), false); err == nil || !strings.Contains(err.Error(), "the work tree has uncommitted changes: ?? new") {
		t.Errorf("with a file that is not committed: %v", err)
	}
}
