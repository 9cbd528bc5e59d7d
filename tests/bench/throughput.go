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
having read anything: it has no watch and decides nothing. What it needs is the time of the API server. The controller records
an Event of Kubernetes for each target besides, one after the other: the yardstick does so in the rows with events, and not in the others.

"flux suspend" is one merge patch of spec.suspend after the other, as "flux suspend --all" and "flux resume --all" send them. It
is measured on a sample and scaled. It sets no condition, and it does not know when.

The rows with events have them posted to a receiver as well, as notification-controller takes them.`,
}

func runThroughput(ctx context.Context, b *bench) (*result, error) {
	r := &result{}
	one, err := b.oneGate(ctx, b.many())
	if err != nil {
		return nil, err
	}
	if err := b.compare(ctx, r, "One gate", one, false); err != nil {
		return nil, err
	}
	many, err := b.manyGates(ctx, b.many()/targetsOfEach)
	if err != nil {
		return nil, err
	}
	return r, b.compare(ctx, r, fmt.Sprintf("%d gates", len(many.gates)), many, true)
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
	f := &fleet{targets: targets, cron: !b.quick}
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

// compare measures a fleet, with a receiver of events as well if they are asked for, and
// removes its Gates.
func (b *bench) compare(ctx context.Context, r *result, name string, f *fleet, events bool) error {
	var turns []turn
	var seen *copied
	for range b.repeat(1) {
		var t turn
		var err error
		if t, seen, err = b.controllerTurn(ctx, f); err != nil {
			return err
		}
		if t.yardstick, err = b.yardstickTurn(ctx, seen, false); err != nil {
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
	t := comparison(name, f, turns, suspended)
	if events {
		withSink, posted, err := b.withSink(ctx, f)
		if err != nil {
			return err
		}
		t.withEvents(f, withSink, posted)
	}
	r.tables = append(r.tables, t)
	if err := b.startController(ctx); err != nil {
		return err
	}
	return errors.Join(b.removeGates(ctx, f.gates), b.stopController())
}

// comparison is the table of a fleet.
func comparison(name string, f *fleet, turns []turn, suspended map[bool]time.Duration) table {
	t := table{title: fmt.Sprintf("%s, %d targets", name, len(f.targets)), columns: []string{"", "close", "open", "aim"}}
	row := func(what, aim string, value func(turn, bool) float64) { t.compared(what, aim, value, turns) }
	row("first target, s", "", func(t turn, closed bool) float64 { return t.controller[closed].first().Seconds() })
	row("last target, s", "", func(t turn, closed bool) float64 { return t.controller[closed].last().Seconds() })
	row("all written, s", "less than 60", written)
	row("yardstick, s", "", func(t turn, closed bool) float64 { return t.yardstick[closed].Seconds() })
	row("**controller to yardstick**", "1.15 or less", ratio)
	row("flux suspend to controller", "", func(t turn, closed bool) float64 { return suspended[closed].Seconds() / written(t, closed) })
	row("writes per target", "2 or less", per(len(f.targets), kustomizations.Resource))
	row("writes per gate", "", per(len(f.gates), "gates"))
	row("Kubernetes Events per target", "", per(len(f.targets), "events"))
	row("processor time of the controller, s", "", func(t turn, closed bool) float64 { return t.controller[closed].used.controller.Seconds() })
	row("processor time of the API server, s", "", func(t turn, closed bool) float64 { return t.controller[closed].used.server.Seconds() })
	return t
}

// withEvents adds what was measured with a receiver of events, which got some.
func (t *table) withEvents(f *fleet, measured turn, posted int) {
	turns := []turn{measured}
	t.compared("with events: all written, s", "less than 60", written, turns)
	t.compared("**with events: controller to yardstick**", "1.15 or less", ratio, turns)
	t.compared("with events: Kubernetes Events per target", "", per(len(f.targets), "events"), turns)
	t.row("with events: events posted per target, both", "", float64(posted)/float64(len(f.targets)), "")
}

// compared adds a row with the medians of some turns.
func (t *table) compared(what, aim string, value func(turn, bool) float64, turns []turn) {
	cells := []any{what}
	for _, closed := range []bool{true, false} {
		var values []float64
		for _, t := range turns {
			values = append(values, value(t, closed))
		}
		cells = append(cells, median(values))
	}
	t.row(append(cells, aim)...)
}

func written(t turn, closed bool) float64 { return t.controller[closed].written.Seconds() }

func ratio(t turn, closed bool) float64 { return written(t, closed) / t.yardstick[closed].Seconds() }

// per is how many writes of a resource there were for each of n.
func per(n int, resource string) func(turn, bool) float64 {
	return func(t turn, closed bool) float64 {
		return t.controller[closed].used.calls.writes().of(resource).total() / float64(n)
	}
}

// withSink measures a fleet once more with a receiver of events, and returns how many
// that got.
func (b *bench) withSink(ctx context.Context, f *fleet) (turn, int, error) {
	sink := harness.StartEventSink()
	defer sink.Close()
	t, seen, err := b.controllerTurn(ctx, f, "--events-addr="+sink.URL)
	if err != nil {
		return t, 0, err
	}
	if t.yardstick, err = b.yardstickTurn(ctx, seen, true); err != nil {
		return t, 0, err
	}
	posted, faults := sink.Take()
	if len(faults) > 0 {
		return t, 0, fmt.Errorf("the sink got what is no event: %s", faults[0])
	}
	return t, len(posted), nil
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
func (b *bench) yardstickTurn(ctx context.Context, c *copied, events bool) (map[bool]time.Duration, error) {
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
		if took[closed], err = bare.send(ctx, todo, events); err != nil {
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
