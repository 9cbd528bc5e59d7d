package bench

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// busyGates are the Gates with thousands of targets.
	busyGates = 4
	// enoughCloses is the number of Gates with one target, and of the closes that are measured in each direction.
	enoughCloses = 20
)

// busyFleet creates the four Gates and their targets.
func (b *bench) busyFleet(ctx context.Context) (*fleet, error) {
	targets, err := b.targets(ctx, shared, b.spread(), *targets)
	if err != nil {
		return nil, err
	}
	f := &fleet{targets: targets, brisk: true}
	for n := range busyGates {
		spec := v1alpha1.GateSpec{}
		for i := n; i < b.spread(); i += busyGates {
			spec.Targets = append(spec.Targets, allIn(i))
		}
		key := client.ObjectKey{Namespace: namespaceOf(shared, n), Name: "busy"}
		if err := b.newGate(ctx, key, spec); err != nil {
			return nil, err
		}
		f.gates = append(f.gates, key)
	}
	return f, nil
}

// urgentFleet are Gates with one target each, and an object that no Gate governs.
type urgentFleet struct {
	fleet
	bystander client.ObjectKey
}

func (b *bench) urgentGates(ctx context.Context) (*urgentFleet, error) {
	const group = "urgent"
	keys, err := b.targets(ctx, group, 1, enoughCloses+1)
	if err != nil {
		return nil, err
	}
	f := &urgentFleet{fleet: fleet{targets: keys[1:]}, bystander: keys[0]}
	for _, target := range f.targets {
		if err := b.newGate(ctx, target, v1alpha1.GateSpec{Targets: []v1alpha1.TargetReference{{Kind: kustomization, Name: target.Name}}}); err != nil {
			return nil, err
		}
		f.gates = append(f.gates, target)
	}
	return f, nil
}

// closing is one close of a Gate with one target.
type closing struct {
	// held is the time until the target was held, write is the duration of an unrelated write.
	held, write time.Duration
}

// closesDuring closes or opens the four Gates, and meanwhile closes the others one after the other. It opens those again at the end.
func (b *bench) closesDuring(ctx context.Context, busy *fleet, urgent *urgentFleet, closed bool) ([]closing, error) {
	due, _, err := b.arm(ctx, busy, closed)
	if err != nil {
		return nil, err
	}
	w := b.observer.expect(busy.targets, closed)
	time.Sleep(time.Until(due))
	var all []closing
	var requested []client.ObjectKey
	for i, gate := range urgent.gates {
		if w.isOver() {
			break
		}
		requested = append(requested, gate)
		c, err := b.closing(ctx, gate, urgent.targets[i], urgent.bystander)
		if err != nil {
			return nil, err
		}
		if !w.isOver() {
			all = append(all, c)
		}
	}
	if err := b.observer.wait(ctx, w); err != nil {
		return nil, err
	}
	b.logf("%s: %d closes in %.2fs, the slowest took %.3fs", edgeName(closed), len(all), time.Since(due).Seconds(), quantile(heldOf(all), 1))
	again := b.observer.expect(requested, false) // each target has the name of its Gate
	for _, gate := range requested {
		if err := b.request(ctx, gate, false); err != nil {
			return nil, err
		}
	}
	if err := b.observer.wait(ctx, again); err != nil {
		return nil, err
	}
	return all, b.settled(ctx, busy, closed)
}

// closing closes a Gate with one target.
func (b *bench) closing(ctx context.Context, gate, target, bystander client.ObjectKey) (c closing, err error) {
	begin := time.Now()
	if err := b.annotate(ctx, newKustomization(bystander), "bench/at", begin.String()); err != nil {
		return c, err
	}
	c.write = time.Since(begin)
	w := b.observer.expect([]client.ObjectKey{target}, true)
	requested := time.Now()
	if err := b.request(ctx, gate, true); err != nil {
		return c, err
	}
	if err := b.observer.wait(ctx, w); err != nil {
		return c, err
	}
	c.held = w.arrivals[0].Sub(requested)
	return c, nil
}

// request requests that a Gate close or open.
func (b *bench) request(ctx context.Context, gate client.ObjectKey, closed bool) error {
	name := v1alpha1.OpenRequestedAtAnnotation
	if closed {
		name = v1alpha1.CloseRequestedAtAnnotation
	}
	return b.annotate(ctx, gateNamed(gate), name, time.Now().UTC().Format(time.RFC3339Nano))
}

// annotate sets an annotation, or removes it if the value is nil.
func (b *bench) annotate(ctx context.Context, obj client.Object, name string, value any) error {
	raw := mustMarshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{name: value}}})
	return b.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, raw), client.FieldOwner("bench"))
}

func heldOf(all []closing) []float64 {
	var values []float64
	for _, c := range all {
		values = append(values, c.held.Seconds())
	}
	return values
}

func writesOf(all []closing) []float64 {
	var values []float64
	for _, c := range all {
		values = append(values, c.write.Seconds())
	}
	return values
}
