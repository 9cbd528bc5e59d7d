package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const namespace = "flux-system"

// world is a copy of the sample, and a user with all permissions in both clusters.
type world struct {
	testing.TB
	dir, kubeconfig string
	in              map[*member]*harness.World
}

// newWorld cleans up the clusters after the test. No other test runs at the same time.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{TB: t, dir: t.TempDir(), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), in: map[*member]*harness.World{}}
	sample := os.DirFS(filepath.Join(harness.Root(), "config", "samples", "fleet"))
	w.must(fs.WalkDir(sample, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(w.dir, path), 0o700))
		}
		content, err := fs.ReadFile(sample, path)
		return errors.Join(err, os.WriteFile(filepath.Join(w.dir, path), []byte(inTheFuture.Replace(string(content))), 0o700))
	}))
	all := clientcmd.NewDefaultClientConfig(*must(clientcmd.LoadFromFile(canary.Kubeconfig)), nil)
	config := must(all.RawConfig())
	for _, m := range members {
		one := must(clientcmd.LoadFromFile(m.Kubeconfig))
		config.Clusters[m.name], config.AuthInfos[m.name] = one.Clusters[one.CurrentContext], one.AuthInfos[one.CurrentContext]
		context := one.Contexts[one.CurrentContext]
		context.Cluster, context.AuthInfo = m.name, m.name
		config.Contexts[m.name] = context
		w.in[m] = &harness.World{TB: t, ControlPlane: m.ControlPlane, Namespace: namespace}
		w.in[m].ShowLogs(func() []*harness.Process { return []*harness.Process{m.gating, m.kustomize} })
		m.Documented(t, namespace)
	}
	config.CurrentContext = ""
	w.must(clientcmd.WriteToFile(config, w.kubeconfig))
	return w
}

// inTheFuture moves the freeze of the sample out of the time of a test.
var inTheFuture = strings.NewReplacer("2026-", "2086-", "2027-", "2087-")

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// gates applies the Gate and the GateReceiver of the sample without Flux.
func (w *world) gates() {
	w.Helper()
	for _, m := range members {
		for _, file := range []string{"gate.yaml", "receiver.yaml"} {
			must(m.Kubectl(w.Context(), "apply", "-f", filepath.Join(w.dir, "gates", "base", file)))
		}
		w.in[m].Opened("fleet", metav1.ConditionTrue)
	}
}

// output is the printed text and the exit code of a command.
type output struct {
	out, errOut string
	code        int
}

// last is the last line on standard error.
func (s output) last() string {
	lines := strings.Split(strings.TrimSpace(s.errOut), "\n")
	return lines[len(lines)-1]
}

// sh runs a script in the folder of the sample. env has precedence over other variables.
func (w *world) sh(text string, env ...string) output {
	w.Helper()
	path := programs + ":" + filepath.Join(harness.Tools(), "bin") + ":" + os.Getenv("PATH")
	for _, program := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			path = filepath.Join(programs, "standins") + ":" + path
		}
	}
	var out, errOut strings.Builder
	shell := exec.CommandContext(w.Context(), "sh", "-euc", text)
	shell.Dir, shell.Stdout, shell.Stderr = w.dir, &out, &errOut
	shell.Env = append(append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "TZ=UTC", "HOME="+w.dir, "PATH="+path), env...)
	err := shell.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	return output{out.String(), errOut.String(), shell.ProcessState.ExitCode()}
}

// closedBy waits until the Gate of a cluster is closed and has a close request of a requester.
func (w *world) closedBy(m *member, by string) {
	w.Helper()
	w.in[m].Opened("fleet", metav1.ConditionFalse)
	w.in[m].Eventually("the request is in the status", func() error {
		requests := w.in[m].ReadGate("fleet").Status.Requests
		for _, r := range requests {
			if r.RequestedBy == by && r.Action == v1alpha1.RequestClose {
				return nil
			}
		}
		return fmt.Errorf("%s: the requests are %+v", m.name, requests)
	})
}

// opened waits until the Gate of a cluster is open.
func (w *world) opened(m *member) {
	w.Helper()
	w.in[m].Opened("fleet", metav1.ConditionTrue)
}

// publish publishes the folder of the sample to both clusters, as one revision.
func (w *world) publish(git *harness.ArtifactServer, revision string) {
	w.Helper()
	files := map[string]string{}
	w.must(filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		name, relErr := filepath.Rel(w.dir, path)
		files[name] = string(content)
		return errors.Join(err, relErr)
	}))
	for _, m := range members {
		w.must(git.Publish(w.Context(), m.Client, client.ObjectKey{Namespace: namespace, Name: "flux-system"}, revision, files))
	}
}

// bootstrap acts like flux bootstrap with the folder of each cluster, with an ExternalArtifact instead of the GitRepository.
func (w *world) bootstrap(git *harness.ArtifactServer) {
	w.Helper()
	w.write("apps/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: flux-system}\ndata: {is: v1}\n")
	w.publish(git, "v1")
	for _, m := range members {
		folder := filepath.Join(w.dir, "clusters", m.name)
		for _, name := range []string{"gates", "apps"} {
			content := string(must(os.ReadFile(filepath.Join(folder, name+".yaml"))))
			file := filepath.Join(w.TempDir(), name+".yaml")
			w.must(os.WriteFile(file, []byte(strings.ReplaceAll(content, "kind: GitRepository", "kind: ExternalArtifact")), 0o600))
			must(m.Kubectl(w.Context(), "apply", "-f", file))
		}
		w.Cleanup(func() {
			ctx := context.WithoutCancel(w.Context())
			_, err := m.Kubectl(ctx, "-n", namespace, "delete", "kustomizations,externalartifacts,configmaps,alerts", "--all", "--timeout=1m")
			if err != nil {
				w.Error(err)
			}
		})
		must(m.Kubectl(w.Context(), "-n", namespace, "wait", "--for=condition=ready", "kustomization/apps", "--timeout=2m"))
	}
}

func (w *world) write(path, content string) {
	w.Helper()
	path = filepath.Join(w.dir, path)
	w.must(errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)))
}
