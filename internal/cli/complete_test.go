package cli

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// runAs executes a command line whose first word is the program, and returns its standard output and exit code.
func runAs(t *testing.T, line string) (string, int) {
	t.Helper()
	var out, errOut bytes.Buffer
	args := strings.Split(line, " ")
	code := Run(args, genericiooptions.IOStreams{In: nil, Out: &out, ErrOut: &errOut}, testclock.NewFakeClock(now))
	if code != 0 {
		t.Logf("%s: %s", line, errOut.String())
	}
	return out.String(), code
}

func TestCompletionWithoutCluster(t *testing.T) {
	formats := strings.Join(genericclioptions.NewPrintFlags("").AllowedFormats(), "\n") + "\n"
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for line, want := range map[string]string{
		"kubectl-gate __complete exception --default ":           "closed\nopened\n:4\n",
		"kubectl-gate __complete --color a":                      "always\nauto\n:4\n",
		"kubectl-gate __complete approve --dry-run s":            "server\n:4\n",
		"kubectl-gate __complete open ":                          ":4\n",
		"kubectl-gate __complete list -o w":                      "wide\n:4\n",
		"kubectl-gate __complete history -o c":                   "csv\n:4\n",
		"kubectl-gate __complete preview -o ":                    "ics\nsvg\n" + formats + ":4\n",
		"kubectl-gate __complete diff --output ":                 formats + ":4\n",
		"kubectl-gate __complete preview --state ":               "opened\nclosed\n:4\n",
		"kubectl-gate __complete list --status-selector ready=f": "ready=false\n:4\n",
		"kubectl-gate __complete list --status-selector opened=": "opened=true\nopened=false\n:4\n",
		"kubectl-gate __complete list --timezone Europe/Os":      "Europe/Oslo\n:4\n",
		"kubectl-gate __complete approve ":                       "exception/\ngate/\nsource/\n:6\n",
		"kubectl-gate __complete approve so":                     "source/\n:6\n",
		"kubectl-gate __complete approve exception/":             ":4\n",
		"kubectl-gate __complete history s":                      "source/\n:6\n",
		"kubectl-gate __complete open g":                         "gate/\n:6\n",
		"kubectl-gate __complete check ":                         ":4\n",
		"kubectl-gate __complete -n ":                            ":4\n",
		"kubectl-gate __complete preview -f ":                    ":0\n",
		"/bin/kubectl_complete-gate --color n":                   "never\n:4\n",
		"C:/kubectl_complete-gate.exe --color n":                 "never\n:4\n",
	} {
		if got, code := runAs(t, line); got != want || code != 0 {
			t.Errorf("%s: exit %d, %q, want %q", line, code, got, want)
		}
	}
}

func TestContextsAreCompletedFromTheKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte("{apiVersion: v1, kind: Config, contexts: [{name: test, context: {}}, {name: prod, context: {}}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := runAs(t, "kubectl-gate __complete --kubeconfig "+path+" --context "); got != "prod\ntest\n:4\n" {
		t.Errorf("%q", got)
	}
}

// A cluster that accepts connections but never responds.
func TestKindCompletionDoesNotWaitForSlowCluster(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	began := time.Now()
	s := &kube.Factory{Terminal: &term.Terminal{Clock: testclock.NewFakeClock(now), Program: term.PluginName}}
	root := newRoot(s)
	root.SetContext(t.Context())
	address := "http://" + listener.Addr().String()
	s.Flags.APIServer, s.Flags.CacheDir = &address, ptr.To(t.TempDir())
	if got, _ := (completion{Factory: s}).completeObject(root, nil, "kustomization/"); len(got) > 0 || time.Since(began) > 15*time.Second {
		t.Errorf("%q after %s", got, time.Since(began))
	}
}

func TestCompletionTimesOut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	began := time.Now()
	got, code := runAs(t, "kubectl-gate __complete --server http://"+listener.Addr().String()+" open ")
	if took := time.Since(began); got != ":4\n" || code != 0 || took > 15*time.Second {
		t.Errorf("exit %d, %q after %s", code, got, took)
	}
}

func TestKindsAreCompletedBeforeNames(t *testing.T) {
	s := &kube.Factory{Terminal: &term.Terminal{}}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if got, _ := runAs(t, "kubectl-gate __complete why ku"); got != "kustomization/\n:6\n" {
		t.Errorf("%q", got)
	}
	if got, directive := (completion{Factory: s}).completeObject(nil, []string{"kustomization/apps"}, ""); got != nil || directive != 4 {
		t.Errorf("%q, %d", got, directive)
	}
}

func TestTextsNameFluxPlugin(t *testing.T) {
	for _, line := range []string{"/home/me/.fluxcd/plugins/flux-gate", "flux-gate.exe"} {
		for _, command := range []string{" --help", " open --help", " exception --help", " check --help", " approve --help"} {
			got, code := runAs(t, line+command)
			if code != 0 || strings.Contains(got, "kubectl gate") || !strings.Contains(got, "flux gate") {
				t.Errorf("%s: exit %d: %s", line+command, code, got)
			}
		}
	}
	if got, _ := runAs(t, "kubectl-gate open --help"); strings.Contains(got, "flux gate") || !strings.Contains(got, "kubectl gate open NAME...") {
		t.Error(got)
	}
}

func TestK9sCommandsExist(t *testing.T) {
	raw, err := os.ReadFile("../../config/k9s/plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Plugins map[string]struct {
			ShortCut, Description, Command string
			Scopes, Args                   []string
			Confirm, Override, Background  bool
		}
	}
	if err := yaml.UnmarshalStrict(raw, &file); err != nil || len(file.Plugins) < 5 {
		t.Fatal(len(file.Plugins), err)
	}
	used := map[string]string{}
	for name, plugin := range file.Plugins {
		line := strings.Join(append([]string{plugin.Command}, plugin.Args...), " ")
		words := strings.Fields(regexp.MustCompile(`kubectl gate ([^|]*?)( 2>&1|$)`).FindStringSubmatch(line)[1])
		root := newRoot((&kube.Factory{Terminal: &term.Terminal{Program: term.PluginName}}))
		cmd, _, err := root.Find(words)
		if err != nil || cmd == root {
			t.Errorf("%s: there is no command %s: %v", name, words[0], err)
			continue
		}
		if err := cmd.ParseFlags(words[1:]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, scope := range plugin.Scopes {
			if other := used[scope+plugin.ShortCut]; other != "" {
				t.Errorf("%s and %s have the same shortcut", name, other)
			}
			used[scope+plugin.ShortCut] = name
		}
		if changes := slices.Contains([]string{"open", "close", "approve"}, words[0]); plugin.Confirm != changes || plugin.Description == "" || plugin.ShortCut == "" {
			t.Errorf("%s: %+v", name, plugin)
		}
		if words[0] == "open" && (cmd.Flags().Lookup("for").Value.String() != "1h" || plugin.Description != "Open gate for 1h") {
			t.Errorf("%s opens without an end: %+v", name, plugin)
		}
	}
}

// A cluster that has only the kind Kustomization.
func TestOnlyInstalledKindsAreCompleted(t *testing.T) {
	answers := map[string]string{
		"/api":                                 `{"kind":"APIVersions","versions":[]}`,
		"/apis":                                `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"kustomize.toolkit.fluxcd.io","versions":[{"groupVersion":"kustomize.toolkit.fluxcd.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"kustomize.toolkit.fluxcd.io/v1","version":"v1"}}]}`,
		"/apis/kustomize.toolkit.fluxcd.io/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"kustomize.toolkit.fluxcd.io/v1","resources":[{"name":"kustomizations","singularName":"kustomization","namespaced":true,"kind":"Kustomization","verbs":["list"]}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answers[r.URL.Path] == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(answers[r.URL.Path]))
	}))
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if got, _ := runAs(t, "kubectl-gate __complete --cache-dir "+t.TempDir()+" --server "+server.URL+" why "); got != "kustomization/\n:6\n" {
		t.Errorf("%q", got)
	}
}
