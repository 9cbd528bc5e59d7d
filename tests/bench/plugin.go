package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// maxListing is how many seconds it may take to list all Gates, maxListingMemory how many MB.
	maxListing       = 2
	maxListingMemory = 200
	// maxPreview is how many seconds a preview may take.
	maxPreview = 0.05
)

var plugin = scenario{
	name: "plugin", title: "kubectl gate", run: runPlugin,
	about: `
"kubectl gate" as a process, with Gates that have a history of 20 entries each. No controller runs. The yardstick is "kubectl get gates", for which the API server
prints the table. Memory is the most that the process had, asked for each 2 ms. Each figure is the median of five runs. The preview reads a file and no
cluster.`,
}

func runPlugin(ctx context.Context, b *bench) (*result, error) {
	program := filepath.Join(b.cluster.Dir(), "kubectl-gate")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/kubectl-gate") //nolint:gosec // a path of ours
	build.Dir, build.Env = harness.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	keys, err := b.agedGates(ctx, b.many())
	if err != nil {
		return nil, err
	}
	r := &result{}
	t := table{title: fmt.Sprintf("%d Gates", len(keys)), columns: []string{"command", "seconds", "MB", "of kubectl get gates"}}
	yardstick := 0.0
	for _, command := range [][]string{
		{filepath.Join(harness.Tools(), "bin", "kubectl"), "get", "gates", "-A"},
		{program, "list", "-A"}, {program, "list", "-A", "-o", "json"}, {program, "history", "-A"},
	} {
		took, memory, err := b.timed(ctx, command, len(keys))
		if err != nil {
			return nil, err
		}
		if yardstick == 0 {
			yardstick = took
		}
		name := strings.Join(append([]string{strings.Replace(filepath.Base(command[0]), "-", " ", 1)}, command[1:]...), " ")
		t.row("`"+name+"`", took, memory, took/yardstick)
		if strings.HasSuffix(name, "list -A") && (took > maxListing || memory > maxListingMemory) {
			r.miss(false, "%s: %s s and %s MB, the limits are %d and %d.", name, digits(took), digits(memory), maxListing, maxListingMemory)
		}
	}
	r.tables = append(r.tables, t)
	took, memory, err := b.timed(ctx, []string{program, "preview", "-f", filepath.Join(harness.Root(), "config", "samples", "gate_nights.yaml")}, 1)
	if err != nil {
		return nil, err
	}
	r.figure("kubectl gate preview", took, "s", fmt.Sprintf("%s MB", digits(memory)))
	if took > maxPreview {
		r.miss(false, "A preview takes %s s, the limit is %v.", digits(took), maxPreview)
	}
	return r, b.client.DeleteAllOf(ctx, &v1alpha1.Gate{}, client.InNamespace(keys[0].Namespace))
}

// timed returns how many seconds and MB a command takes that prints at least some lines.
func (b *bench) timed(ctx context.Context, command []string, lines int) (took, memory float64, err error) {
	var times, sizes []float64
	for range 5 {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // commands of ours
		cmd.Env = append(os.Environ(), "KUBECONFIG="+b.cluster.Kubeconfig, "HOME="+b.cluster.Dir())
		var out lineCounter
		cmd.Stdout = &out
		start := time.Now()
		if err := cmd.Start(); err != nil {
			return 0, 0, err
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		size, err := largest(cmd.Process.Pid, ended)
		if err != nil {
			return 0, 0, fmt.Errorf("%v: %w", command, err)
		}
		times, sizes = append(times, time.Since(start).Seconds()), append(sizes, size)
		if int(out) < lines {
			return 0, 0, fmt.Errorf("%v prints %d lines, not %d", command, out, lines)
		}
	}
	return median(times), median(sizes), nil
}

// lineCounter counts lines.
type lineCounter int

func (l *lineCounter) Write(p []byte) (int, error) {
	*l += lineCounter(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

// largest returns the most memory in MB that a process had until it ended. The kernel would count for an ended process also that of
// the bench, which has forked it.
func largest(pid int, ended <-chan error) (size float64, err error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	for {
		if status, err := os.ReadFile(path); err == nil { //nolint:gosec // a file of the kernel
			if _, text, ok := strings.Cut(string(status), "VmHWM:"); ok {
				kilobytes, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
				if err != nil {
					return 0, err
				}
				size = kilobytes / 1024
			}
		}
		select {
		case err := <-ended:
			return size, err
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// agedGates makes Gates whose status is what the controller leaves after some weeks.
func (b *bench) agedGates(ctx context.Context, n int) ([]client.ObjectKey, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "aged"}}
	if err := client.IgnoreAlreadyExists(b.client.Create(ctx, namespace)); err != nil {
		return nil, err
	}
	keys := make([]client.ObjectKey, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range n {
		keys[i] = client.ObjectKey{Namespace: namespace.Name, Name: fmt.Sprintf("gate-%05d", i)}
		group.Go(func() error {
			g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: keys[i].Name, Namespace: keys[i].Namespace}}
			g.Spec = v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}}}
			if err := b.client.Create(ctx, g); err != nil {
				return err
			}
			g.Status = agedStatus(metav1.Now())
			return b.client.Status().Update(ctx, g)
		})
	}
	return keys, group.Wait()
}

func agedStatus(now metav1.Time) v1alpha1.GateStatus {
	s := v1alpha1.GateStatus{ObservedGeneration: 1, Targets: &v1alpha1.TargetStatus{TargetCounts: v1alpha1.TargetCounts{Total: 10, Held: 10}}}
	s.LastTransition = &v1alpha1.Transition{At: now, State: v1alpha1.StateClosed, Reason: v1alpha1.OutsideOpenPeriodsReason}
	s.NextTransition = &v1alpha1.Transition{At: metav1.NewTime(now.Add(time.Hour)), State: v1alpha1.StateOpened, Reason: v1alpha1.OpenPeriodReason, Period: "nights"}
	for _, kind := range []string{v1alpha1.OpenedCondition, "Ready"} {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: v1alpha1.OutsideOpenPeriodsReason, LastTransitionTime: now, Message: "Gate closed outside its open periods",
		})
	}
	for range 10 {
		s.History = append(s.History,
			v1alpha1.HistoryEntry{
				At: now, State: v1alpha1.StateOpened, Reason: v1alpha1.OpenRequestedReason, Until: &now, Action: v1alpha1.RequestOpen,
				RequestedBy: "alice@example.com", Message: "hotfix 1234",
			},
			v1alpha1.HistoryEntry{At: now, State: v1alpha1.StateClosed, Reason: v1alpha1.OutsideOpenPeriodsReason, Until: &now})
	}
	return s
}
