package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gateLocksOfGate are how many GateLocks have a Gate that spans namespaces: that of all namespaces, and that of its own.
const gateLocksOfGate = 2

// tier is a label of namespaces.
func tier(value string) map[string]string { return map[string]string{"tier": value} }

// changes measures what changes of namespaces cost.
type changes struct {
	*bench
	*result
	table table
}

// change is one change of the cluster, and what is to become of some targets.
type change struct {
	name    string
	targets []client.ObjectKey
	held    bool
	// own are the writes of the bench.
	own calls
	do  func(context.Context) error
}

// run closes a Gate, changes namespaces, the new one among them, and opens it.
func (c *changes) run(ctx context.Context, f *fleet, fresh string) error {
	const others = "others"
	keys, err := c.targets(ctx, others, 1, targetsOfNamespace)
	if err != nil {
		return err
	}
	if err := c.edge(ctx, f, true, len(f.targets)); err != nil {
		return err
	}
	label := func(labels map[string]string) func(context.Context) error {
		return func(ctx context.Context) error { return c.label(ctx, keys[0].Namespace, labels) }
	}
	added := client.ObjectKey{Namespace: fresh, Name: "app"}
	labelling := calls{{"PATCH", "namespaces", ""}: 1}
	for _, of := range []change{
		{"a new namespace with an object", []client.ObjectKey{added}, true, calls{{"POST", "namespaces", ""}: 1, {"APPLY", kustomizations.Resource, ""}: 1},
			func(ctx context.Context) error {
				if err := c.makeNamespace(ctx, others, fresh); err != nil {
					return err
				}
				_, err := c.applyKustomization(ctx, wide, added)
				return err
			}},
		{"a label that begins to match", keys, true, labelling, label(tier("critical"))},
		{"a label that does not matter", nil, true, labelling, label(map[string]string{"owner": fresh})},
		{"a label that stops matching", keys, false, labelling, label(tier("normal"))},
	} {
		if err := c.count(ctx, of); err != nil {
			return err
		}
	}
	if err := c.edge(ctx, f, false, len(f.targets)+1); err != nil {
		return err
	}
	return c.client.Delete(ctx, newKustomization(added))
}

func (c *changes) label(ctx context.Context, namespace string, labels map[string]string) error {
	raw := mustMarshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	return c.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, raw), client.FieldOwner("bench"))
}

// edge has the Gate close or open as scheduled, with as many targets as it has then.
func (c *changes) edge(ctx context.Context, f *fleet, closed bool, targets int) error {
	t, err := c.transition(ctx, f, closed)
	if err != nil {
		return err
	}
	c.punctual(edgeName(closed), t.first().Seconds())
	c.note(edgeName(closed), targets, gateLocksOfGate, t.used)
	return nil
}

// count makes a change and counts what follows.
func (c *changes) count(ctx context.Context, of change) error {
	before, err := c.quietUsage(ctx)
	if err != nil {
		return err
	}
	w := c.observer.expect(of.targets, of.held)
	if err := of.do(ctx); err != nil {
		return err
	}
	if err := c.observer.wait(ctx, w); err != nil {
		return err
	}
	after, err := c.quietUsage(ctx)
	if err != nil {
		return err
	}
	used := after.since(before)
	used.calls = used.calls.since(of.own)
	c.note(of.name, len(of.targets), 0, used)
	return nil
}

// note tells what a change has cost that is about some targets and may cost some writes of GateLocks.
func (c *changes) note(what string, targets int, gateLocks float64, used usage) {
	writes := used.calls.writes()
	count := func(resources ...string) float64 { return writes.of(resources...).total() }
	told, status := []string{kustomizations.Resource, "gates", "gatelocks", "events"}, 0.0
	for call, n := range writes.of(kustomizations.Resource) {
		if call.subresource != "" {
			status += n
		}
	}
	c.say("%s, %d targets: %s", what, targets, writes)
	c.table.row(what, targets, count(told[0])-status, status, count(told[1]), count(told[2]), count(told[3]), writes.total()-count(told...), used.conflicts.total())
	name := c.table.title + ", " + what
	if targets == 0 {
		c.unwritten(name, writes)
		return
	}
	c.thrifty(name, used, targets)
	if n := used.accepted().of("gatelocks").total(); n > gateLocks {
		c.miss(true, "%s: %s writes of GateLocks, the limit is %s.", name, digits(n), digits(gateLocks))
	}
}
