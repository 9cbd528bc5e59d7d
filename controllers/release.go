package controllers

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/pace"
	"github.com/fluxcd/gating-controller/internal/target"
)

// release is the part of a paced release that is due.
type release struct {
	// targets are all that are to be settled now, those that have their turn among
	// them.
	targets []*target.Object
	// turn are those that have their turn, waiting the number of others.
	turn    map[*target.Object]bool
	waiting int
	next    time.Time
}

// paced returns which targets of a Gate that is open are to be settled now: all,
// less those that it holds and whose turn to be released comes later.
func paced(gate *v1alpha1.Gate, targets []*target.Object, now time.Time) release {
	if gate.Spec.Release == nil {
		return release{targets: targets}
	}
	var before v1alpha1.ReleaseStatus
	if gate.Status.Release != nil {
		before = *gate.Status.Release
	}
	var next time.Time
	if before.NextAt != nil {
		next = before.NextAt.Time
	}
	name := client.ObjectKeyFromObject(gate).String()
	var held, rest []*target.Object
	for _, t := range targets {
		if slices.Contains(heldBy(&t.Unstructured), name) {
			held = append(held, t)
		} else {
			rest = append(rest, t)
		}
	}
	if len(held) == 0 {
		return release{targets: targets}
	}
	n, next := pace.Due(gate.Spec.Release.PerMinute, next, now)
	taken, left := pace.Take(held, n, int(before.Released), turnOf)
	r := release{targets: append(rest, taken...), turn: map[*target.Object]bool{}, waiting: len(left), next: next}
	for _, t := range taken {
		r.turn[t] = true
	}
	return r
}

func turnOf(t *target.Object) pace.Item {
	item := pace.Item{Namespace: t.GetNamespace(), Name: t.GetKind() + "/" + t.GetName()}
	if target.Of(&t.Unstructured).GroupKind() == target.Certificate {
		notAfter, _, _ := unstructured.NestedString(t.Object, "status", "notAfter")
		item.Expiry, _ = time.Parse(time.RFC3339, notAfter) // one that has none has its turn last
	}
	return item
}

// note writes into the status of a Gate how far a release is, and returns when to
// go on with it. Released is how many of those that had their turn are released.
func (r release) note(gate *v1alpha1.Gate, released int, want order) time.Time {
	status := gate.Status.Release
	switch {
	case want.Closed || gate.Spec.Release == nil:
		gate.Status.Release = nil
		return time.Time{}
	case status == nil && len(r.turn) == 0 && r.waiting == 0:
		return time.Time{} // there was nothing to release
	case status == nil:
		status = &v1alpha1.ReleaseStatus{}
		gate.Status.Release = status
	}
	waiting := r.waiting + len(r.turn) - released
	status.Released += int64(released)
	status.Total = status.Released + int64(waiting)
	status.NextAt = nil
	if waiting == 0 {
		return time.Time{}
	}
	at := metav1.NewMicroTime(r.next)
	status.NextAt = &at
	return pace.Wake(r.next, want.now)
}
