package harness

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ArtifactServer serves tar.gz artifacts on loopback, as source-controller does.
type ArtifactServer struct {
	server *httptest.Server
	mu     sync.Mutex
	files  map[string][]byte
}

// StartArtifactServer starts a server without artifacts.
func StartArtifactServer() *ArtifactServer {
	s := &ArtifactServer{files: map[string][]byte{}}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		content, ok := s.files[r.URL.Path]
		s.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	return s
}

// Stop stops the server.
func (s *ArtifactServer) Stop() { s.server.Close() }

// Publish publishes files, keyed by path, as a revision of an ExternalArtifact, and creates the ExternalArtifact if it is missing. A
// Kustomization that refers to it applies the files.
func (s *ArtifactServer) Publish(ctx context.Context, c client.Client, key client.ObjectKey, revision string, files map[string]string) error {
	content, err := Tarball(files)
	if err != nil {
		return err
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(content))
	path := "/" + digest + ".tar.gz"
	s.mu.Lock()
	s.files[path] = content
	s.mu.Unlock()

	obj := Object("source.toolkit.fluxcd.io/v1", "ExternalArtifact", key)
	if err := c.Create(ctx, obj); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := c.Get(ctx, key, obj); err != nil {
		return err
	}
	before := obj.DeepCopy()
	obj.Object["status"] = map[string]any{"artifact": map[string]any{
		"url": s.server.URL + path, "path": path[1:], "revision": revision, "digest": "sha256:" + digest,
		"lastUpdateTime": time.Now().UTC().Format(time.RFC3339), "size": int64(len(content)),
	}}
	return c.Status().Patch(ctx, obj, client.MergeFrom(before))
}

// Tarball returns a tar.gz with files, keyed by path.
func Tarball(files map[string]string) ([]byte, error) {
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write([]byte(files[name])); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err := zipped.Close()
	return buffer.Bytes(), err
}

// Object returns an object of any kind without content.
func Object(apiVersion, kind string, key client.ObjectKey) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	return obj
}
