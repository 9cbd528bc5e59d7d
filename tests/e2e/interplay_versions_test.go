package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// observation is the observable state of a target.
type observation struct {
	exists bool
	// suspend is spec.suspend: true, false or empty.
	suspend string
	// owners are the field managers that own it, sorted. Owners of a missing field are ignored.
	owners []string
	// heldBy are the gates in the annotation.
	heldBy []string
	// approved is the status of the condition.
	approved string
}

func observationOf(obj *unstructured.Unstructured) observation {
	s := observation{exists: obj.GetResourceVersion() != "", heldBy: target.ParseHeldBy(obj.GetAnnotations()[v1alpha1.HeldByAnnotation])}
	if value, ok, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); ok {
		s.suspend = fmt.Sprint(value)
	}
	for _, entry := range obj.GetManagedFields() {
		fields := struct {
			Spec map[string]any `json:"f:spec"`
		}{}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Spec["f:suspend"]; ok && s.suspend != "" {
			s.owners = append(s.owners, entry.Manager)
		}
	}
	slices.Sort(s.owners)
	for _, condition := range (&target.Object{Unstructured: *obj}).GetConditions() {
		if condition.Type == v1alpha1.ApprovedCondition {
			s.approved = string(condition.Status)
		}
	}
	return s
}

// String omits the condition, which is written separately.
func (s observation) String() string {
	return fmt.Sprintf("%s: suspend %q owned by %q, held by %q", s.state(), s.suspend, slices.Sorted(slices.Values(s.owners)), s.heldBy)
}

// byTheLock returns whether the lock holds the target. A field that a policy writes has no owner.
func (s observation) byTheLock() bool {
	return len(s.owners) == 0 && s.suspend == "true" && len(s.heldBy) > 0
}

func (s observation) ours() bool { return slices.Contains(s.owners, us) }

// state is the state of a target as a user sees it.
type state string

const (
	gone      state = "gone"
	free      state = "reconciled"
	held      state = "held"
	suspended state = "suspended"
	both      state = "held and suspended"
)

func (s observation) state() state {
	switch {
	case !s.exists:
		return gone
	case s.suspend != "true":
		return free
	case s.ours() && len(s.owners) > 1:
		return both
	case s.ours(), s.byTheLock():
		return held
	}
	return suspended
}

// versions are all versions of an object.
type versions struct {
	incoming <-chan version
	last     version
}

type version struct {
	observation
	resourceVersion string
	// gone is true for the last version before another object of the same name.
	gone bool
}

// watchVersions watches an object from its creation to the end of the test.
func watchVersions(w *world, name string) *versions {
	w.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
	list.SetKind("KustomizationList")
	watcher, err := w.Client.Watch(context.Background(), list, client.InNamespace(w.Namespace), client.MatchingFields{"metadata.name": name})
	w.Must(err)
	w.Cleanup(watcher.Stop)
	incoming := make(chan version, 1000)
	go func() {
		defer close(incoming)
		for event := range watcher.ResultChan() {
			if obj, ok := event.Object.(*unstructured.Unstructured); ok {
				incoming <- version{observation: observationOf(obj), resourceVersion: obj.GetResourceVersion(), gone: event.Type == watch.Deleted}
			}
		}
	}()
	return &versions{incoming: incoming}
}

// promises are invariants of all versions of a step.
type promises struct {
	step string
	// suspended is true if a user or Git suspends the object all the time, resumed if another client than the controller may resume it
	// nevertheless.
	suspended, resumed bool
	// free is true if no gate is closed at any time, closed if one is closed all the time.
	free, closed bool
}

// review checks the versions up to a given one, or up to the end of the object if that is empty.
func (v *versions) review(ctx context.Context, until string, p promises) error {
	ctx, cancel := context.WithTimeout(ctx, harness.Patience)
	defer cancel()
	for v.last.resourceVersion != until && (until != "" || !v.last.gone) {
		select {
		case next, ok := <-v.incoming:
			if !ok {
				return fmt.Errorf("%s: the watch ended", p.step)
			}
			if err := p.check(v.last, next); err != nil {
				return err
			}
			v.last = next
		case <-ctx.Done():
			return fmt.Errorf("%s: the watch did not receive version %q", p.step, until)
		}
	}
	return nil
}

func (p promises) check(before, after version) error {
	if before.resourceVersion == "" || before.gone || after.gone {
		return nil
	}
	// Only a release removes the annotation together with the field.
	byUs := before.ours() && !after.ours() && len(after.heldBy) == 0
	switch {
	case p.suspended && before.suspend == "true" && after.suspend != "true" && (byUs || !p.resumed):
		return fmt.Errorf("%s: the controller resumed a target that another client suspends: %s, then %s", p.step, before, after)
	case p.closed && byUs:
		return fmt.Errorf("%s: the controller released a target that a closed gate governs: %s, then %s", p.step, before, after)
	case p.free && after.ours() && !before.ours() && !before.byTheLock():
		return fmt.Errorf("%s: the controller held a target that no closed gate governs: %s, then %s", p.step, before, after)
	}
	return nil
}
