package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// fleet is a set of Gates and their targets.
type fleet struct {
	gates   []client.ObjectKey
	targets []client.ObjectKey
	// cron makes the Gates close by a cron expression, at a full minute. Otherwise they close by dates.
	cron bool
	// brisk transitions follow each other soon. Nothing is counted, and the caller reads the targets if needed.
	brisk bool
	// from is the time at which they close or closed.
	from time.Time
}

// transition has the measurements of one transition.
type transition struct {
	due time.Time
	// arrivals are the times until the targets had the wanted state, from the scheduled instant on.
	arrivals []time.Duration
	// written is the time until the last status of a Gate was written, from the scheduled instant on.
	written time.Duration
	// used is the usage of the transition, unless the fleet is brisk.
	used usage
}

func (t *transition) first() time.Duration { return t.arrivals[0] }

func (t *transition) last() time.Duration { return t.arrivals[len(t.arrivals)-1] }

// newGate creates an opened Gate of a fleet.
func (b *bench) newGate(ctx context.Context, key client.ObjectKey, spec v1alpha1.GateSpec) error {
	spec.Default = v1alpha1.StateOpened
	gate := gateNamed(key)
	gate.Spec = spec
	return b.client.Create(ctx, gate)
}

func gateNamed(key client.ObjectKey) *v1alpha1.Gate {
	return &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// removeGates removes Gates that no longer hold anything.
func (b *bench) removeGates(ctx context.Context, gates []client.ObjectKey) error {
	if err := inParallel(setUpAtOnce, gates, func(key client.ObjectKey) error {
		return b.client.Delete(ctx, gateNamed(key))
	}); err != nil {
		return err
	}
	if err := b.observer.gone(ctx, gates); err != nil {
		return err
	}
	_, err := b.quiet(ctx)
	return err
}

// transition closes or opens a fleet as scheduled, and measures that.
func (b *bench) transition(ctx context.Context, f *fleet, closed bool) (*transition, error) {
	due, before, err := b.arm(ctx, f, closed)
	if err != nil {
		return nil, err
	}
	w := b.observer.expect(f.targets, closed)
	if !time.Now().Before(due) {
		return nil, errors.New("the machine is too busy: it was not ready in time")
	}
	if err := b.observer.wait(ctx, w); err != nil {
		return nil, err
	}
	if err := b.settled(ctx, f, closed); err != nil {
		return nil, err
	}
	t := &transition{due: due, written: time.Since(due)}
	for _, at := range w.arrivals {
		t.arrivals = append(t.arrivals, at.Sub(due))
	}
	if f.brisk {
		return t, nil
	}
	after, err := b.quietUsage(ctx)
	if err != nil {
		return nil, err
	}
	t.used = after.since(before)
	b.logf("%s: first %.3fs, last %.2fs, all written %.2fs; controller %.1fs CPU, API server %.1fs; %s; conflicts: %s; read: %s",
		edgeName(closed), t.first().Seconds(), t.last().Seconds(), t.written.Seconds(), t.used.controller.Seconds(), t.used.server.Seconds(),
		t.used.calls.writes(), t.used.conflicts, t.used.calls.lookups())
	return t, b.verify(ctx, f, closed)
}

// settled waits until all Gates of a fleet have reported that their targets have the desired state.
func (b *bench) settled(ctx context.Context, f *fleet, closed bool) error {
	return b.observer.every(ctx, f.gates, "settled", func(gate *v1alpha1.Gate) bool { return settled(gate, closed) })
}

func edgeName(closed bool) string {
	if closed {
		return "close"
	}
	return "open"
}

// arm schedules the next transition of all Gates and returns when it is due. There are no other writes until then. If the machine is too
// busy for that, arm reverts an early transition and tries again with more time.
func (b *bench) arm(ctx context.Context, f *fleet, closed bool) (time.Time, usage, error) {
	const tries = 5
	lead := time.Second + time.Duration(len(f.gates))*60*time.Millisecond + time.Duration(len(f.targets))*500*time.Microsecond
	if !f.brisk {
		lead += 4 * time.Second
	}
	if !closed { // the conditions of held targets contain the end of the hold, and are written once more
		lead += time.Duration(len(f.targets)) * 5 * time.Millisecond
	}
	if err := b.settled(ctx, f, !closed); err != nil {
		return time.Time{}, usage{}, err
	}
	for range tries {
		lead := lead << b.slow
		due, err := b.schedule(ctx, f, closed, lead)
		if err != nil {
			return due, usage{}, err
		}
		var before usage
		if !f.brisk {
			if before, err = b.quietUsage(ctx); err != nil {
				return due, before, err
			}
		}
		if time.Until(due) > 100*time.Millisecond {
			return due, before, nil
		}
		b.slow++ // permanently, because a machine that was busy once will be busy again
		b.logf("not ready in time, trying again with twice the time")
		if err := b.settled(ctx, f, closed); err != nil {
			return due, before, err
		}
		if _, err := b.schedule(ctx, f, !closed, lead); err != nil {
			return due, before, err
		}
		if err := b.settled(ctx, f, !closed); err != nil {
			return due, before, err
		}
	}
	return time.Time{}, usage{}, errors.New("the Gates were never ready in time")
}

// schedule schedules the next transition of all Gates and returns when it is due. On return, all Gates have it in their status, unless its
// time has passed.
func (b *bench) schedule(ctx context.Context, f *fleet, closed bool, lead time.Duration) (time.Time, error) {
	due, period := f.next(time.Now(), closed, lead)
	if closed {
		f.from = due
	}
	raw := client.RawPatch(types.MergePatchType, mustMarshal(map[string]any{"spec": map[string]any{"closePeriods": []any{period}}}))
	if err := inParallel(setUpAtOnce, f.gates, func(key client.ObjectKey) error {
		return b.client.Patch(ctx, gateNamed(key), raw, client.FieldOwner("bench"))
	}); err != nil {
		return due, err
	}
	return due, b.observer.every(ctx, f.gates, "armed", func(gate *v1alpha1.Gate) bool {
		next := gate.Status.NextTransition
		return next != nil && next.At.Time.Equal(due) && settled(gate, !closed) || !time.Now().Before(due)
	})
}

// next returns the time of the next transition, and the period that causes it: after a lead at the next full second, or at the next full
// minute after that if the fleet closes by a cron expression.
func (f *fleet) next(now time.Time, closed bool, lead time.Duration) (time.Time, map[string]any) {
	due := now.Add(lead).Truncate(time.Second).Add(time.Second).UTC()
	switch {
	case f.cron && closed:
		due = due.Truncate(time.Minute).Add(time.Minute)
		return due, map[string]any{"name": "edge", "schedule": due.Format("4 15 2 1 *"), "duration": "24h"}
	case f.cron:
		if shortest := f.from.Add(time.Minute); due.Before(shortest) {
			due = shortest
		}
		return due, map[string]any{"name": "edge", "schedule": f.from.Format("4 15 2 1 *"), "duration": due.Sub(f.from).String()}
	case closed:
		return due, map[string]any{"name": "edge", "from": due.Format(time.RFC3339), "until": due.Add(24 * time.Hour).Format(time.RFC3339)}
	}
	return due, map[string]any{"name": "edge", "from": f.from.Format(time.RFC3339), "until": due.Format(time.RFC3339)}
}

// settled returns whether a Gate has reported that all its targets have the desired state.
func settled(gate *v1alpha1.Gate, closed bool) bool {
	opened := metav1.ConditionTrue
	if closed {
		opened = metav1.ConditionFalse
	}
	counts := gate.Status.Targets
	return gate.Status.ObservedGeneration == gate.Generation && counts != nil && counts.Failed == 0 &&
		meta.IsStatusConditionPresentAndEqual(gate.Status.Conditions, v1alpha1.OpenedCondition, opened) &&
		meta.IsStatusConditionTrue(gate.Status.Conditions, fluxmeta.ReadyCondition) &&
		!meta.IsStatusConditionTrue(gate.Status.Conditions, fluxmeta.ReconcilingCondition) &&
		(closed && counts.Held == counts.Total || !closed && counts.Held == 0)
}

// verify checks all targets, including those that were observed before.
func (b *bench) verify(ctx context.Context, f *fleet, closed bool) error {
	byName, err := b.read(ctx, f.targets)
	if err != nil {
		return err
	}
	for _, key := range f.targets {
		obj := byName[key]
		if obj == nil {
			return fmt.Errorf("%s does not exist", key)
		}
		suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
		approved := ""
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == v1alpha1.ApprovedCondition {
				approved = fmt.Sprint(c["status"])
			}
		}
		if want := map[bool]string{true: "False", false: "True"}[closed]; suspended != closed || approved != want {
			return fmt.Errorf("%s: spec.suspend is %t, Approved is %q", key, suspended, approved)
		}
	}
	return nil
}

// read returns the current targets.
func (b *bench) read(ctx context.Context, keys []client.ObjectKey) (map[client.ObjectKey]*unstructured.Unstructured, error) {
	objects, err := dynamic.NewForConfig(b.config)
	if err != nil {
		return nil, err
	}
	wanted, found := map[string]bool{}, map[client.ObjectKey]*unstructured.Unstructured{}
	for _, key := range keys {
		wanted[key.Namespace] = true
	}
	for namespace := range wanted {
		list, err := objects.Resource(kustomizations).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			found[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
		}
	}
	return found, nil
}
