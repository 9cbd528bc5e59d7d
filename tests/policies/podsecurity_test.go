package policies

import (
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// deployment returns that of config/default.
func (w *world) deployment() *appsv1.Deployment {
	w.Helper()
	rendered, err := harness.Kustomize(filepath.Join(harness.Root(), "config", "default"))
	w.Must(err)
	for _, document := range strings.Split(rendered, "\n---\n") {
		if strings.Contains(document, "\nkind: Deployment\n") {
			d := &appsv1.Deployment{}
			w.Must(yaml.UnmarshalStrict([]byte(document), d))
			return d
		}
	}
	w.Fatal("there is none")
	return nil
}

// The namespace is that of config/default, with its labels.
func TestThePodIsAdmittedInTheRestrictedNamespaceAndAPrivilegedOneIsNot(t *testing.T) {
	w := newWorld(t)
	template := w.deployment().Spec.Template
	for name, tc := range map[string]struct {
		change func(*corev1.PodSpec)
		cause  string
	}{
		"as it is": {func(*corev1.PodSpec) {}, ""},
		"privileged": {func(p *corev1.PodSpec) {
			p.Containers[0].SecurityContext.Privileged, p.Containers[0].SecurityContext.AllowPrivilegeEscalation = ptr.To(true), nil
		}, "must not set securityContext.privileged=true"},
		"with the host's network":  {func(p *corev1.PodSpec) { p.HostNetwork = true }, "host namespaces"},
		"as root":                  {func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.RunAsNonRoot = nil }, "runAsNonRoot != true"},
		"with more capabilities":   {func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.Capabilities = nil }, "unrestricted capabilities"},
		"without seccomp":          {func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.SeccompProfile = nil }, "seccompProfile"},
		"with more privileges yet": {func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil }, "allowPrivilegeEscalation != false"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Namespace: harness.RuntimeNamespace, Labels: template.Labels},
				Spec:       *template.Spec.DeepCopy(),
			}
			tc.change(&pod.Spec)
			err := cluster.Client.Create(t.Context(), pod, client.DryRunAll)
			switch {
			case tc.cause == "" && err != nil:
				t.Error(err)
			case tc.cause != "" && (err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) || !strings.Contains(err.Error(), tc.cause)):
				t.Errorf("got %v, want a refusal for %q", err, tc.cause)
			}
		})
	}
}

func TestTheContainerHasNothingToWriteOn(t *testing.T) {
	w := newWorld(t)
	pod := w.deployment().Spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.InitContainers) > 0 || len(pod.Volumes) > 0 || len(pod.Containers[0].VolumeMounts) > 0 {
		t.Errorf("containers %+v, volumes %+v", pod.Containers, pod.Volumes)
	}
	if readOnly := pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
		t.Error("the root is not read-only")
	}
}

// The API server checks the form of the policies, but nothing enforces them
// here: that is the network plugin's.
func TestThePodIsSelectedByEveryNetworkPolicy(t *testing.T) {
	w := newWorld(t)
	out, err := cluster.Kubectl(w.Context(), "--namespace="+harness.RuntimeNamespace, "get", "networkpolicies", "-o=jsonpath={range .items[*]}{.metadata.name} {.spec.podSelector.matchLabels.app\\.kubernetes\\.io/name} {.spec.policyTypes}{\"\\n\"}{end}")
	w.Must(err)
	app := w.deployment().Spec.Template.Labels["app.kubernetes.io/name"]
	if app == "" {
		t.Fatal("the Pod has no name to select it by")
	}
	want := "gating-controller-allow-egress " + app + ` ["Egress"]` + "\n" +
		"gating-controller-deny " + app + ` ["Ingress","Egress"]` + "\n"
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}
