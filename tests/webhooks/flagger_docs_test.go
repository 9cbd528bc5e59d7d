package webhooks

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// flaggerHost is the host of the server for Flagger in the docs.
const flaggerHost = "gating-flagger.gating-system"

// flaggerPage is docs/guides/flagger.md in a separate folder, with its manifests as files and a copy of config.
type flaggerPage struct {
	*flaggerProcess
	dir      string
	commands []string
	// hooks are the webhooks of its canary.
	hooks []canaryHook
}

type canaryHook struct {
	Type     string            `json:"type"`
	URL      string            `json:"url"`
	Metadata map[string]string `json:"metadata"`
}

// fileName matches the file name of a manifest on the page.
var fileName = regexp.MustCompile(`^# ([a-z]+\.yaml)\n`)

func readFlaggerPage(w *harness.World) *flaggerPage {
	w.Helper()
	page := &flaggerPage{dir: w.TempDir()}
	w.Must(os.CopyFS(filepath.Join(page.dir, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))))
	for _, block := range markdown.BlocksOf(w, "docs/guides/flagger.md", "sh", "yaml") {
		switch file := fileName.FindStringSubmatch(block.Text); {
		case block.Language == "sh":
			page.commands = append(page.commands, block.Text)
		case file != nil:
			w.Must(os.WriteFile(filepath.Join(page.dir, file[1]), []byte(block.Text), 0o600))
		default:
			var canary struct {
				Spec struct {
					Analysis struct {
						Webhooks []canaryHook `json:"webhooks"`
					} `json:"analysis"`
				} `json:"spec"`
			}
			w.Must(yaml.Unmarshal([]byte(block.Text), &canary))
			page.hooks = append(page.hooks, canary.Spec.Analysis.Webhooks...)
		}
	}
	return page
}

// run runs a command as written, except that the host of the docs resolves to the test server.
func (p *flaggerPage) run(command string) {
	p.Helper()
	curlrc := "connect-to = " + flaggerHost + ":80:" + p.address + "\nnoproxy = *\n"
	p.Must(os.WriteFile(filepath.Join(p.dir, ".curlrc"), []byte(curlrc), 0o600))
	reader := docs.Reader{Kubeconfig: p.Kubeconfig, Folder: p.dir, Path: []string{p.dir}, Env: []string{"CURL_HOME=" + p.dir}}
	if out, err := reader.Bash(p.Context(), command); err != nil {
		p.Fatalf("%s: %v: %s", command, err, out)
	}
}

// responds returns an error unless the webhooks of the canary get the expected status codes.
func (p *flaggerPage) responds(codes map[string]int) error {
	for _, hook := range p.hooks {
		path, ok := strings.CutPrefix(hook.URL, "http://"+flaggerHost)
		code, wanted := codes[hook.Type]
		if !ok || !wanted {
			return harness.Permanent(fmt.Errorf("unexpected webhook %+v", hook))
		}
		body, err := json.Marshal(map[string]any{"name": "podinfo", "namespace": "test", "phase": "Progressing", "metadata": hook.Metadata})
		if err != nil {
			return err
		}
		if err := p.returns(path, string(body), code); err != nil {
			return err
		}
	}
	return nil
}

func TestFlaggerPage(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	page := readFlaggerPage(w)
	if len(page.commands) != 5 || len(page.hooks) != 3 {
		t.Fatalf("%d commands and %d webhooks on the page", len(page.commands), len(page.hooks))
	}
	page.flaggerProcess = startFlagger(w)
	w.Documented(t, "test")
	w.Create(&v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: "test"}, Spec: v1alpha1.GateSpec{Default: v1alpha1.StateOpened}})
	mayReadSecrets(w, "test")

	page.run(page.commands[0])
	isServed(w)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(page.dir, "kubectl-gate"), "./cmd/kubectl-gate")
	build.Dir = harness.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	page.run(page.commands[1])
	page.receiverIsReady("test", "podinfo-close")
	const yes, no = http.StatusOK, http.StatusForbidden
	for i, want := range []map[string]int{
		{"confirm-rollout": yes, "confirm-promotion": no, "rollback": no},
		{"confirm-rollout": yes, "confirm-promotion": yes, "rollback": no},
		{"confirm-rollout": yes, "confirm-promotion": no, "rollback": no},
		{"confirm-rollout": yes, "confirm-promotion": no, "rollback": yes},
	} {
		if i > 0 {
			page.run(page.commands[i+1])
		}
		page.Eventually(fmt.Sprintf("after %s, Flagger gets %v", page.commands[i+1], want), func() error { return page.responds(want) })
	}
}

// isServed checks that the parts of config/flagger are consistent, and deletes the Deployment, because the test runs the process itself.
func isServed(w *harness.World) {
	w.Helper()
	deployment, service, policy := &appsv1.Deployment{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}
	for name, obj := range map[string]client.Object{"gating-controller": deployment, "gating-flagger": service, "gating-controller-allow-flagger": policy} {
		obj.SetNamespace(harness.RuntimeNamespace)
		obj.SetName(name)
		w.Read(obj)
	}
	pod := deployment.Spec.Template
	container := pod.Spec.Containers[0]
	i := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == service.Spec.Ports[0].TargetPort.StrVal })
	if i < 0 || !slices.Contains(container.Args, fmt.Sprintf("--flagger-addr=:%d", container.Ports[i].ContainerPort)) {
		w.Fatalf("the service sends to %v, the container has the ports %v and the flags %v", service.Spec.Ports, container.Ports, container.Args)
	}
	if service.Spec.Ports[0].Port != 80 || !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
		w.Errorf("the service is %+v", service.Spec)
	}
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil || !selector.Matches(labels.Set(pod.Labels)) || policy.Spec.Ingress[0].Ports[0].Port.IntVal != container.Ports[i].ContainerPort {
		w.Errorf("the network policy is %+v: %v", policy.Spec, err)
	}
	w.Must(client.IgnoreNotFound(w.Client.Delete(w.Context(), deployment)))
}
