package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
the conditions of all targets and the status of all Gates are written, too. Events are on: the controller records one of
Kubernetes for each target, one after the other, and posts them to a receiver, as notification-controller takes them.

The yardstick is a bare client that sends the same number of the same patches, as many at a time: 16 targets, 4 Gates. It sends what
holds or releases all targets first, and then their conditions. It
takes their content from what the controller left on the same objects. It is the same user, and asks for the same of the answers: of
those about targets the metadata alone. It posts as many Events, one after the other; what is left of these when all is written counts for neither. It knows what to write
without having read anything and decides nothing. It needs only the time of the API server. It is measured twice: without a watch,
and with one that keeps a copy of all targets, the informer of client-go. A program that is told of changes by watches needs as much,
and an API server on the same cores has to send what it is told. The watches of the bench run all the time.

Each is measured once, in this order: the controller, the yardstick, the yardstick that watches. How much such a figure is
worth is in the next section.

"flux suspend" is one merge patch of spec.suspend after the other, as "flux suspend --all" and "flux resume --all" send them. It
is measured on a sample and scaled. It sets no condition, and it does not know when.

"Reads" are what the API server has counted as GET and LIST of the controller: it is to know its targets from watches alone.`,
}

func runThroughput(ctx context.Context, b *bench) (*result, error) {
	r := &result{}
	one, err := b.oneGate(ctx, b.many())
	if err != nil {
		return nil, err
	}
	if err := b.compare(ctx, r, "One gate", one, 1); err != nil {
		return nil, err
	}
	many, err := b.manyGates(ctx, b.many()/targetsOfEach)
	if err != nil {
		return nil, err
	}
	return r, b.compare(ctx, r, fmt.Sprintf("%d gates", len(many.gates)), many, 1)
}

// repeated is throughput with few targets, so that there can be several turns.
var repeated = scenario{
	name: "turns", title: "Throughput in several turns", run: runRepeated,
	about: `
One Gate with a tenth of the targets, as above, five times in turn with the yardstick, to see how much a machine differs from itself: the
median, and behind it the extremes. The yardstick comes before the one that watches in one turn, and after it in the next. "flux suspend" is
measured once, at the end.`,
}

func runRepeated(ctx context.Context, b *bench) (*result, error) {
	r := &result{}
	f, err := b.gateOf(ctx, b.many()/10)
	if err != nil {
		return nil, err
	}
	return r, b.compare(ctx, r, "One gate", f, 5)
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
		spec.Targets = append(spec.Targets, allIn(i))
	}
	return f, b.newGate(ctx, f.gates[0], spec)
}

// allIn refers to all shared targets in one of their namespaces.
func allIn(namespace int) v1alpha1.TargetReference {
	return v1alpha1.TargetReference{Kind: kustomization, Name: v1alpha1.AnyName, Namespace: namespaceOf(shared, namespace)}
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

// turn is one measurement of a fleet.
type turn struct {
	controller map[bool]*transition
	// bare is by the yardsticks, by whether they watch.
	bare map[bool]map[bool]spent
	// posted is how many events the receiver got.
	posted int
}

// spent is the time that something took, that of the processor that the API server
// took for it, until all was quiet, and what was written without refused writes.
type spent struct {
	took, server time.Duration
	// last is how long it took until all targets were held or released.
	last   time.Duration
	writes calls
}

// compare measures a fleet some times and removes its Gates.
func (b *bench) compare(ctx context.Context, r *result, name string, f *fleet, times int) error {
	var turns []turn
	for i := range b.repeat(times) {
		t, seen, err := b.controllerTurn(ctx, f)
		if err != nil {
			return err
		}
		for _, watches := range yardsticks(i) {
			if t.bare[watches], err = b.yardstickTurn(ctx, seen, watches); err != nil {
				return err
			}
		}
		turns = append(turns, t)
		for _, closed := range []bool{true, false} {
			if len(f.gates) == 1 && len(f.targets) == b.many() {
				b.transitions[closed] = append(b.transitions[closed], t.controller[closed])
			}
		}
	}
	suspended, err := b.sequential(ctx, f)
	if err != nil {
		return err
	}
	r.tables = append(r.tables, comparison(name, f, turns, suspended))
	r.compared(name, len(f.targets), turns)
	if err := b.startController(ctx); err != nil {
		return err
	}
	return errors.Join(b.removeGates(ctx, f.gates), b.stopController())
}

// yardsticks tells the order of the yardsticks in a turn, as whether they watch.
// Later ones may find it easier, so they change places.
func yardsticks(turn int) []bool { return []bool{turn%2 != 0, turn%2 == 0} }

func yardstickName(watches bool) string {
	if watches {
		return "yardstick that watches"
	}
	return "yardstick"
}

// comparison is the table of a fleet.
func comparison(name string, f *fleet, turns []turn, suspended map[bool]time.Duration) table {
	t := table{title: fmt.Sprintf("%s, %d targets, %d turns", name, len(f.targets), len(turns)), columns: []string{"", "close", "open", "aim"}}
	row := func(what, aim string, value func(turn, bool) float64) { t.compared(what, aim, value, turns) }
	row("first target, s", "", func(t turn, closed bool) float64 { return t.controller[closed].first().Seconds() })
	row("last target, s", "", func(t turn, closed bool) float64 { return t.controller[closed].last().Seconds() })
	row("all written, s", "less than 60", written)
	for _, watches := range yardsticks(0) {
		name := yardstickName(watches)
		row("last target of the "+name+", s", "", func(t turn, closed bool) float64 { return t.bare[watches][closed].last.Seconds() })
		row("all written by the "+name+", s", "", func(t turn, closed bool) float64 { return t.bare[watches][closed].took.Seconds() })
		row("**last target to that of the "+name+"**", "1.10 or less", lastTo(watches))
		row("**all written to the "+name+"**", "1.10 or less", writtenTo(watches))
	}
	row("flux suspend to controller", "", func(t turn, closed bool) float64 { return suspended[closed].Seconds() / written(t, closed) })
	row("writes per target", "2 or less", per(len(f.targets), kustomizations.Resource))
	row("writes per target of the yardstick", "as many without refused ones", func(t turn, closed bool) float64 {
		return t.bare[false][closed].writes.of(kustomizations.Resource).total() / float64(len(f.targets))
	})
	row("writes per gate", "", per(len(f.gates), "gates"))
	row("Kubernetes Events per gate", "", per(len(f.gates), "events"))
	row("reads per target", "", func(t turn, closed bool) float64 {
		return t.controller[closed].used.calls.lookups().total() / float64(len(f.targets))
	})
	row("requests refused because of a conflict", "", func(t turn, closed bool) float64 { return t.controller[closed].used.conflicts.total() })
	row("processor time of the controller, s", "", func(t turn, closed bool) float64 { return t.controller[closed].used.controller.Seconds() })
	row("processor time of the API server, s", "", func(t turn, closed bool) float64 { return t.controller[closed].used.server.Seconds() })
	for _, watches := range yardsticks(0) {
		row("the same for the "+yardstickName(watches)+", s", "", func(t turn, closed bool) float64 { return t.bare[watches][closed].server.Seconds() })
	}
	t.row("events posted per target, both", "", float64(turns[0].posted)/float64(len(f.targets)), "")
	return t
}

// compared adds a row with the medians of some turns, and with the extremes of several.
func (t *table) compared(what, aim string, value func(turn, bool) float64, turns []turn) {
	cells := []any{what}
	for _, closed := range []bool{true, false} {
		values := valuesOf(turns, closed, value)
		if cell := median(values); len(values) == 1 {
			cells = append(cells, cell)
		} else {
			cells = append(cells, fmt.Sprintf("%s (%s–%s)", digits(cell), digits(slices.Min(values)), digits(slices.Max(values))))
		}
	}
	t.row(append(cells, aim)...)
}

func written(t turn, closed bool) float64 { return t.controller[closed].written.Seconds() }

// per is how many writes of a resource there were for each of n.
func per(n int, resource string) func(turn, bool) float64 {
	return func(t turn, closed bool) float64 {
		return t.controller[closed].used.calls.writes().of(resource).total() / float64(n)
	}
}

// controllerTurn closes and opens a fleet by the controller.
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
		return t, c, fmt.Errorf("the sink got what is not an event: %s", faults[0])
	}
	return t, c, nil
}

// spread is over how many namespaces the targets are.
func (b *bench) spread() int { return min(maxSpread, b.many()/targetsOfEach) }

// yardstickTurn does what a controller did on the same objects, without one.
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
		b.say("yardstick, %s, watches %t: last target %.2fs, all %.2fs; API server %.1fs; %s", edgeName(closed), watches, last.Seconds(), took.Seconds(), used.server.Seconds(), used.calls.writes())
	}
	return all, nil
}

// sequential suspends and resumes a sample of targets one after the other, as "flux
// suspend --all" does it, and returns how long all of them would take.
func (b *bench) sequential(ctx context.Context, f *fleet) (map[bool]time.Duration, error) {
	watching, err := observe(ctx, b.config, b.client.Scheme())
	defer watching.stop()
	if err != nil {
		return nil, err
	}
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
