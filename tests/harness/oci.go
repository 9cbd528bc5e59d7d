package harness

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

const (
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	fluxConfig  = "application/vnd.cncf.flux.config.v1+json"
	fluxContent = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// Registry is a minimal OCI registry on loopback for source-controller and containerd. It serves the content that was pushed.
type Registry struct {
	server *httptest.Server
	mu     sync.Mutex
	// content has the pushed content by its path below /v2/.
	content map[string]served
}

type served struct {
	mediaType string
	body      []byte
}

// StartRegistry starts a registry without content.
func StartRegistry() *Registry {
	r := &Registry{content: map[string]served{}}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	return r
}

// Stop stops the server.
func (r *Registry) Stop() { r.server.Close() }

// URL returns the address of a repository for an OCIRepository.
func (r *Registry) URL(repository string) string {
	return "oci://" + r.Address() + "/" + repository
}

// Push stores files as an artifact of Flux under a tag.
func (r *Registry) Push(repository, tag string, files map[string]string) error {
	layer, err := Tarball(files)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.manifest(repository, tag, r.blob(repository, fluxConfig, []byte("{}")), r.blob(repository, fluxContent, layer))
}

// PushLayout stores the first image of the OCI layout in a folder under a tag.
func (r *Registry) PushLayout(repository, tag, folder string) error {
	var index struct {
		Manifests []struct{ Digest string }
	}
	raw, err := os.ReadFile(filepath.Join(folder, "index.json")) //nolint:gosec // a folder of a test
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &index); err != nil || len(index.Manifests) == 0 {
		return errors.Join(err, fmt.Errorf("%s has %d images", folder, len(index.Manifests)))
	}
	blobs, err := filepath.Glob(filepath.Join(folder, "blobs", "sha256", "*"))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range blobs {
		body, err := os.ReadFile(path) //nolint:gosec // found above
		if err != nil {
			return err
		}
		r.blob(repository, "", body)
		var manifest struct{ MediaType string }
		if json.Unmarshal(body, &manifest) == nil && manifest.MediaType != "" {
			r.content[repository+"/manifests/"+digest(body)] = served{mediaType: manifest.MediaType, body: body}
		}
	}
	r.content[repository+"/manifests/"+tag] = r.content[repository+"/manifests/"+index.Manifests[0].Digest]
	return nil
}

// PushProgram stores an image with one program for this machine, which runs as the user nobody.
func (r *Registry) PushProgram(repository, tag, path string) error {
	content, err := os.ReadFile(path) //nolint:gosec // built by a test
	if err != nil {
		return err
	}
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	err = archive.WriteHeader(&tar.Header{Name: "program", Mode: 0o755, Size: int64(len(content))})
	if err == nil {
		_, err = archive.Write(content)
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH, "config": map[string]any{"Entrypoint": []string{"/program"}, "User": "65535:65535"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer.Bytes())}},
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.manifest(repository, tag, r.blob(repository, "application/vnd.oci.image.config.v1+json", config),
		r.blob(repository, "application/vnd.oci.image.layer.v1.tar", layer.Bytes()))
}

// manifest stores the manifest of an image under a tag.
func (r *Registry) manifest(repository, tag string, config map[string]any, layers ...any) error {
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": ociManifest, "config": config, "layers": layers})
	if err != nil {
		return err
	}
	for _, reference := range []string{tag, digest(manifest)} {
		r.content[repository+"/manifests/"+reference] = served{mediaType: ociManifest, body: manifest}
	}
	return nil
}

// Address returns the address of the server.
func (r *Registry) Address() string { return strings.TrimPrefix(r.server.URL, "http://") }

// blob stores content and returns its descriptor.
func (r *Registry) blob(repository, mediaType string, body []byte) map[string]any {
	r.content[repository+"/blobs/"+digest(body)] = served{mediaType: "application/octet-stream", body: body}
	return map[string]any{"mediaType": mediaType, "digest": digest(body), "size": len(body)}
}

func digest(body []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(body)) }

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	path := strings.TrimPrefix(req.URL.Path, "/v2/")
	r.mu.Lock()
	found, ok := r.content[path]
	r.mu.Unlock()
	switch {
	case path == "":
		w.WriteHeader(http.StatusOK)
	case !ok:
		http.NotFound(w, req)
	default:
		w.Header().Set("Content-Type", found.mediaType)
		w.Header().Set("Docker-Content-Digest", digest(found.body))
		w.Header().Set("Content-Length", fmt.Sprint(len(found.body)))
		if req.Method != http.MethodHead {
			_, _ = w.Write(found.body)
		}
	}
}
