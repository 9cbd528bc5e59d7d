package dryrun_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxcd/gating-controller/internal/dryrun"
)

// packed returns a tar.gz of one file.
func packed(t *testing.T, name, content string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))})
	if err == nil {
		_, err = io.WriteString(archive, content)
	}
	if err := errors.Join(err, archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func source(url, digest string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"artifact": map[string]any{"url": url, "digest": digest}}}}
}

func TestArtifactRequiresDigest(t *testing.T) {
	content, outside := packed(t, "apps/a.yaml", "a"), packed(t, "../a.yaml", "a")
	digest := func(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }
	for name, tc := range map[string]struct {
		source  *unstructured.Unstructured
		content []byte
		failure error
		want    string
	}{
		"as it is":               {source: source("u", digest(content)), content: content},
		"another":                {source: source("u", digest(outside)), content: content, want: "it may have changed in the meantime, try again"},
		"cut":                    {source: source("u", digest(content)), content: content[:10], want: "it may have changed in the meantime"},
		"no artifact":            {source: source("", ""), want: "the source has no artifact"},
		"a digest of other kind": {source: source("u", "sha1:00"), want: "only sha256 is supported"},
		"a file outside":         {source: source("u", digest(outside)), content: outside, want: "invalid name"},
		"no answer":              {source: source("u", digest(content)), failure: errors.New("refused"), want: "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "artifact")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			err := dryrun.Fetch(t.Context(), tc.source, dir, func(context.Context, string) (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader(tc.content)), tc.failure
			})
			_, missing := os.Stat(filepath.Join(dir, "apps", "a.yaml"))
			if tc.want == "" && (err != nil || missing != nil) || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || missing == nil) {
				t.Errorf("%v, %v", err, missing)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*.tar.gz")); len(left) > 0 {
				t.Errorf("it leaves %v", left)
			}
		})
	}
}

func TestBuildReadsOnlyItsFolder(t *testing.T) {
	for name, tc := range map[string]struct{ file, content, path, want string }{
		"manifests":     {"apps/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "./apps", ""},
		"a path upward": {"apps/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "../../apps", ""},
		"no such path":  {"apps/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "./nowhere", "no such file"},
		"a remote base": {"kustomization.yaml", "resources: [https://example.com/base.yaml]\n", "", "remote"},
		"a file above":  {"apps/kustomization.yaml", "resources: [../../../outside.yaml]\n", "./apps", "outside"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "artifact")
			for file, content := range map[string]string{filepath.Join(dir, tc.file): tc.content, filepath.Join(parent, "outside.yaml"): "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: outside}\n"} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			ks := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"name": "apps", "namespace": "flux-system"},
				"spec": map[string]any{"path": tc.path, "commonMetadata": map[string]any{"labels": map[string]any{"team": "shop"}}},
			}}
			objects, err := dryrun.Build(t.Context(), fake.NewClientBuilder().Build(), ks, dir)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, %v", objects, err)
				}
				return
			}
			if err != nil || len(objects) != 1 || objects[0].GetName() != "a" || objects[0].GetLabels()["team"] != "shop" {
				t.Errorf("%v, %v", objects, err)
			}
		})
	}
}
