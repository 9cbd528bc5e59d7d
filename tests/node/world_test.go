package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// install applies config with an image and a number of replicas, as described in docs/start/install.md. It does not wait for them.
func install(ctx context.Context, version string, replicas int) error {
	folder, err := os.MkdirTemp(cluster.Dir(), "install-")
	if err != nil {
		return err
	}
	config, err := filepath.Rel(folder, filepath.Join(rootOf(version, harness.IsolatedFolder()), "config"))
	if err != nil {
		return err
	}
	text := fmt.Sprintf("resources: [%s/default]\nimages: [{name: %s, newTag: %s}]\n", config, repository, version)
	if replicas == 2 {
		text += fmt.Sprintf("components: [%s/availability]\n", config)
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	_, err = cluster.Kubectl(ctx, "apply", "--server-side", "-k", folder)
	return err
}

// rolledOut waits until all Pods belong to the last install.
func rolledOut(ctx context.Context) error {
	_, err := cluster.Kubectl(ctx, "-n", harness.RuntimeNamespace, "rollout", "status", "deployment/gating-controller", "--timeout=120s")
	if err == nil {
		return nil
	}
	pods, _ := cluster.Kubectl(ctx, "-n", harness.RuntimeNamespace, "describe", "pods")
	return fmt.Errorf("%w\n%s", err, pods)
}

// restore restores the installation that each test expects.
func (w *world) restore() {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	w.Must(errors.Join(install(ctx, latest, 1), rolledOut(ctx)))
}

// world is a namespace on the node.
type world struct {
	*harness.World
	versions *harness.History
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if whyNot != "" {
		t.Skip(whyNot)
	}
	w := &world{World: harness.NewWorld(t, cluster)}
	w.versions = w.Record(w.Kustomization("any").GroupVersionKind())
	w.Cleanup(func() {
		if !t.Failed() {
			return
		}
		pods, _ := cluster.Kubectl(context.Background(), "-n", harness.RuntimeNamespace, "describe", "pods")
		logs, _ := filepath.Glob("/var/log/pods/*/*/*.log")
		for _, path := range logs {
			log, _ := os.ReadFile(path)
			pods += fmt.Sprintf("\n%s:\n%s", path, log[max(0, len(log)-2000):])
		}
		t.Log(pods)
	})
	return w
}

// targets creates a Gate that governs many Kustomizations, named after it.
func (w *world) targets(gate string, byDefault v1alpha1.State, many int) *v1alpha1.Gate {
	w.Helper()
	for i := range many {
		app := w.Kustomization(fmt.Sprintf("%s-%d", gate, i))
		app.SetLabels(map[string]string{"gate": gate})
		w.Create(app)
	}
	return w.Gate(gate, v1alpha1.GateSpec{Default: byDefault, Targets: []v1alpha1.TargetReference{
		{Kind: "Kustomization", Name: "*", MatchLabels: map[string]string{"gate": gate}},
	}})
}

// settles waits until all targets of a Gate are held, or none.
func (w *world) settles(g *v1alpha1.Gate, held bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("targets of %s are held: %t", g.Name, held), func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(w.Kustomization("any").GroupVersionKind())
		if err := w.Client.List(w.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if obj := &list.Items[i]; strings.HasPrefix(obj.GetName(), g.Name+"-") && harness.Suspended(obj) != held {
				return errors.New(obj.GetName() + " has another state")
			}
		}
		return nil
	})
}

// resumed returns the targets of a Gate that were resumed since the test began, once for each time.
func (w *world) resumed(g *v1alpha1.Gate) []string {
	w.Helper()
	marker := w.Kustomization(fmt.Sprintf("marker-%d", time.Now().UnixNano()))
	w.Create(marker)
	w.Eventually("the history has caught up", func() error {
		if !slices.ContainsFunc(w.versions.All(), func(v *unstructured.Unstructured) bool { return v.GetName() == marker.GetName() }) {
			return errors.New("it has no version of the marker")
		}
		return nil
	})
	was := map[string]bool{}
	var all []string
	for _, version := range w.versions.All() {
		name, suspended := version.GetName(), harness.Suspended(version)
		if strings.HasPrefix(name, g.Name+"-") && was[name] && !suspended {
			all = append(all, name)
		}
		was[name] = suspended
	}
	return all
}

// stillHeld fails the test if a target of a Gate was ever resumed.
func (w *world) stillHeld(g *v1alpha1.Gate) {
	w.Helper()
	w.settles(g, true)
	if all := w.resumed(g); len(all) > 0 {
		w.Errorf("%s was closed, but these targets were resumed: %q", g.Name, all)
	}
}

// opens makes a user open a Gate manually.
func (w *world) opens(g *v1alpha1.Gate) {
	w.Helper()
	w.request(g, v1alpha1.OpenRequestedAtAnnotation)
	w.settles(g, false)
}

func (w *world) request(g *v1alpha1.Gate, annotation string) {
	w.Helper()
	_, err := cluster.Kubectl(w.Context(), "-n", w.Namespace, "annotate", "--overwrite", "gate", g.Name, annotation+"="+time.Now().UTC().Format(time.RFC3339Nano))
	w.Must(err)
}

// pods returns the Pods of the controller that are not being deleted, by name.
func (w *world) pods() []corev1.Pod {
	w.Helper()
	list := &corev1.PodList{}
	w.Must(w.Client.List(w.Context(), list, client.InNamespace(harness.RuntimeNamespace), client.MatchingLabels{"app": "gating-controller"}))
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// pod returns the only Pod.
func (w *world) pod() *corev1.Pod {
	w.Helper()
	pods := w.pods()
	if len(pods) != 1 {
		w.Fatalf("%d pods", len(pods))
	}
	return &pods[0]
}

// starts returns how often the container of a Pod was restarted, and whether it is ready.
func starts(p *corev1.Pod) (again int32, ready bool) {
	if len(p.Status.ContainerStatuses) == 0 {
		return 0, false
	}
	status := p.Status.ContainerStatuses[0]
	return status.RestartCount, status.Ready
}

// startsAgain waits until the container of a Pod has restarted and is ready.
func (w *world) startsAgain(name string, before int32) {
	w.Helper()
	w.Eventually("the container restarts", func() error {
		pod := &corev1.Pod{}
		if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: harness.RuntimeNamespace, Name: name}, pod); err != nil {
			return err
		}
		if again, ready := starts(pod); again <= before || !ready {
			return fmt.Errorf("restarted %d times, ready: %t", again, ready)
		}
		return nil
	})
}

// becameReady returns the time from the start of a Pod's container until it was ready, in whole seconds.
func becameReady(p *corev1.Pod) time.Duration {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.ContainersReady {
			return condition.LastTransitionTime.Sub(p.Status.ContainerStatuses[0].State.Running.StartedAt.Time)
		}
	}
	return 0
}

// leads waits until a Pod other than the named one is the leader, and returns it.
func (w *world) leads(other string) *corev1.Pod {
	w.Helper()
	var leader *corev1.Pod
	w.Eventually("another pod is the leader", func() error {
		lease := &coordinationv1.Lease{}
		key := client.ObjectKey{Namespace: harness.RuntimeNamespace, Name: "gating-controller-leader-election"}
		if err := w.Client.Get(w.Context(), key, lease); err != nil {
			return err
		}
		name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
		pods := w.pods()
		i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == name && p.Name != other })
		if i < 0 {
			return fmt.Errorf("%q is the leader", name)
		}
		leader = &pods[i]
		return nil
	})
	return leader
}

// processOf returns the ID of the controller process in a Pod.
func (w *world) processOf(p *corev1.Pod) int {
	w.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cgroup")
	w.Must(err)
	_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
	for _, path := range paths {
		if groups, err := os.ReadFile(path); err == nil && id != "" && strings.Contains(string(groups), id) {
			pid, err := strconv.Atoi(strings.Split(path, "/")[2])
			w.Must(err)
			return pid
		}
	}
	w.Fatalf("no process of %s is running", p.Name)
	return 0
}

// field returns a field of /proc/<pid>/status, see proc_pid_status(5).
func (w *world) field(pid int, name string) string {
	w.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	w.Must(err)
	found := regexp.MustCompile(`(?m)^` + name + `:\s*(\S+)`).FindSubmatch(status)
	if found == nil {
		w.Fatalf("%s: not in %s", name, status)
	}
	return string(found[1])
}
