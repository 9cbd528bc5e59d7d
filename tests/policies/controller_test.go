package policies

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The controller process of these tests runs without leader election, which needs a Pod.
func TestControllerMayElectLeader(t *testing.T) {
	w := newWorld(t)
	account := w.as(controllerName)
	config, err := clientcmd.BuildConfigFromFlags("", account.Kubeconfig)
	w.Must(err)
	clients, err := kubernetes.NewForConfig(config)
	w.Must(err)
	for _, identity := range []string{"first", "second"} { // the second one finds the lease
		lock := &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Name: "gating-controller-leader-election", Namespace: harness.RuntimeNamespace},
			Client:    clients.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}
		ctx, cancel := context.WithTimeout(w.Context(), harness.Patience)
		elected := false
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					defer cancel()
					elected = nil == harness.Eventually(ctx, harness.Patience, "the lease is renewed", func() error {
						record, _, err := lock.Get(ctx)
						if err == nil && (record.HolderIdentity != identity || !record.RenewTime.After(record.AcquireTime.Time)) {
							err = errors.New("not yet")
						}
						return err
					})
				},
				OnStoppedLeading: func() {},
			},
		})
		cancel()
		if !elected {
			t.Errorf("%s was not elected", identity)
		}
	}
}

// deployment returns the Deployment of config/default.
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
	w.Fatal("config/default has no Deployment")
	return nil
}

// The namespace is the one of config/default, with its labels.
func TestPodIsAdmittedInRestrictedNamespace(t *testing.T) {
	w := newWorld(t)
	template := w.deployment().Spec.Template
	for cause, change := range map[string]func(*corev1.PodSpec, *corev1.SecurityContext){
		"": func(*corev1.PodSpec, *corev1.SecurityContext) {},
		"must not set securityContext.privileged=true": func(_ *corev1.PodSpec, s *corev1.SecurityContext) {
			s.Privileged, s.AllowPrivilegeEscalation = ptr.To(true), nil
		},
		"host namespaces":                   func(p *corev1.PodSpec, _ *corev1.SecurityContext) { p.HostNetwork = true },
		"runAsNonRoot != true":              func(_ *corev1.PodSpec, s *corev1.SecurityContext) { s.RunAsNonRoot = nil },
		"unrestricted capabilities":         func(_ *corev1.PodSpec, s *corev1.SecurityContext) { s.Capabilities = nil },
		"seccompProfile":                    func(_ *corev1.PodSpec, s *corev1.SecurityContext) { s.SeccompProfile = nil },
		"allowPrivilegeEscalation != false": func(_ *corev1.PodSpec, s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = nil },
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Namespace: harness.RuntimeNamespace, Labels: template.Labels},
			Spec:       *template.Spec.DeepCopy(),
		}
		change(&pod.Spec, pod.Spec.Containers[0].SecurityContext)
		err := cluster.Client.Create(t.Context(), pod, client.DryRunAll)
		if cause == "" && err != nil || cause != "" && (err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) || !strings.Contains(err.Error(), cause)) {
			t.Errorf("got %v, want a refusal for %q", err, cause)
		}
	}
}

func TestContainerHasNoWritableFiles(t *testing.T) {
	w := newWorld(t)
	pod := w.deployment().Spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.InitContainers) > 0 || len(pod.Volumes) > 0 || len(pod.Containers[0].VolumeMounts) > 0 {
		t.Errorf("containers %+v, volumes %+v", pod.Containers, pod.Volumes)
	}
	if readOnly := pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
		t.Error("the root is not read-only")
	}
}

// The API server checks the form of the policies. It does not enforce them, which is the task of the network plugin.
func TestPodIsSelectedByNetworkPolicies(t *testing.T) {
	w := newWorld(t)
	out, err := cluster.Kubectl(w.Context(), "--namespace="+harness.RuntimeNamespace, "get", "networkpolicies", "-o=jsonpath={range .items[*]}{.metadata.name} {.spec.podSelector.matchLabels.app\\.kubernetes\\.io/name} {.spec.policyTypes}{\"\\n\"}{end}")
	w.Must(err)
	app := w.deployment().Spec.Template.Labels["app.kubernetes.io/name"]
	if app == "" {
		t.Fatal("the Pod lacks the name label for the selector")
	}
	want := "gating-controller-allow-egress " + app + ` ["Egress"]` + "\n" +
		"gating-controller-deny " + app + ` ["Ingress","Egress"]` + "\n"
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

// The controller annotates Machines with the role of config/machines, but only for writers who may annotate them themselves.
func TestMachineCertificateRefreshNeedsPatchOnMachines(t *testing.T) {
	w := newWorld(t)
	w.Must(w.InstallComponent(w.Context(), "machines"))
	t.Cleanup(func() {
		if err := w.RemoveComponent(context.WithoutCancel(w.Context()), "machines"); err != nil {
			t.Error(err)
		}
	})
	const editor, viewer = "machine-certificate-refresh-editor", "machine-certificate-refresh-viewer"
	mallory, olga := w.as("mallory", editor, viewer), w.as("olga", editor, viewer)
	w.bind(olga.Name, false, "patch", nil, "machines.cluster.x-k8s.io")

	machine := harness.Object("cluster.x-k8s.io/v1beta2", "Machine", w.Key("a"))
	machine.SetAnnotations(map[string]string{"machine.cluster.x-k8s.io/certificates-expiry": time.Now().Add(72 * time.Hour).UTC().Format(time.RFC3339)})
	machine.Object["spec"] = map[string]any{"clusterName": "c", "bootstrap": map[string]any{"dataSecretName": "s"},
		"infrastructureRef": map[string]any{"kind": "K", "name": "n", "apiGroup": "a.example.com"}}
	w.Create(machine)
	w.Gate("nights", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	file := `{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"MachineCertificateRefresh","metadata":{"name":"nodes"},"spec":{"gateRefs":[{"name":"nights"}]}}`
	cause := "may not write machine certificate refresh " + w.Namespace + "/nodes: that needs the verb patch on machines.cluster.x-k8s.io"
	w.until("the policy is in force", func() (bool, any) {
		out, err := mallory.kubectl(w.Context(), w.Namespace, "create --dry-run=server -f "+file)
		return err != nil && strings.Contains(out, cause), out
	})
	w.allowed(olga, "create -f "+file)
	w.refused(mallory, cause, `patch gtmcr nodes --type=merge -p {"spec":{"ttl":"2y"}}`)
	w.refused(mallory, cause, "annotate gtmcr nodes reconcile.fluxcd.io/requestedAt=now")
	requests := func(want string) {
		w.until("the Machine has the request "+want, func() (bool, any) {
			w.Read(machine)
			return machine.GetAnnotations()["v1beta2.k8sd.io/refresh-certificates"] == want, machine.GetAnnotations()
		})
	}
	requests("1y")
	w.allowed(olga, "delete", "gtmcr", "nodes")
	requests("")
}
