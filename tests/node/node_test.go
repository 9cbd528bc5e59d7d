package node

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestPodMatchesManifest(t *testing.T) {
	w := newWorld(t)
	pod := w.pod()
	pid := w.processOf(pod)
	for name, want := range map[string]string{"Uid": "65532", "Gid": "65532", "CapEff": "0000000000000000", "CapBnd": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2"} {
		if got := w.field(pid, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", pid))
	w.Must(err)
	if root := strings.Fields(string(mounts)); root[1] != "/" || !strings.HasPrefix(root[3], "ro,") {
		t.Errorf("the root file system is %q", root[:4])
	}
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, "http://"+pod.Status.PodIP+":8080/metrics", nil)
	w.Must(err)
	response, err := http.DefaultClient.Do(request)
	w.Must(err)
	metrics, err := io.ReadAll(response.Body)
	w.Must(errors.Join(err, response.Body.Close()))
	if !regexp.MustCompile(`gating_build_info{.*version="` + regexp.QuoteMeta(latest) + `"} 1`).Match(metrics) {
		t.Errorf("the metrics do not name the version %s", latest)
	}

	t.Logf("Ready %s after the start of the container", becameReady(pod))

	// This needs the permissions of the Pod's service account.
	g := w.targets("closed", v1alpha1.StateClosed, 1)
	w.settles(g, true)
	w.opens(g)
}

// The security context constraints restricted-v2 of OpenShift set a user and a group of the namespace, and refuse any other.
func TestPodRunsAsAnyUser(t *testing.T) {
	w := newWorld(t)
	t.Cleanup(w.restore)
	_, err := w.Kubectl(w.Context(), "-n", harness.RuntimeNamespace, "patch", "deployment", "gating-controller", "--field-manager=openshift", "--patch",
		`{"spec":{"template":{"spec":{"securityContext":{"fsGroup":1000650000},"containers":[{"name":"manager","securityContext":{"runAsUser":1000650000,"runAsGroup":0}}]}}}}`)
	w.Must(err)
	w.Must(rolledOut(w.Context()))
	w.Eventually("one pod is left", func() error {
		if pods := w.pods(); len(pods) != 1 {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
	pid := w.processOf(w.pod())
	for name, want := range map[string]string{"Uid": "1000650000", "Gid": "0"} {
		if got := w.field(pid, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	g := w.targets("closed", v1alpha1.StateClosed, 1)
	w.settles(g, true)
	w.opens(g)
	_, err = w.Kubectl(w.Context(), "-n", harness.RuntimeNamespace, "patch", "deployment", "gating-controller", "--type=json", "--patch",
		`[{"op":"remove","path":"/spec/template/spec/securityContext"},{"op":"remove","path":"/spec/template/spec/containers/0/securityContext/runAsUser"},{"op":"remove","path":"/spec/template/spec/containers/0/securityContext/runAsGroup"}]`)
	w.Must(err)
	w.Must(rolledOut(w.Context()))
}

func TestOtherReplicaLeadsWhenFirstHangs(t *testing.T) {
	w := newWorld(t)
	g := w.targets("closed", v1alpha1.StateClosed, 3)
	w.settles(g, true)
	w.Must(install(w.Context(), latest, 2))
	t.Cleanup(w.restore)
	w.Must(rolledOut(w.Context()))
	first := w.leads("")
	before, _ := starts(first)
	w.Must(syscall.Kill(w.processOf(first), syscall.SIGSTOP))
	w.leads(first.Name)
	w.stillHeld(g)
	w.opens(g)
	w.startsAgain(first.Name, before)
}

// One Gate is closed throughout, and another closes while the Pod is replaced.
func TestUpgradeAndRollbackOpenNothing(t *testing.T) {
	w := newWorld(t)
	t.Cleanup(w.restore)
	closed, closing := w.targets("closed", v1alpha1.StateClosed, 20), w.targets("closing", v1alpha1.StateOpened, 20)
	for i, version := range []string{previous, latest} {
		w.settles(closed, true)
		w.settles(closing, false)
		if got := len(w.resumed(closing)); got != i*20 {
			t.Errorf("%d targets of the other gate were resumed, want %d", got, i*20)
		}
		before := w.pod().Name
		w.Must(install(w.Context(), version, 1))
		w.Eventually("another pod is running", func() error {
			for _, p := range w.pods() {
				if p.Name != before && p.Spec.NodeName != "" {
					return nil
				}
			}
			return errors.New("there is no other pod")
		})
		w.request(closing, v1alpha1.CloseRequestedAtAnnotation)
		w.settles(closing, true)
		w.Must(rolledOut(w.Context()))
		if image := w.pod().Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+version) {
			t.Errorf("%s runs", image)
		}
		w.settles(closing, true)
		w.opens(closing)
	}
	w.stillHeld(closed)
}

func TestNodeFailureOpensNothing(t *testing.T) {
	w := newWorld(t)
	g, closed := w.targets("asked", v1alpha1.StateClosed, 10), w.targets("closed", v1alpha1.StateClosed, 10)
	w.settles(g, true)
	w.settles(closed, true)
	pod := w.pod()
	before, _ := starts(pod)
	w.Must(node.Crash(w.Context()))
	// The Gate opens while no controller is running.
	w.Must(w.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g))
	w.request(g, v1alpha1.OpenRequestedAtAnnotation)
	w.stillHeld(g)
	w.Must(node.Start(w.Context()))
	w.startsAgain(pod.Name, before)
	w.settles(g, false)
	w.stillHeld(closed)
}
