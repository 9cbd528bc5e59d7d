package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// namedTargets is up to how many targets a Gate of a precise size names them one by one.
// With more it takes whole namespaces.
const namedTargets = 200

// enoughForP99 is of how many values on there is a p99.
const enoughForP99 = 10

var precision = scenario{
	name: "precision", title: "Precision", run: runPrecision,
	about: `
A Gate closes and opens at set instants, several times in a row. The table has the time from the instant to the first and to
the last target, as the watch saw them. It has p50 and the slowest over the edges of a size, and p99 of those with 10 edges or more: with
fewer than 100 edges, that is the slowest. Negative would be too early: "earliest" is the smallest value of
all, over all targets of all edges. After the last close and the last open of each size all of its targets are read.

A watch tells of a write after it has happened, so that what it saw is never too early. How long after is not known exactly:
measured is the time from the answer to a write to the arrival of its event, below zero if the event was there first. All clocks are
one clock.`,
}

func runPrecision(ctx context.Context, b *bench) (*result, error) {
	r := &result{}
	lag := table{title: "From the instant to the targets, in seconds", columns: []string{
		"targets", "edges", "", "first p50", "first p99", "first max", "last p50", "last p99", "last max", "earliest"}}
	first, last := series{name: "first target, p50"}, series{name: "last target, p50"}
	if err := b.startController(ctx); err != nil {
		return nil, err
	}
	for n, edges := 1, b.repeat(12); n <= b.many(); n, edges = n*10, max(b.repeat(2), edges*2/3) {
		measured, err := b.edges(ctx, n, edges)
		if err != nil {
			return nil, err
		}
		for _, closed := range []bool{true, false} {
			row := lagsOf(measured[closed])
			r.punctual(fmt.Sprintf("%d targets, %s", n, edgeName(closed)), quantile(row.first, 0))
			lag.row(row.cells(n, closed)...)
			if closed {
				first.points = append(first.points, [2]float64{float64(n), quantile(row.first, .5)})
				last.points = append(last.points, [2]float64{float64(n), quantile(row.last, .5)})
			}
		}
	}
	if err := b.watchError(ctx, r); err != nil {
		return nil, err
	}
	r.tables = append(r.tables, lag)
	r.plots = append(r.plots, plot{file: "precision", title: "From the instant of a close to the first and the last target", xLabel: "targets of the Gate", yLabel: "seconds", logarithmic: true, series: []series{first, last}})
	return r, b.stopController()
}

// edges closes and opens a Gate with n targets some times. With all targets this was
// done before.
func (b *bench) edges(ctx context.Context, n, times int) (map[bool][]*transition, error) {
	if n == b.many() && len(b.transitions[true]) > 0 {
		return b.transitions, nil
	}
	f, err := b.gateOf(ctx, n)
	if err != nil {
		return nil, err
	}
	f.brisk = true
	measured := map[bool][]*transition{}
	for i := range times {
		for _, closed := range []bool{true, false} {
			t, err := b.transition(ctx, f, closed)
			if err != nil {
				return nil, err
			}
			measured[closed] = append(measured[closed], t)
			if i < times-1 {
				continue
			}
			if err := b.verify(ctx, f, closed); err != nil {
				return nil, err
			}
		}
	}
	b.say("%d edges with %d targets", 2*times, n)
	return measured, b.removeGates(ctx, f.gates)
}

type lags struct{ first, last []float64 }

// cells are the row of a size.
func (l lags) cells(n int, closed bool) []any {
	cells := []any{n, len(l.first), edgeName(closed)}
	for _, values := range [][]float64{l.first, l.last} {
		var p99 any = ""
		if len(values) >= enoughForP99 {
			p99 = quantile(values, .99)
		}
		cells = append(cells, quantile(values, .5), p99, quantile(values, 1))
	}
	return append(cells, quantile(l.first, 0))
}

func lagsOf(transitions []*transition) lags {
	var l lags
	for _, t := range transitions {
		l.first = append(l.first, t.first().Seconds())
		l.last = append(l.last, t.last().Seconds())
	}
	return l
}

// gateOf makes a Gate with n of the targets that all scenarios share.
func (b *bench) gateOf(ctx context.Context, n int) (*fleet, error) {
	targets, err := b.targets(ctx, shared, b.spread(), max(n, b.many(), len(b.groups[shared])))
	if err != nil {
		return nil, err
	}
	f := &fleet{gates: []client.ObjectKey{{Namespace: namespaceOf(shared, 0), Name: fmt.Sprintf("gate-of-%d", n)}}}
	spec := v1alpha1.GateSpec{}
	if n <= namedTargets {
		f.targets = targets[:n]
		for _, target := range f.targets {
			spec.Targets = append(spec.Targets, v1alpha1.TargetReference{Kind: kustomization, Name: target.Name, Namespace: target.Namespace})
		}
		return f, b.newGate(ctx, f.gates[0], spec)
	}
	namespaces := map[string]bool{}
	for i := range n * b.spread() / len(targets) {
		namespaces[namespaceOf(shared, i)] = true
		spec.Targets = append(spec.Targets, v1alpha1.TargetReference{Kind: kustomization, Name: v1alpha1.AnyName, Namespace: namespaceOf(shared, i)})
	}
	for _, target := range targets {
		if namespaces[target.Namespace] {
			f.targets = append(f.targets, target)
		}
	}
	return f, b.newGate(ctx, f.gates[0], spec)
}

// watchError measures how much later than the answer to a write the watch tells of it.
func (b *bench) watchError(ctx context.Context, r *result) error {
	const tries = 100
	targets, err := b.targets(ctx, shared, b.spread(), b.many())
	if err != nil {
		return err
	}
	var errors []float64
	for i := range tries {
		// No Gate is named that exists, so that the controller has nothing to do.
		var value any
		if i%2 == 0 {
			value = "bench/none"
		}
		w := b.observer.expect(targets[:1], value != nil)
		if err := b.annotate(ctx, newKustomization(targets[0]), v1alpha1.HeldByAnnotation, value); err != nil {
			return err
		}
		answered := time.Now()
		if err := b.observer.wait(ctx, w); err != nil {
			return err
		}
		errors = append(errors, 1000*w.arrivals[0].Sub(answered).Seconds())
	}
	r.figure("From an answer to its event, p50", quantile(errors, .5), "ms", fmt.Sprintf("of %d writes one after the other", tries))
	r.figure("From an answer to its event, p99", quantile(errors, .99), "ms", "the same")
	return nil
}
