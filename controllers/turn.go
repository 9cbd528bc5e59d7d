package controllers

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/pace"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// Turns has the targets that wait for their turn to be released, by Gate.
type Turns = pace.Turns[tally.Gate, target.Key]

// Book has the targets of the Gates that release in waves.
type Book = waves.Book[tally.Gate]

// releaser gives targets their turn that wait to be released by Gates with a pace, or in waves.
type releaser struct {
	turns  *Turns
	tally  *tally.Tally
	book   *Book
	memory *gateMemory
}

// released is how far a Gate is with the release of its targets.
type released struct {
	// called are those that have their turn now, once the status of the Gate says so: a restart must not give others
	// their turn at once.
	called []target.Key
	// n were released since the status was written last.
	n int64
	// wake is when to go on, zero if nothing waits.
	wake time.Time
	// told is what to tell once the status says so.
	told []waveNews
}

// waveNews is what is told of a release by waves.
type waveNews struct {
	notice
	// by is who has it go on, and why.
	by, why string
	// on is the target that is told as well, if it is one.
	on *v1alpha1.WaitingTarget
}

// turnOf returns what decides on the turn of a target.
func turnOf(g *v1alpha1.Gate, t *target.Object) pace.Item {
	item := pace.Item{Namespace: t.GetNamespace(), Name: t.GetKind() + "/" + t.GetName()}
	if verdict.IsCertificate(t) {
		notAfter, _, _ := unstructured.NestedString(t.Object, "status", "notAfter")
		item.Expiry, _ = time.Parse(time.RFC3339, notAfter) // one that has none has its turn last
	}
	item.Failed = slices.ContainsFunc(g.Status.TargetFailures(), func(f v1alpha1.TargetFailure) bool {
		return f.Kind == t.GetKind() && f.Namespace == t.GetNamespace() && f.Name == t.GetName()
	})
	return item
}

// call gives as many targets their turn as are due, of those that may have it.
func (r releaser) call(obj *v1alpha1.Gate, status v1alpha1.ReleaseStatus, now time.Time, may func(target.Key) bool) released {
	key, perMinute := tallied(obj), obj.Spec.Release.PerMinute
	waiting, n := r.turns.Counts(key)
	due, next := math.MaxInt, now
	if perMinute > 0 {
		due, next = pace.Due(perMinute, timeOf(status.NextAt), now)
	}
	called, left := r.turns.Call(key, due, status.LastNamespace, may)
	done := released{n: n, called: called}
	if len(called) > 0 {
		status.LastNamespace = called[len(called)-1].Namespace
	} else if status.NextAt != nil {
		next = status.NextAt.Time // those whose turn it is have not taken it
	}
	status.Released += n
	status.Total = status.Released + waiting
	switch inWaves := verdict.HasWaves(obj); {
	case perMinute == 0 || !inWaves && waiting == 0:
		status.NextAt = nil
	case !inWaves || len(called)+left > 0:
		status.NextAt, done.wake = ptr.To(metav1.NewMicroTime(next)), pace.Wake(next, now)
	default: // something has to happen before anybody may have a turn
	}
	obj.Status.Release = &status
	return done
}

// withoutWaves forgets the waves that a Gate had.
func (r releaser) withoutWaves(obj *v1alpha1.Gate) {
	if release := obj.Status.Release; release == nil || release.Waves == nil && release.Proceed == nil {
		return
	}
	obj.Status.Release = obj.Status.Release.DeepCopy()
	obj.Status.Release.Waves, obj.Status.Release.Proceed = nil, nil
	conditions.Delete(obj, v1alpha1.ReleaseStoppedCondition)
	r.book.Close(tallied(obj))
}

func timeOf(at *metav1.MicroTime) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}
