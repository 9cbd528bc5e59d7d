package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// newcomer is a user who follows docs/start/first-gate.md in a folder. The repository is on this machine instead of GitHub.
type newcomer struct {
	*world
	folder, repository string
}

// podinfo creates a repository with the parts of podinfo that the page needs: two tags, and a folder.
const podinfo = `
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
git init -q work && mkdir work/kustomize
for tag in 6.7.0 6.7.1; do
  printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: podinfo}\ndata: {version: %s}\n' "$tag" > work/kustomize/podinfo.yaml
  git -C work add . && git -C work commit -qm "$tag" && git -C work tag "$tag"
done
git clone -q --bare work podinfo.git
`

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	w, served := newWorld(t), t.TempDir()
	server, err := harness.StartGitServer(t.Context(), served)
	w.Must(err)
	t.Cleanup(server.Stop)
	if got := w.in(served, podinfo); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	return &newcomer{w, t.TempDir(), server.URL("podinfo")}
}

// atNoon sets the time zone of the Gate in a file so that it is noon there, and moves its close periods to the far future.
func (n *newcomer) atNoon(file string) {
	n.Helper()
	path := filepath.Join(n.folder, file)
	manifest, err := os.ReadFile(path)
	n.Must(err)
	zone := fmt.Sprintf("timeZone: Etc/GMT%+d", time.Now().UTC().Hour()-12)
	n.Must(os.WriteFile(path, []byte(strings.NewReplacer("timeZone: Europe/Oslo", zone, `"202`, `"209`).Replace(string(manifest))), 0o600))
}

// reads follows the blocks of a page.
func (n *newcomer) reads(blocks ...markdown.Block) {
	n.Helper()
	for _, b := range blocks {
		b.Text = strings.NewReplacer("https://github.com/stefanprodan/podinfo", n.repository, "targetNamespace: default", "targetNamespace: "+n.Namespace).Replace(b.Text)
		if strings.Contains(b.Text, "apply -f gate.yaml") {
			n.atNoon("gate.yaml")
		}
		n.follows(n.folder, b)
	}
}

func TestFirstGatePage(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	n.reads(n.blocksOf("start/first-gate.md")...)
	for _, kind := range []string{"gates", "kustomizations,gitrepositories", "configmap/podinfo"} {
		n.Eventually(kind+" are gone", func() error {
			if got := n.shell("kubectl get --ignore-not-found -o name " + kind); got != (output{}) {
				return fmt.Errorf("%+v", got)
			}
			return nil
		})
	}
}

func TestReadmeShowsFirstGate(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	var shown []markdown.Block
	for _, b := range n.blocksOf("../README.md") {
		if b.Language != "sh" {
			shown = append(shown, b)
		}
	}
	page := n.blocksOf("start/first-gate.md")
	if len(shown) != 3 || shown[0] != page[2] {
		t.Fatalf("the README has %d blocks, its Gate is\n%s\nbut the page has\n%s", len(shown), shown[0].Text, page[2].Text)
	}
	n.reads(page[0], page[1], shown[0], shown[1])
	n.isHeldBy(harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", n.Key("apps")), "production")
	n.Must(n.Merge(harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", n.Key("podinfo")), `{"spec":{"ref":{"tag":"6.7.1"}}}`))
	n.reads(shown[2])
}
