package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// maxSpread is over how many namespaces the targets are.
	maxSpread = 50
	// targetsOfEach of many Gates.
	targetsOfEach = 10
	// sample is how many objects are suspended one after the other.
	sample = 500
)

// shared is the group of targets that scenarios use in turn.
const shared = "apps"

var throughput = scenario{
	name: "throughput", title: "Throughput of a transition", run: runThroughput,
	about: `
All targets are closed and opened once by one Gate, and once by many Gates with 10 targets each, on the same cron
expression. "Last target" is from the scheduled instant until the last target is held or released; "all written" is until
the conditions of all targets and the status of all Gates are written, too.

The yardstick is a bare client that sends the same number of the same patches, as many at a time: 16 targets of a Gate, 4 Gates. It
takes their content from what the controller left on the same objects, and it is the same user. It knows what to write without
having read anything: it has no watch, decides nothing, and records no events. What it needs is the time of the API
server.

"flux suspend" is one merge patch of spec.suspend after the other, as "flux suspend --all" and "flux resume --all" send them. It
is measured on a sample and scaled. It sets no condition, and it does not know when.

The rows with a sink have the events posted to a receiver as well, as notification-controller takes them.`,
}

func runThroughput(ctx context.Context, b *bench) (*result, error) {
	r := &result{}
	one, err := b.oneGate(ctx, b.many())
	if err != nil {
		return nil, err
	}
	if err := b.compare(ctx, r, "One gate", one); err != nil {
		return nil, err
	}
	many, err := b.manyGates(ctx, b.many()/targetsOfEach)
	if err != nil {
		return nil, err
	}
	return r, b.compare(ctx, r, fmt.Sprintf("%d gates", len(many.gates)), many)
}

// oneGate makes a Gate and n targets in many namespaces.
func (b *bench) oneGate(ctx context.Context, n int) (*fleet, error) {
	targets, err := b.targets(ctx, shared, b.spread(), n)
	if err != nil {
		return nil, err
	}
	f := &fleet{gates: []client.ObjectKey{{Namespace: namespaceOf(shared, 0), Name: "all"}}, targets: targets}
	spec := v1alpha1.GateSpec{}
	for i := range b.spread() {
		spec.Targets = append(spec.Targets, v1alpha1.TargetReference{Kind: kustomization, Name: v1alpha1.AnyName, Namespace: namespaceOf(shared, i)})
	}
	return f, b.newGate(ctx, f.gates[0], spec)
}

// manyGates makes n Gates with some targets each, in the namespaces of their targets.
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

// compare measures a fleet and removes its Gates.
func (b *bench) compare(ctx context.Context, r *result, name string, f *fleet) error {
	var turns []turn
	var seen *copied
	for range b.repeat(2) {
		var t turn
		var err error
		if t, seen, err = b.controllerTurn(ctx, f); err != nil {
			return err
		}
		if t.yardstick, err = b.yardstickTurn(ctx, seen); err != nil {
			return err
		}
		turns = append(turns, t)
		for _, closed := range []bool{true, false} {
			if len(f.gates) == 1 {
				b.transitions[closed] = append(b.transitions[closed], t.controller[closed])
			}
		}
	}
	suspended, err := b.sequential(ctx, f)
	if err != nil {
		return err
	}
	for _, closed := range []bool{true, false} {
		report(r, name+", "+edgeName(closed), f, turns, suspended[closed], closed)
	}
	if err := b.withSink(ctx, r, name, f, turns); err != nil {
		return err
	}
	if err := b.startController(ctx); err != nil {
		return err
	}
	return errors.Join(b.removeGates(ctx, f.gates), b.stopController())
}

func report(r *result, name string, f *fleet, turns []turn, suspend time.Duration, closed bool) {
	var all, last, bare, ratios, bySuspend []float64
	for _, t := range turns {
		all, last = append(all, t.controller[closed].written.Seconds()), append(last, t.controller[closed].last().Seconds())
		bare = append(bare, t.yardstick[closed].Seconds())
		ratios = append(ratios, t.controller[closed].written.Seconds()/t.yardstick[closed].Seconds())
		bySuspend = append(bySuspend, suspend.Seconds()/t.controller[closed].written.Seconds())
	}
	targets := float64(len(f.targets))
	writes := turns[len(turns)-1].controller[closed].used.calls.writes()
	r.figure(name+": last target", median(last), "s", fmt.Sprintf("%d targets", len(f.targets)))
	r.figure(name+": all written", median(all), "s", "conditions and status as well")
	r.figure(name+": yardstick", median(bare), "s", "the same patches by a bare client")
	r.figure(name+": controller to yardstick", median(ratios), "", "all written to yardstick; the aim is 1.15 or less")
	r.figure(name+": flux suspend to controller", median(bySuspend), "", "how many times longer one patch after the other takes")
	r.figure(name+": writes per target", writes.of("kustomizations").total()/targets, "", "those of the hold and of the condition; the aim is 2 or less")
	r.figure(name+": writes per gate", writes.of("gates").total()/float64(len(f.gates)), "", "its status, at the beginning and at the end")
	r.figure(name+": Kubernetes Events per target", writes.of("events").total()/targets, "", "recorded in the background")
}

// withSink measures a fleet once more with a receiver of events.
func (b *bench) withSink(ctx context.Context, r *result, name string, f *fleet, without []turn) error {
	sink := harness.StartEventSink()
	defer sink.Close()
	t, _, err := b.controllerTurn(ctx, f, "--events-addr="+sink.URL)
	if err != nil {
		return err
	}
	posted, faults := sink.Take()
	if len(faults) > 0 {
		return fmt.Errorf("the sink got what is no event: %s", faults[0])
	}
	for _, closed := range []bool{true, false} {
		var bare []float64
		for _, t := range without {
			bare = append(bare, t.yardstick[closed].Seconds())
		}
		prefix := name + ", " + edgeName(closed) + ", with a sink: "
		r.figure(prefix+"all written", t.controller[closed].written.Seconds(), "s", "")
		r.figure(prefix+"controller to yardstick", t.controller[closed].written.Seconds()/median(bare), "", "the yardstick is that of above")
		r.figure(prefix+"Kubernetes Events per target", t.controller[closed].used.calls.writes().of("events").total()/float64(len(f.targets)), "", "")
	}
	r.figure(name+", with a sink: events posted per target", float64(len(posted))/float64(len(f.targets)), "", "for closing and opening together")
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
		t.controller[closed], c.writes[closed] = measured, measured.used.calls.writes()
		if c.objects[closed], err = b.read(ctx, f.targets); err != nil {
			return t, c, err
		}
		if c.gates[closed], err = b.readGates(ctx, f.gates); err != nil {
			return t, c, err
		}
	}
	return t, c, b.stopController()
}

// spread is over how many namespaces the targets are.
func (b *bench) spread() int { return min(maxSpread, b.many()/targetsOfEach) }

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
