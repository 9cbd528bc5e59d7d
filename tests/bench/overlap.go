package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// overlapping are the Gates that govern the same targets.
	overlapping = 5
	// maxWritesSeenTogether is for a target whose Gates change at the same instant, maxWritesApart if they change within a second.
	maxWritesSeenTogether, maxWritesApart = 2, 3
)

var overlap = scenario{
	name: "overlap", title: "Several Gates over the same targets", run: runOverlap,
	about: `
Five Gates govern the same targets, a tenth of the usual number. They close and open at the same instant, as scheduled. Then they are
asked to close, and to open, one after the other within a second. Counted are all writes of targets until all is quiet: a
target is written once for all Gates, and once more for its conditions. Gates that are not seen together may cost one more.`,
}

func runOverlap(ctx context.Context, b *bench) (*result, error) {
	f, err := b.overlappingFleet(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.startController(ctx); err != nil {
		return nil, err
	}
	r := &result{}
	t := table{title: fmt.Sprintf("%d gates over %d targets", len(f.gates), len(f.targets)), columns: []string{"", "close", "open", "at most"}}
	for _, how := range []struct {
		name   string
		limit  float64
		change func(context.Context, *fleet, bool) (usage, error)
	}{
		{"writes per target, at the same instant", maxWritesSeenTogether, b.changeTogether},
		{"writes per target, within a second", maxWritesApart, b.changeApart},
	} {
		cells := []any{how.name}
		for _, closed := range []bool{true, false} {
			used, err := how.change(ctx, f, closed)
			if err != nil {
				return nil, err
			}
			writes := perTarget(used.calls.writes(), len(f.targets))
			b.say("%s, %s: %.3f; %s; conflicts: %s", how.name, edgeName(closed), writes, used.calls.writes(), used.conflicts)
			if cells = append(cells, writes); writes > how.limit {
				r.miss(false, "%s, %s: %s, the limit is %s.", how.name, edgeName(closed), beyond(writes, how.limit), digits(how.limit))
			}
		}
		t.row(append(cells, digits(how.limit))...)
	}
	r.tables = append(r.tables, t)
	if err := b.removeGates(ctx, f.gates); err != nil {
		return nil, err
	}
	return r, b.stopController()
}

// overlappingFleet makes Gates that all govern the same targets.
func (b *bench) overlappingFleet(ctx context.Context) (*fleet, error) {
	targets, err := b.targets(ctx, "overlap", 1, b.many()/10)
	if err != nil {
		return nil, err
	}
	f := &fleet{targets: targets}
	for i := range overlapping {
		key := client.ObjectKey{Namespace: namespaceOf("overlap", 0), Name: fmt.Sprintf("gate-%d", i)}
		spec := v1alpha1.GateSpec{Targets: []v1alpha1.TargetReference{{Kind: kustomization, Name: v1alpha1.AnyName}}}
		if err := b.newGate(ctx, key, spec); err != nil {
			return nil, err
		}
		f.gates = append(f.gates, key)
	}
	return f, nil
}

// changeTogether has all Gates close or open at the same instant, as scheduled.
func (b *bench) changeTogether(ctx context.Context, f *fleet, closed bool) (usage, error) {
	t, err := b.transition(ctx, f, closed)
	if err != nil {
		return usage{}, err
	}
	return t.used, nil
}

// changeApart asks one Gate after the other within a second.
func (b *bench) changeApart(ctx context.Context, f *fleet, closed bool) (usage, error) {
	before, err := b.quietUsage(ctx)
	if err != nil {
		return usage{}, err
	}
	w := b.observer.expect(f.targets, closed)
	for _, key := range f.gates {
		if err := b.request(ctx, key, closed); err != nil {
			return usage{}, err
		}
		time.Sleep(time.Second / overlapping)
	}
	if err := b.observer.wait(ctx, w); err != nil {
		return usage{}, err
	}
	if err := b.settled(ctx, f, closed); err != nil {
		return usage{}, err
	}
	after, err := b.quietUsage(ctx)
	return after.since(before), err
}
