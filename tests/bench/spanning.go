package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// wide is the group of targets in many namespaces, targetsOfNamespace in each. dense is the same number of them in a hundredth
	// of the namespaces.
	wide, dense        = "fleet", "dense"
	targetsOfNamespace = 5
	// maxPerNamespace is how much heap in KiB a namespace may add beside its targets.
	maxPerNamespace = 4
)

var spanning = scenario{
	name: "fleet", title: "One Gate over thousands of namespaces", run: runSpanning,
	about: `
One Gate governs a fifth as many namespaces as there are targets, with 5 targets in each. It closes and opens as in the section on throughput,
beside the same yardsticks, several times: the median, and behind it the extremes. In one comparison it names ` + "`namespace: \"*\"`" + ` and the
labels of its targets, in the other it has a ` + "`namespaceSelector`" + `. Other objects of the run are there all the time, in other namespaces.

The writes of a change are all that the API server counts until all is quiet, without those of the bench. The Gate is closed and holds all
targets meanwhile. A new namespace comes with one object. Then a label of another namespace, which has 5 objects, changes: the Gate begins to
govern them, another label makes no difference, and the Gate no longer governs them. The Gate counts its targets, so that its own status is
written as well. All this is measured without the lock of ` + "`config/lock`" + ` and with it. With it, a close or an open writes two GateLocks, however many
namespaces there are: the one for all namespaces, and that of the namespace in which the Gate is.

The memory is what the same number of targets adds to the heap of a controller, after garbage collection, in a few namespaces and in many.
Open is a controller that has just started, held is the same process after a close. A namespace adds, beside its targets, the
difference by the number of namespaces.`,
}

func runSpanning(ctx context.Context, b *bench) (*result, error) {
	r := &result{}
	if err := b.memoryByNamespaces(ctx, r); err != nil {
		return nil, err
	}
	ways := []struct {
		name string
		ref  v1alpha1.TargetReference
	}{{"By namespace *", anywhere(wide)}, {"By a namespaceSelector", labelled(map[string]string{partOf: wide})}}
	locks := []bool{false, true}
	if b.quick {
		ways, locks = ways[:1], locks[1:]
	}
	for _, by := range ways {
		f, err := b.spanningGate(ctx, wide, b.namespaces(), by.ref)
		if err != nil {
			return nil, err
		}
		if err := b.compare(ctx, r, fmt.Sprintf("%s, %d namespaces", by.name, b.namespaces()), f, 3); err != nil {
			return nil, err
		}
	}
	for _, locked := range locks {
		if err := b.changesOfNamespaces(ctx, r, locked); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// namespaces are how many have targets of the wide group.
func (b *bench) namespaces() int { return b.many() / targetsOfNamespace }

// anywhere refers to the targets of a group by their labels, in all namespaces.
func anywhere(group string) v1alpha1.TargetReference {
	return v1alpha1.TargetReference{Kind: kustomization, Name: v1alpha1.AnyName, Namespace: v1alpha1.AnyName, MatchLabels: map[string]string{partOf: group}}
}

// labelled refers to all targets in the namespaces that have some labels.
func labelled(labels map[string]string) v1alpha1.TargetReference {
	return v1alpha1.TargetReference{Kind: kustomization, Name: v1alpha1.AnyName, NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: labels}}
}

// spanningGate makes a Gate for all targets of a group, in a namespace that has none of them.
func (b *bench) spanningGate(ctx context.Context, group string, namespaces int, refs ...v1alpha1.TargetReference) (*fleet, error) {
	targets, err := b.targets(ctx, group, namespaces, b.namespaces()*targetsOfNamespace)
	if err != nil {
		return nil, err
	}
	gate := client.ObjectKey{Namespace: "gates", Name: group}
	if err := b.makeNamespace(ctx, gate.Namespace, gate.Namespace); err != nil {
		return nil, err
	}
	return &fleet{gates: []client.ObjectKey{gate}, targets: targets}, b.newGate(ctx, gate, v1alpha1.GateSpec{Targets: refs})
}

// memoryByNamespaces measures what as many targets add to a controller in few namespaces and in many.
func (b *bench) memoryByNamespaces(ctx context.Context, r *result) error {
	open, held := memories{}, memories{}
	few := max(1, b.namespaces()/100)
	for _, of := range []struct {
		group      string
		namespaces int
	}{{dense, few}, {wide, b.namespaces()}} {
		without, err := b.memoryWithout(ctx)
		if err != nil {
			return err
		}
		f, err := b.spanningGate(ctx, of.group, of.namespaces, anywhere(of.group))
		if err != nil {
			return err
		}
		opened, closed, err := b.memoryOf(ctx, f, !b.quick)
		if err != nil {
			return err
		}
		open[of.namespaces] = opened.beyond(without)
		if !b.quick {
			held[of.namespaces] = closed.beyond(without)
		}
	}
	r.byNamespaces(b.namespaces()*targetsOfNamespace, open, held)
	return nil
}

// beyond is what was added to an earlier use.
func (m memory) beyond(before memory) memory {
	return memory{m.heap - before.heap, m.resident - before.resident}
}

// byNamespaces notes what a number of targets added, by the number of their namespaces.
func (r *result) byNamespaces(targets int, open, held memories) {
	t := table{title: fmt.Sprintf("What %d targets add to the memory of the controller", targets), columns: []string{"namespaces", "heap in MiB, open", "held", "resident in MiB, open", "held"}}
	for _, n := range open.sizes() {
		cells := []any{n, open[n].heap / mebi, "", open[n].resident / mebi, ""}
		if m, measured := held[n]; measured {
			cells[2], cells[4] = m.heap/mebi, m.resident/mebi
		}
		t.row(cells...)
	}
	r.tables = append(r.tables, t)
	for _, of := range []struct {
		name  string
		added memories
	}{{"open", open}, {"held", held}} {
		sizes := of.added.sizes()
		if len(sizes) == 0 {
			continue
		}
		few, many := sizes[0], sizes[len(sizes)-1]
		each := (of.added[many].heap - of.added[few].heap) / float64(many-few) / 1024
		r.figure("Heap per namespace, "+of.name, each, "KiB", fmt.Sprintf("beside its targets, of %d namespaces more", many-few))
		if each > maxPerNamespace {
			r.miss(false, "Heap per namespace, %s: %s KiB, the limit is %d.", of.name, beyond(each, maxPerNamespace), maxPerNamespace)
		}
	}
}

// changesOfNamespaces measures the writes of a Gate that closes, of changes while it is closed, and of its opening.
func (b *bench) changesOfNamespaces(ctx context.Context, r *result, locked bool) error {
	title := "Without config/lock"
	if locked {
		title = "With config/lock"
		if err := b.cluster.InstallComponent(ctx, "lock"); err != nil {
			return err
		}
	}
	f, err := b.spanningGate(ctx, wide, b.namespaces(), anywhere(wide), labelled(tier("critical")))
	if err != nil {
		return err
	}
	if err := b.startController(ctx); err != nil {
		return err
	}
	c := &changes{bench: b, result: r, table: table{
		title: title, columns: []string{"change", "targets", "writes of targets", "of their status", "of the Gate", "GateLocks", "Events", "all others", "refused"},
	}}
	if err := c.run(ctx, f, fmt.Sprintf("fresh-%t", locked)); err != nil {
		return err
	}
	r.tables = append(r.tables, c.table)
	if err := b.removeGates(ctx, f.gates); err != nil {
		return err
	}
	if err := b.stopController(); err != nil || !locked {
		return err
	}
	return b.cluster.RemoveComponent(ctx, "lock")
}
