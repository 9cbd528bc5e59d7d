package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// growthRounds are how many reconciliations of each Gate one value is taken from.
	growthRounds = 10
	// cpuTick is what Linux counts the time of processes in.
	cpuTick = 10 * time.Millisecond
)

var growth = scenario{
	name: "growth", title: "Growth", run: runGrowth,
	about: `
The cost of the controller as one number grows and the others stay. A round is one reconciliation of each Gate in
which nothing has to be written: every Gate decides, selects its targets and looks at each of them. Its cost is processor time
of the process, which Linux counts in hundredths of a second: what is less than two of them is not told from nothing.
The exponent is the slope of the line through the logarithms: 1 is linear, less is better, more is worse.
Where it is far below 1, what does not grow outweighs what does. A line hides a jump that is followed by a plateau, so that the
steepest slope between two neighbours stands beside it. Each point was measured once.

"409" are the requests that the API server refused because the object had changed meanwhile: of a close, of an open, or of all rounds that were measured.

- Gates per target: every Gate governs the same targets, all close and open at the same time, and each adds its name and removes it again. That is one
  write of a hold and one of a condition for each Gate and target, and another try for each that was not first.
- Gates that open at once: each has one target of its own, and all close and open at the same time.
- Targets per Gate: one Gate.
- Periods per Gate: cron expressions.
- Namespaces: one Gate and its share of the targets in each, so that the number of Gates grows as well.`,
}

// axis is a number that grows.
type axis struct {
	name   string
	values []int
	// fleet makes the Gates of a value, open and with an interval of a second.
	fleet func(ctx context.Context, n int) (*fleet, error)
	// moves says that they close and open as well.
	moves bool
	// apart says that no target has two Gates.
	apart bool
}

// pairs are how many times a Gate governs a target.
func (f *fleet) pairs(apart bool) int {
	if apart {
		return len(f.targets)
	}
	return len(f.gates) * len(f.targets)
}

func (b *bench) axes() []axis {
	upTo := func(all, quick []int) []int {
		if b.quick {
			return quick
		}
		return all
	}
	return []axis{
		{"gates per target", upTo([]int{1, 2, 4, 16, 64}, []int{1, 2, 4}), b.gatesOnOneTarget, true, false},
		{"gates that open at once", upTo([]int{10, 30, 100, 300}, []int{5, 20}), b.gatesOfOneTarget, true, true},
		{"targets per gate", upTo([]int{10, 100, 1000, 10000, 50000}, []int{10, 100}), b.gateOf, false, true},
		{"periods per gate", upTo([]int{1, 10, 100}, []int{1, 100}), b.gatesWithPeriods, false, true},
		{"namespaces", upTo([]int{1, 10, 100, 1000}, []int{1, 10}), b.gatesInNamespaces, false, true},
	}
}

func runGrowth(ctx context.Context, b *bench) (*result, error) {
	r := &result{}
	if err := b.startController(ctx); err != nil {
		return nil, err
	}
	for _, a := range b.axes() {
		t := table{title: "Against " + a.name, columns: []string{a.name, "gates", "targets", "round, ms", "round: 409"}}
		if a.moves {
			for _, edge := range []string{"close", "open"} {
				t.columns = append(t.columns, edge+", s", edge+": writes per gate and target", edge+": 409")
			}
		}
		lines := map[string]*series{}
		for _, n := range a.values {
			if n > 1000 && n > len(b.groups[shared]) && a.name == "targets per gate" {
				continue // only after what has made so many
			}
			if err := b.grow(ctx, a, n, r, &t, lines); err != nil {
				return nil, fmt.Errorf("%d %s: %w", n, a.name, err)
			}
		}
		r.tables = append(r.tables, t)
		p := plot{file: fmt.Sprintf("growth-%d", len(r.plots)+1), title: "Cost against " + a.name, xLabel: a.name, yLabel: "milliseconds", logarithmic: true}
		for _, name := range []string{"round", "close", "open"} {
			if line := lines[name]; line != nil {
				what := fmt.Sprintf("Exponent of a %s against %s", name, a.name)
				r.figure(what, exponent(line.points), "", steepest(line.points).String())
				r.grown(what, exponent(line.points))
				p.series = append(p.series, *line)
			}
		}
		r.plots = append(r.plots, p)
	}
	return r, b.stopController()
}

// grow measures one value of an axis.
func (b *bench) grow(ctx context.Context, a axis, n int, r *result, t *table, lines map[string]*series) error {
	add := func(name string, value float64) {
		if lines[name] == nil {
			lines[name] = &series{name: name}
		}
		lines[name].points = append(lines[name].points, [2]float64{float64(n), value})
	}
	f, err := a.fleet(ctx, n)
	if err != nil {
		return err
	}
	if err := b.settled(ctx, f, false); err != nil {
		return err
	}
	moves := []any{}
	if a.moves {
		for _, closed := range []bool{true, false} {
			moved, err := b.transition(ctx, f, closed)
			if err != nil {
				return err
			}
			add(edgeName(closed), 1000*moved.written.Seconds())
			what, writes := fmt.Sprintf("%d %s, %s", n, a.name, edgeName(closed)), moved.used.calls.writes().of(kustomizations.Resource).total()
			r.punctual(what, moved.first().Seconds())
			if len(f.gates) == 1 || a.apart {
				r.thrifty(what, moved.used, len(f.targets))
			}
			moves = append(moves, moved.written.Seconds(), writes/float64(f.pairs(a.apart)), moved.used.conflicts.total())
		}
	}
	rounds := growthRounds
	if b.quick {
		rounds = 2
	}
	resting, err := b.rest(ctx, f, false, 24*time.Hour, 0)
	if err != nil {
		return err
	}
	busy, err := b.rest(ctx, f, false, time.Second, float64(rounds*len(f.gates)))
	if err != nil {
		return err
	}
	background := resting.controller.Seconds() / resting.took.Seconds() * busy.took.Seconds()
	perRound := func(seconds float64) float64 { return 1000 * seconds / busy.reconciles * float64(len(f.gates)) }
	round := perRound(busy.controller.Seconds() - background)
	shown := digits(round)
	if least := perRound(2 * cpuTick.Seconds()); round < least {
		shown = "under " + digits(least)
	} else {
		add("round", round)
	}
	t.row(append([]any{n, len(f.gates), len(f.targets), shown, busy.conflicts.total()}, moves...)...)
	b.say("%d %s: a round is %s ms: %s s of the processor in %s and %.0f reconciliations, at rest %s s in %s", n, a.name, shown,
		digits(busy.controller.Seconds()), busy.took.Round(time.Second), busy.reconciles, digits(resting.controller.Seconds()), resting.took.Round(time.Second))
	return b.removeGates(ctx, f.gates)
}

// gatesOnOneTarget makes n Gates with the same targets.
func (b *bench) gatesOnOneTarget(ctx context.Context, n int) (*fleet, error) {
	const targets = 20
	keys, err := b.targets(ctx, "several", 1, targets)
	if err != nil {
		return nil, err
	}
	f := &fleet{targets: keys}
	for i := range n {
		f.gates = append(f.gates, client.ObjectKey{Namespace: namespaceOf("several", 0), Name: fmt.Sprintf("gate-%02d", i)})
	}
	return f, b.newGates(ctx, f, func(client.ObjectKey) v1alpha1.GateSpec {
		return v1alpha1.GateSpec{Targets: []v1alpha1.TargetReference{{Kind: kustomization, Name: v1alpha1.AnyName}}}
	})
}

// gatesOfOneTarget makes n Gates with a target each.
func (b *bench) gatesOfOneTarget(ctx context.Context, n int) (*fleet, error) {
	keys, err := b.targets(ctx, "single", 1, n)
	if err != nil {
		return nil, err
	}
	f := &fleet{targets: keys, gates: keys}
	return f, b.newGates(ctx, f, func(key client.ObjectKey) v1alpha1.GateSpec {
		return v1alpha1.GateSpec{Targets: []v1alpha1.TargetReference{{Kind: kustomization, Name: key.Name}}}
	})
}

// gatesWithPeriods makes some Gates with n periods each. None is due soon.
func (b *bench) gatesWithPeriods(ctx context.Context, n int) (*fleet, error) {
	const gates = 50
	keys, err := b.targets(ctx, "periods", 1, gates)
	if err != nil {
		return nil, err
	}
	var periods []v1alpha1.ClosePeriod
	distant := time.Now().UTC().AddDate(0, 6, 0)
	for i := range n {
		at := distant.Add(time.Duration(i) * time.Hour).Format("4 15 2 1 *")
		p := v1alpha1.ClosePeriod{Period: v1alpha1.Period{Name: fmt.Sprintf("period-%d", i), Schedule: &at}}
		p.Duration = &v1alpha1.Duration{Duration: time.Minute}
		periods = append(periods, p)
	}
	f := &fleet{targets: keys}
	for _, key := range keys {
		f.gates = append(f.gates, client.ObjectKey{Namespace: key.Namespace, Name: key.Name})
	}
	return f, b.newGates(ctx, f, func(key client.ObjectKey) v1alpha1.GateSpec {
		return v1alpha1.GateSpec{ClosePeriods: periods, Targets: []v1alpha1.TargetReference{{Kind: kustomization, Name: key.Name}}}
	})
}

// gatesInNamespaces makes a Gate in each of n namespaces, for the same number of targets.
func (b *bench) gatesInNamespaces(ctx context.Context, n int) (*fleet, error) {
	targets := 1000
	if b.quick {
		targets = 20
	}
	group := fmt.Sprintf("of-%d", n)
	keys, err := b.targets(ctx, group, n, targets)
	if err != nil {
		return nil, err
	}
	f := &fleet{targets: keys}
	for i := range n {
		f.gates = append(f.gates, client.ObjectKey{Namespace: namespaceOf(group, i), Name: "gate"})
	}
	return f, b.newGates(ctx, f, func(client.ObjectKey) v1alpha1.GateSpec {
		return v1alpha1.GateSpec{Targets: []v1alpha1.TargetReference{{Kind: kustomization, Name: v1alpha1.AnyName}}}
	})
}

func (b *bench) newGates(ctx context.Context, f *fleet, spec func(client.ObjectKey) v1alpha1.GateSpec) error {
	return inParallel(setUpAtOnce, f.gates, func(key client.ObjectKey) error { return b.newGate(ctx, key, spec(key)) })
}
