package controllers

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	kuberecorder "k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/refresh"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// MachineReconciler has the certificates of the Machines of Gates refreshed. It writes the annotations of Machines, and
// status.machines of the Gate.
type MachineReconciler struct {
	// Client reads Gates from the cache and writes.
	client.Client
	// EventRecorder for events on Machines.
	kuberecorder.EventRecorder
	// APIReader reads from the API server.
	APIReader client.Reader
	// Clock is read once for each decision.
	Clock clock.PassiveClock
	// Selector finds the Machines of a Gate.
	Selector *Selector
	// Gates looks up the Gates of a Machine.
	Gates *GateIndex
	// Tally counts what became of Machines.
	Tally *tally.Tally

	versions *versions
	counted  *countedMachines
}

// Reconcile does what is to do with the Machines that a Gate governs and with those that have its record.
func (r *MachineReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	obj := &v1alpha1.Gate{}
	if req.Name != "" && r.Gates.watches(req.Namespace) {
		if err := r.gates().Get(ctx, req.NamespacedName, obj); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	f, err := r.fleetOf(ctx, req.NamespacedName, obj, now)
	if errors.Is(err, errNotRead) {
		return ctrl.Result{RequeueAfter: cacheDelay}, nil
	}
	defer r.Tally.Forget(machinesOf(req.NamespacedName))
	if err == nil && f != nil {
		var d refresh.Decision
		if d, err = f.refresh(ctx); err == nil {
			err = f.report(ctx, d)
		}
	}
	if errors.Is(err, errGateChanged) {
		return ctrl.Result{RequeueAfter: cacheDelay}, nil
	}
	if err != nil || f == nil {
		return ctrl.Result{}, err
	}
	if f.err != nil || f.at.IsZero() {
		return ctrl.Result{}, f.err
	}
	return ctrl.Result{RequeueAfter: max(f.at.Sub(r.Clock.Now()), time.Millisecond)}, nil
}

// gates returns the client of Gates.
func (r *MachineReconciler) gates() client.Client {
	return ownWrites{r.Client, r.APIReader, r.versions}
}

// errGateChanged means that somebody has written or deleted a Gate since it was read: all that was decided may be out of date.
var errGateChanged = errors.New("the gate has changed")

// patch writes the status of a Gate on the version that was read.
func (r *MachineReconciler) patch(ctx context.Context, before, obj *v1alpha1.Gate) error {
	err := r.gates().Status().Patch(ctx, obj, locked(before), client.FieldOwner(v1alpha1.FieldManager))
	if raced(err) {
		return errGateChanged
	}
	return err
}

// fleetOf returns the fleet of a Gate, nil if there is nothing to do: because the Gate has not decided yet or is suspended, or
// because another shard has it.
func (r *MachineReconciler) fleetOf(ctx context.Context, key types.NamespacedName, obj *v1alpha1.Gate, now time.Time) (*fleet, error) {
	held, err := r.Selector.Targets.HeldBy(ctx, key.String())
	if err != nil {
		return nil, err
	}
	if obj.UID == "" || !obj.DeletionTimestamp.IsZero() {
		if exists, err := r.Gates.exists(ctx, key); err != nil || exists && obj.UID == "" {
			return nil, err
		}
		return r.withoutGate(key.String(), held, now), nil
	}
	machines, err := r.governed(ctx, obj)
	if err != nil {
		return nil, err
	}
	f := r.newFleet(key.String(), machines, held, now)
	f.obj = obj
	g := verdict.Governing(f.gate.Name, obj, now)
	switch g.Stand {
	case verdict.Undecided:
		return nil, nil //nolint:nilnil // nothing to do is an answer
	case verdict.Suspended:
		r.count(f, refresh.Decision{})
		return nil, nil //nolint:nilnil // nothing to do is an answer
	default:
	}
	scope, failed := r.Selector.scope(ctx)
	f.judge(g, scope)
	return f, failed()
}

// judge takes over what a Gate says.
func (f *fleet) judge(g verdict.Gate, scope verdict.Scope) {
	terms := machineTerms(g)
	f.gate.Open, f.gate.Margin, f.gate.Strict, f.gate.Idle = g.Stand == verdict.Open, terms.Margin, terms.Strict, true
	if g.Audits { // it requests nothing, and counts what would wait
		f.gate.Open = g.Would == verdict.Open
	}
	invalid := verdict.IsInvalid(g.Object)
	if policy := g.Object.Spec.Machines; policy != nil {
		f.ttl, f.gate.Within, f.gate.Timeout = policy.TTL, policy.Within.Duration, policy.Timeout.Duration
		status := g.Object.Status.Machines
		f.gate.Idle = status != nil && status.Stopped != nil || invalid || g.Audits
	}
	for _, t := range f.machines {
		// Of a spec that is broken nobody knows what it is meant to name.
		f.governed[t.GetUID()] = f.governed[t.GetUID()] || invalid || scope.Governs(g.Object, &t.Unstructured)
	}
}

// withoutGate returns the fleet of a Gate that is no more: the Machines that name it are not refreshed, and what it has requested is
// withdrawn. The provider may finish in the usual time what it has begun.
func (r *MachineReconciler) withoutGate(name string, held []*target.Object, now time.Time) *fleet {
	f := r.newFleet(name, nil, held, now)
	f.gate.Idle, f.gate.Margin = true, v1alpha1.DefaultSafetyMargin
	return f
}

// governed returns the Machines that a Gate governs.
func (r *MachineReconciler) governed(ctx context.Context, g *v1alpha1.Gate) ([]*target.Object, error) {
	if err := r.Selector.reading(ctx, g, target.Machine); err != nil {
		return nil, err
	}
	keys, err := r.Selector.Governed(ctx, g, target.Machine)
	if err != nil {
		return nil, err
	}
	var machines []*target.Object
	for _, key := range keys {
		obj, err := r.Selector.Targets.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if obj != nil {
			machines = append(machines, obj)
		}
	}
	return machines, nil
}

func (r *MachineReconciler) newFleet(name string, governed, held []*target.Object, now time.Time) *fleet {
	f := &fleet{
		MachineReconciler: r, now: now, governed: map[types.UID]bool{}, skipped: map[string]bool{}, ended: map[string]bool{},
		failures: map[string]tally.Failure{}, gate: refresh.Gate{Name: name, Timeout: v1alpha1.DefaultMachineTimeout},
	}
	f.machines = governed
	for _, t := range governed {
		f.governed[t.GetUID()] = true
	}
	for _, t := range held {
		if isMachine(&t.Unstructured) && !f.governed[t.GetUID()] {
			f.machines = append(f.machines, t)
		}
	}
	return f
}

// report writes how far the refresh of a fleet is into the status of the Gate, and counts.
func (f *fleet) report(ctx context.Context, d refresh.Decision) error {
	if f.obj == nil {
		return nil
	}
	before := f.obj.DeepCopy()
	var stopped *v1alpha1.MachineFailure
	if f.obj.Status.Machines != nil {
		stopped = f.obj.Status.Machines.Stopped
	}
	f.obj.Status.Machines = nil
	if d.Running != "" || stopped != nil || f.obj.Spec.Machines != nil && len(f.machines) > 0 {
		f.obj.Status.Machines = &v1alpha1.MachineStatus{Due: int64(d.Due), Refreshing: d.Running, Stopped: stopped}
	}
	if stopped != nil {
		f.fail(stopped.Machine, v1alpha1.RefreshCertsFailedReason, stopped.Message)
	}
	f.count(f, d)
	if equality.Semantic.DeepEqual(before.Status, f.obj.Status) {
		return nil
	}
	return f.patch(ctx, before, f.obj)
}

// count puts into the Tally what became of the Machines of a Gate.
func (r *MachineReconciler) count(f *fleet, d refresh.Decision) {
	g := tallied(f.obj)
	counted := map[target.Key]bool{}
	put := func(name string, e tally.Entry) {
		key := target.Key{GroupKind: target.Machine, NamespacedName: keyNamed(name)}
		if failure, ok := f.failures[name]; ok {
			e.Failure = &failure
		}
		e.Gate = g
		counted[key] = true
		r.Tally.Add(key, e, f.now)
	}
	for _, t := range f.machines {
		name := nameOf(t)
		e := tally.Entry{Uncounted: !f.governed[t.GetUID()]}
		if slices.Contains(d.Waiting, name) {
			e.Outcome = tally.Held
			if f.obj.Audits() {
				e.Outcome = tally.WouldHold
			}
		}
		put(name, e)
	}
	for name := range f.failures {
		if key := (target.Key{GroupKind: target.Machine, NamespacedName: keyNamed(name)}); !counted[key] {
			put(name, tally.Entry{Uncounted: true})
		}
	}
	for _, key := range r.counted.replace(g, counted) {
		r.Tally.Drop(key, g)
	}
}

// countedMachines are the Machines that were counted last, by Gate. The zero value is ready for use.
type countedMachines struct {
	mu    sync.Mutex
	gates map[tally.Gate]map[target.Key]bool
}

// replace replaces the Machines that were counted for a Gate, and returns those that are no longer among them.
func (c *countedMachines) replace(g tally.Gate, now map[target.Key]bool) []target.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	var gone []target.Key
	for key := range c.gates[g] {
		if !now[key] {
			gone = append(gone, key)
		}
	}
	if c.gates == nil {
		c.gates = map[tally.Gate]map[target.Key]bool{}
	}
	if c.gates[g] = now; len(now) == 0 {
		delete(c.gates, g)
	}
	return gone
}
