package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// spread is over how many namespaces the targets are.
	spread = 50
	// targetsOfEach of many Gates.
	targetsOfEach = 10
	// sample is how many objects are suspended one after the other.
	sample = 500
)

var throughput = scenario{
	name: "close", title: "Throughput of a transition", run: runThroughput,
	about: "",
}

func runThroughput(ctx context.Context, b *bench) (*result, error) {
	r := &result{}
	one, err := b.oneGate(ctx, "one", b.many())
	if err != nil {
		return nil, err
	}
	if err := b.compare(ctx, r, "one gate", one, b.repeat(2)); err != nil {
		return nil, err
	}
	many, err := b.manyGates(ctx, "many", b.many()/targetsOfEach)
	if err != nil {
		return nil, err
	}
	return r, b.compare(ctx, r, "many gates", many, b.repeat(2))
}

// oneGate makes a Gate and n targets in many namespaces.
func (b *bench) oneGate(ctx context.Context, group string, n int) (*fleet, error) {
	targets, err := b.targets(ctx, group, spread, n)
	if err != nil {
		return nil, err
	}
	f := &fleet{gates: []client.ObjectKey{{Namespace: namespaceOf(group, 0), Name: group}}, targets: targets}
	spec := v1alpha1.GateSpec{}
	for i := range spread {
		spec.Targets = append(spec.Targets, v1alpha1.TargetReference{Kind: kustomization, Name: v1alpha1.AnyName, Namespace: namespaceOf(group, i)})
	}
	return f, b.newGate(ctx, f.gates[0], spec)
}

// manyGates makes n Gates with some targets each, in the namespaces of their targets.
func (b *bench) manyGates(ctx context.Context, group string, n int) (*fleet, error) {
	namespaces := min(spread, n)
	targets, err := b.targets(ctx, group, namespaces, n*targetsOfEach)
	if err != nil {
		return nil, err
	}
	f := &fleet{targets: targets, cron: true}
	for i := range n {
		f.gates = append(f.gates, client.ObjectKey{Namespace: namespaceOf(group, i%namespaces), Name: fmt.Sprintf("gate-%05d", i)})
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

// governed tells the targets of each Gate: an equal share of those in its namespace, or
// all if there is one Gate.
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

// turn is one measurement of a fleet: by the controller and by the yardstick.
type turn struct {
	controller map[bool]*transition
	yardstick  map[bool]time.Duration
}

func (b *bench) compare(ctx context.Context, r *result, name string, f *fleet, repeats int) error {
	var turns []turn
	var copied *copied
	for range repeats {
		t, seen, err := b.controllerTurn(ctx, f)
		if err != nil {
			return err
		}
		copied = seen
		if t.yardstick, err = b.yardstickTurn(ctx, copied); err != nil {
			return err
		}
		turns = append(turns, t)
	}
	suspended, err := b.sequential(ctx, f)
	if err != nil {
		return err
	}
	for _, closed := range []bool{true, false} {
		var all, last, bare, ratios, bySuspend []float64
		for _, t := range turns {
			all, last = append(all, t.controller[closed].written.Seconds()), append(last, t.controller[closed].last().Seconds())
			bare = append(bare, t.yardstick[closed].Seconds())
			ratios = append(ratios, t.controller[closed].written.Seconds()/t.yardstick[closed].Seconds())
			bySuspend = append(bySuspend, suspended[closed].Seconds()/t.controller[closed].written.Seconds())
		}
		prefix := fmt.Sprintf("%s, %s: ", name, edgeName(closed))
		r.figure(prefix+"last target", median(last), "s", "")
		r.figure(prefix+"all written", median(all), "s", "")
		r.figure(prefix+"yardstick", median(bare), "s", "")
		r.figure(prefix+"controller / yardstick", median(ratios), "x", "")
		r.figure(prefix+"flux suspend --all / controller", median(bySuspend), "x", "")
		r.figure(prefix+"writes per target", copied.writes[closed].of("kustomizations").total()/float64(len(f.targets)), "", "")
		r.figure(prefix+"writes per gate", copied.writes[closed].of("gates").total()/float64(len(f.gates)), "", "")
		r.figure(prefix+"Kubernetes Events per target", copied.writes[closed].of("events").total()/float64(len(f.targets)), "", "")
	}
	return nil
}

// controllerTurn closes and opens a fleet by the controller.
func (b *bench) controllerTurn(ctx context.Context, f *fleet, args ...string) (turn, *copied, error) {
	t := turn{controller: map[bool]*transition{}}
	c := newCopied(f)
	if err := b.startController(ctx, args...); err != nil {
		return t, c, err
	}
	for _, closed := range []bool{true, false} {
		measured, err := b.transition(ctx, f, closed)
		if err != nil {
			return t, c, err
		}
		t.controller[closed], c.writes[closed] = measured, measured.writes
		if c.objects[closed], err = b.read(ctx, f.targets); err != nil {
			return t, c, err
		}
		if c.gates[closed], err = b.readGates(ctx, f.gates); err != nil {
			return t, c, err
		}
	}
	return t, c, b.stopController()
}

// yardstickTurn does what a controller did on the same objects, without one.
func (b *bench) yardstickTurn(ctx context.Context, c *copied) (map[bool]time.Duration, error) {
	bare, err := b.newBare()
	if err != nil {
		return nil, err
	}
	took := map[bool]time.Duration{}
	for _, closed := range []bool{true, false} {
		now, err := b.read(ctx, c.fleet.targets)
		if err != nil {
			return nil, err
		}
		todo := c.work(now, c.fleet.governed(), closed)
		before, err := b.quiet(ctx)
		if err != nil {
			return nil, err
		}
		if took[closed], err = bare.send(ctx, todo); err != nil {
			return nil, err
		}
		after, err := b.quiet(ctx)
		if err != nil {
			return nil, err
		}
		b.say("yardstick, %s: %.2fs; %s", edgeName(closed), took[closed].Seconds(), after.since(before).writes())
	}
	return took, nil
}

// sequential suspends and resumes a sample of targets one after the other, as "flux
// suspend --all" does it, and returns how long all of them would take.
func (b *bench) sequential(ctx context.Context, f *fleet) (map[bool]time.Duration, error) {
	n := min(sample, len(f.targets))
	took := map[bool]time.Duration{}
	for _, suspend := range []bool{true, false} {
		var value any
		if suspend {
			value = true
		}
		raw := client.RawPatch(types.MergePatchType, mustMarshal(map[string]any{"spec": map[string]any{"suspend": value}}))
		begin := time.Now()
		for _, key := range f.targets[:n] {
			if err := b.client.Patch(ctx, newKustomization(key), raw, client.FieldOwner("flux")); err != nil {
				return nil, err
			}
		}
		took[suspend] = time.Since(begin) * time.Duration(len(f.targets)) / time.Duration(n)
		b.say("flux suspend --all, %s: %.1fs for all", edgeName(suspend), took[suspend].Seconds())
	}
	return took, nil
}
