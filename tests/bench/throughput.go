package bench

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// maxSpread bounds the number of namespaces of the targets.
	maxSpread = 50
	// targetsOfEach is the number of targets of each of many Gates.
	targetsOfEach = 10
)

// shared is the group of targets that scenarios use in turn.
const shared = "apps"

// oneGate creates a Gate and n targets in many namespaces.
func (b *bench) oneGate(ctx context.Context, n int) (*fleet, error) {
	targets, err := b.targets(ctx, shared, b.spread(), n)
	if err != nil {
		return nil, err
	}
	f := &fleet{gates: []client.ObjectKey{{Namespace: namespaceOf(shared, 0), Name: "all"}}, targets: targets}
	spec := v1alpha1.GateSpec{}
	for i := range b.spread() {
		spec.Targets = append(spec.Targets, allIn(i))
	}
	return f, b.newGate(ctx, f.gates[0], spec)
}

// allIn refers to all shared targets in one of their namespaces.
func allIn(namespace int) v1alpha1.TargetReference {
	return v1alpha1.TargetReference{Kind: kustomization, Name: v1alpha1.AnyName, Namespace: namespaceOf(shared, namespace)}
}

// manyGates creates n Gates with some targets each, in the namespaces of their targets.
func (b *bench) manyGates(ctx context.Context, n int) (*fleet, error) {
	namespaces := b.spread()
	targets, err := b.targets(ctx, shared, namespaces, n*targetsOfEach)
	if err != nil {
		return nil, err
	}
	f := &fleet{targets: targets, cron: true}
	for i := range n {
		f.gates = append(f.gates, client.ObjectKey{Namespace: namespaceOf(shared, i%namespaces), Name: fmt.Sprintf("gate-%05d", i)})
	}
	byGate := f.governed()
	return f, inParallel(setUpAtOnce, f.gates, func(key client.ObjectKey) error {
		spec := v1alpha1.GateSpec{}
		for _, target := range byGate(key) {
			spec.Targets = append(spec.Targets, v1alpha1.TargetReference{Kind: kustomization, Name: target.Name})
		}
		return b.newGate(ctx, key, spec)
	})
}

// governed assigns targets to each Gate: an equal share of those in its namespace, or all if there is one Gate.
func (f *fleet) governed() func(client.ObjectKey) []client.ObjectKey {
	if len(f.gates) == 1 {
		return func(client.ObjectKey) []client.ObjectKey { return f.targets }
	}
	gates, byGate := map[string][]client.ObjectKey{}, map[client.ObjectKey][]client.ObjectKey{}
	for _, gate := range f.gates {
		gates[gate.Namespace] = append(gates[gate.Namespace], gate)
	}
	turn := map[string]int{}
	for _, target := range f.targets {
		those := gates[target.Namespace]
		gate := those[turn[target.Namespace]%len(those)]
		turn[target.Namespace]++
		byGate[gate] = append(byGate[gate], target)
	}
	return func(gate client.ObjectKey) []client.ObjectKey { return byGate[gate] }
}

// turn is one measurement of a fleet.
type turn struct {
	controller map[bool]*transition
	// bare has the results of the yardsticks without and with a watch.
	bare map[bool]map[bool]spent
	// posted is the number of events that the receiver got.
	posted int
}

// spent is the time of a turn, the processor time of the API server until there were no more writes, and the accepted writes.
type spent struct {
	took, server time.Duration
	// last is the time until all targets were held or released.
	last   time.Duration
	writes calls
}

// controllerTurn closes and opens a fleet with the controller.
func (b *bench) controllerTurn(ctx context.Context, f *fleet) (turn, *copied, error) {
	t := turn{controller: map[bool]*transition{}, bare: map[bool]map[bool]spent{}}
	c := newCopied(f)
	sink := harness.StartEventSink()
	defer sink.Close()
	if err := b.startController(ctx, "--events-addr="+sink.URL); err != nil {
		return t, c, err
	}
	for _, closed := range []bool{true, false} {
		measured, err := b.transition(ctx, f, closed)
		if err != nil {
			return t, c, err
		}
		t.controller[closed], c.writes[closed] = measured, measured.used.accepted()
		if c.objects[closed], err = b.read(ctx, f.targets); err != nil {
			return t, c, err
		}
		if c.gates[closed], err = b.readGates(ctx, f.gates); err != nil {
			return t, c, err
		}
	}
	if err := b.stopController(); err != nil {
		return t, c, err
	}
	posted, faults := sink.Take()
	if t.posted = len(posted); len(faults) > 0 {
		return t, c, fmt.Errorf("the sink received something other than an event: %s", faults[0])
	}
	return t, c, nil
}

// spread returns the number of namespaces of the targets.
func (b *bench) spread() int { return min(maxSpread, *targets/targetsOfEach) }

// yardstickTurn repeats the writes of the controller on the same objects without a controller.
func (b *bench) yardstickTurn(ctx context.Context, c *copied, watches bool) (map[bool]spent, error) {
	bare, err := b.newBare()
	if err != nil {
		return nil, err
	}
	if watches {
		stop, err := bare.watch(ctx)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	watching, err := observe(ctx, b.config, b.client.Scheme())
	defer watching.stop()
	if err != nil {
		return nil, err
	}
	all := map[bool]spent{}
	for _, closed := range []bool{true, false} {
		now, err := b.read(ctx, c.fleet.targets)
		if err != nil {
			return nil, err
		}
		todo := c.work(now, c.fleet.governed(), closed)
		before, err := b.quietUsage(ctx)
		if err != nil {
			return nil, err
		}
		took, last, err := bare.send(ctx, todo)
		if err != nil {
			return nil, err
		}
		after, err := b.quietUsage(ctx)
		if err != nil {
			return nil, err
		}
		used := after.since(before)
		all[closed] = spent{took: took, last: last, server: used.server, writes: used.accepted()}
		b.logf("yardstick, %s, watches %t: last target %.2fs, all %.2fs; API server %.1fs; %s", edgeName(closed), watches, last.Seconds(), took.Seconds(), used.server.Seconds(), used.calls.writes())
	}
	return all, nil
}
