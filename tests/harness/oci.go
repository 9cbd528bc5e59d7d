package harness

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

const (
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	fluxConfig  = "application/vnd.cncf.flux.config.v1+json"
	fluxContent = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// Registry is as much of an OCI registry on loopback as source-controller
// needs: it serves what Push has stored.
type Registry struct {
	server *httptest.Server
	mu     sync.Mutex
	// content by its path below /v2/<repository>/.
	content map[string]served
}

type served struct {
	mediaType string
	body      []byte
}

// StartRegistry starts one without content.
func StartRegistry() *Registry {
	r := &Registry{content: map[string]served{}}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	return r
}

// Stop ends the server.
func (r *Registry) Stop() { r.server.Close() }

// URL returns the address of a repository for an OCIRepository.
func (r *Registry) URL(repository string) string {
	return "oci://" + strings.TrimPrefix(r.server.URL, "http://") + "/" + repository
}

// Push stores files as an artifact of Flux under a tag.
func (r *Registry) Push(repository, tag string, files map[string]string) error {
	layer, err := tarball(files)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2,
		"mediaType":     ociManifest,
		"config":        r.blob(repository, fluxConfig, []byte("{}")),
		"layers":        []any{r.blob(repository, fluxContent, layer)},
	})
	if err != nil {
		return err
	}
	for _, reference := range []string{tag, digest(manifest)} {
		r.content[repository+"/manifests/"+reference] = served{mediaType: ociManifest, body: manifest}
	}
	return nil
}

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
