package see

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/fluxcd/gating-controller/internal/dryrun"
	"github.com/fluxcd/gating-controller/internal/explain"
)

// The API server of the tests has no source-controller behind a Service.
func TestArtifactsAreReadThroughAPIServer(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	defer server.Close()
	asks, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	open := throughAPIServer(asks)
	for address, want := range map[string]string{
		"http://source-controller.flux-system.svc.cluster.local./gitrepository/a/b/c.tar.gz": "/api/v1/namespaces/flux-system/services/http:source-controller:80/proxy/gitrepository/a/b/c.tar.gz",
		"http://sources.flux:9090/x.tar.gz":                                                  "/api/v1/namespaces/flux/services/http:sources:9090/proxy/x.tar.gz",
	} {
		body, err := open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != want || body.Close() != nil {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
	for _, address := range []string{"http://10.0.0.1/x", "http://localhost/x", "http://files.example.com/x", "http://[::1"} {
		if _, err := open(t.Context(), address); err == nil {
			t.Errorf("%s is opened", address)
		}
	}
	code = http.StatusForbidden
	if _, err := open(t.Context(), "http://source-controller.flux-system/x"); err == nil || !strings.Contains(err.Error(), "port-forward svc/source-controller 8080:80") {
		t.Error(err)
	}
}

func TestCommitsBetweenRevisions(t *testing.T) {
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
	for want, w := range map[string]explain.Waiting{
		"git log --oneline 111111111111..222222222222 in apps": {Revision: "main@sha1:" + one, Waits: "main@sha1:" + two},
		"": {Revision: "latest@sha256:" + one, Waits: "main@sha1:" + two},
	} {
		if got := commits(&pendingItem{w, &pendingDiff{url: "https://example.com/team/apps.git"}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := formatValue(map[string]any{"a": strings.Repeat("é", maxValueLength)}); len(got) > maxValueLength+3 || !strings.HasSuffix(got, "é...") {
		t.Error(got)
	}
	unknown := found{Changes: []dryrun.Change{{Action: dryrun.Unknown}}}
	for _, d := range []pendingDiff{{found: unknown}, {found: found{Cause: "no source"}}, {Users: []userDiff{{}, {found: unknown}}}} {
		if d.isWhole() {
			t.Errorf("what is unknown is known: %+v", d)
		}
	}
}

func TestSourceKeepsOnlyNewestRevision(t *testing.T) {
	source := &unstructured.Unstructured{Object: map[string]any{
		"kind": "GitRepository", "metadata": map[string]any{"name": "apps"}, "status": map[string]any{"artifact": map[string]any{"revision": "main@sha1:b"}},
	}}
	if got := missingArtifact(source, "main@sha1:b"); got != "" {
		t.Error(got)
	}
	if got, want := missingArtifact(source, "main@sha1:a"), "GitRepository/apps has main@sha1:b, and keeps no other revision"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if missingArtifact(nil, "main@sha1:a") != noSource {
		t.Error("a source that does not exist has a revision")
	}
}
