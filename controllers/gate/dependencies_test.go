package gate

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/target"
)

// dependencies is a TargetReader of Kustomizations by name. It calls a hook before each read from the API server.
type dependencies struct {
	view.TargetReader
	mu      sync.Mutex
	objects map[string]*target.Object
	before  func(context.Context)
	reads   int
}

// Select implements view.TargetReader.
func (d *dependencies) Select(_ context.Context, _ target.Adapter, _ string, ref *v1alpha1.TargetReference) ([]*target.Object, error) {
	return []*target.Object{d.objects[ref.Name]}, nil
}

// Read implements view.TargetReader.
func (d *dependencies) Read(ctx context.Context, _ target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	if d.before != nil {
		d.before(ctx)
	}
	return d.objects[key.Name].DeepCopy(), nil
}

// put stores a Kustomization in a version, ready or not.
func (d *dependencies) put(name, version, ready string) {
	obj := newKustomization("flux-system", name)
	obj.SetResourceVersion(version)
	obj.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "Tested", "message": "m"}}}
	d.objects[name] = obj
}

// newDependent returns a Gate that depends on the Kustomizations a and b, which are ready, and its decider.
func newDependent(spec v1alpha1.GateSpec) (*decider, *v1alpha1.Gate, *dependencies) {
	r := newDecider(clocktesting.NewFakePassiveClock(start), 0)
	r.ServerTime = nil
	read := &dependencies{objects: map[string]*target.Object{}}
	for _, name := range []string{"a", "b"} {
		read.put(name, "1", "True")
		spec.DependsOn = append(spec.DependsOn, v1alpha1.DependencyReference{Kind: "Kustomization", Name: name})
	}
	r.Dependencies = &view.DependencyReader{Targets: read}
	g := newGate(spec)
	g.ResourceVersion = "1"
	return r, g, read
}

// A cached state may keep a Gate closed, but does not open it.
func TestGateOpensOnlyOnFreshReadsOfDependencies(t *testing.T) {
	r, g, read := newDependent(v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{dated("nights", 5*time.Minute, hours(1))}})
	r.Dependencies.Read(t.Context(), g, start, true)
	read.reads = 0
	if r.look(g, start.Add(4*time.Minute)); read.reads != 0 || isOpened(g) {
		t.Errorf("%d reads while it is closed anyway: %s", read.reads, opened(g))
	}
	if r.look(g, start.Add(5*time.Minute)); read.reads != 2 || !isOpened(g) {
		t.Errorf("%d reads to open: %s", read.reads, opened(g))
	}
}

// All reads together end when the Gate is due to close.
func TestReadsOfDependenciesEndWhenTheGateIsDueToClose(t *testing.T) {
	r, g, read := newDependent(v1alpha1.GateSpec{Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{hardFreeze(hours(1), hours(2))}})
	read.put("a", "1", "False")
	r.look(g, start.Add(hours(1)-time.Minute))
	var left []time.Duration
	read.before = func(ctx context.Context) {
		deadline, _ := ctx.Deadline()
		left = append(left, time.Until(deadline))
		r.clock.SetTime(start.Add(hours(1) - 2*time.Second))
	}
	read.put("a", "2", "True")
	if r.look(g, start.Add(hours(1)-8*time.Second)); len(left) != 3 || left[0] > 8*time.Second || left[2] > 2*time.Second || !isOpened(g) {
		t.Errorf("the reads had %v left: %s", left, opened(g))
	}
	read.before = func(context.Context) { r.clock.SetTime(start.Add(hours(1))) }
	read.put("a", "3", "True")
	if r.look(g, start.Add(hours(1)-time.Millisecond)); !strings.HasPrefix(opened(g), "False ClosePeriod: ") {
		t.Errorf("after a read until the close: %s", opened(g))
	}
}

// While it is unknown whether the API server stamps identities, an open request is retried and a close is not delayed.
func TestOpenRequestIsRetriedWhileStampsAreUnknown(t *testing.T) {
	for name, depends := range map[string]bool{"without dependencies": false, "with dependencies": true} {
		t.Run(name, func(t *testing.T) {
			r, g, _ := newDependent(v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Approvals: &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 2}}})
			if !depends {
				g.Spec.DependsOn = nil
			}
			r.Stamped = func(context.Context) (bool, error) { return false, errors.New("timeout") }
			ask := func(request, by string, at time.Duration) time.Duration {
				g.Annotations[request], g.Annotations[by] = start.Add(at).Format(time.RFC3339), "alice"
				r.clock.SetTime(start.Add(at))
				s := gate.NewSnapshot(g, nil)
				d := r.decideWithDependencies(t.Context(), s, r.Decide(t.Context(), s, start.Add(at)))
				g.Status = d.Status(nil)
				return Until(start.Add(at), d.Rechecks)
			}
			for range 2 {
				if again := ask(v1alpha1.OpenRequestedAtAnnotation, v1alpha1.OpenRequestedByAnnotation, 0); again > time.Second || len(g.Status.Requests) > 0 {
					t.Errorf("requeued after %s: %+v", again, g.Status.Requests)
				}
			}
			if ask(v1alpha1.CloseRequestedAtAnnotation, v1alpha1.CloseRequestedByAnnotation, time.Minute); !strings.HasPrefix(opened(g), "False CloseRequested") {
				t.Error(opened(g))
			}
			r.Stamped = func(context.Context) (bool, error) { return true, nil }
			r.look(g, start.Add(2*time.Minute))
			if last := g.Status.History[0]; last.Action != v1alpha1.RequestOpen || last.Refused == "" {
				t.Errorf("history %+v", last)
			}
		})
	}
}

// By the clock of the API server, an approved request opens no earlier, and its approvals count once.
func TestApprovedRequestOpensByBothClocks(t *testing.T) {
	server := clocktesting.NewFakePassiveClock(start)
	r := newDecider(server, 2*time.Second)
	r.Stamped = func(context.Context) (bool, error) { return true, nil }
	g := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Approvals: &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 2}}})
	g.Annotations[v1alpha1.OpenRequestedAtAnnotation] = start.Format(time.RFC3339)
	g.Annotations[v1alpha1.OpenRequestedByAnnotation] = "alice"
	r.at(g, server, 0)
	_, what, _ := strings.Cut(ledger.FormatRequestApproval(g, &g.Status.Requests[0], start), ",")
	g.Annotations[v1alpha1.ApproveRequestedByAnnotation] = what + " bob\n" + what + " carol"
	if r.at(g, server, time.Minute); isOpened(g) {
		t.Errorf("by its own clock: %s", opened(g))
	}
	r.at(g, server, time.Minute+4*time.Second)
	if request := g.Status.Requests[0]; !isOpened(g) || len(request.Approvals) != 2 || request.State != v1alpha1.RequestInForce {
		t.Errorf("%s, request %+v", opened(g), request)
	}
}
