package promotion_test

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
)

// uid is the UID of the GatedSource.
const uid = "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"

var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// commit returns a revision of a Git repository whose hash repeats a letter.
func commit(letter string) string { return "main@sha1:" + strings.Repeat(letter, 40) }

// digest returns a revision of an OCI repository whose digest repeats a letter.
func digest(letter string) string { return "latest@sha256:" + strings.Repeat(letter, 64) }

// world is a GatedSource, its sources and an API server.
type world struct {
	g  *v1alpha1.GatedSource
	in promotion.Input
	// written are the specs that were written to the pinned source.
	written []map[string]any
	steps   []promotion.Step
}

// newWorld returns a world in which the Git repository is at a revision, and all Gates are open. A revision needs a number of approvals.
func newWorld(required int32, revision string) *world {
	w := &world{
		g: &v1alpha1.GatedSource{
			ObjectMeta: metav1.ObjectMeta{Name: "apps", Namespace: "shop", UID: uid, Generation: 1},
			Spec: v1alpha1.GatedSourceSpec{
				SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}, Approvals: &v1alpha1.ApprovalRule{Required: required}, DeletionPolicy: v1alpha1.DeletionPolicyOrphan,
			},
		},
		in: promotion.Input{Now: start, Stamped: true, Gates: promotion.Gates{Open: true}, Original: &promotion.Source{
			Revision: revision, Current: true, Spec: map[string]any{"url": "https://git.example.com/apps", "interval": "1m", "ref": map[string]any{"branch": "main"}},
		}},
	}
	return w
}

// closed closes the Gates.
func (w *world) closed() *world {
	w.in.Gates = promotion.Gates{Reason: v1alpha1.GateClosedReason, Message: "Held by gate 'shop/nights'.", HeldBy: []string{"shop/nights"}}
	return w.bars("", false)
}

func (w *world) open() *world {
	w.in.Gates = promotion.Gates{Open: true}
	return w.bars("", false)
}

// bars sets whether the Gates refuse rollbacks, or have not decided yet.
func (w *world) bars(refusal string, waits bool) *world {
	w.in.Gates.Bars = func(string, time.Time) (string, bool) { return refusal, waits }
	return w
}

// rollback requests a rollback, as stamped by the API server.
func (w *world) rollback(revision string) *world {
	if w.g.Annotations == nil {
		w.g.Annotations = map[string]string{}
	}
	w.g.Annotations[v1alpha1.RollbackRequestedAtAnnotation] = promotion.FormatRollback(w.g, revision, w.in.Now)
	w.g.Annotations[v1alpha1.RollbackRequestedByAnnotation], w.g.Annotations[v1alpha1.RollbackReasonAnnotation] = "alice", "crashes"
	w.in.Now = w.in.Now.Add(time.Second) // the next request is later
	return w
}

// arrives sets the revision of the source.
func (w *world) arrives(revision string) *world {
	original := *w.in.Original
	original.Revision = revision
	w.in.Original = &original
	return w
}

// edits changes a field of the spec of the source.
func (w *world) edits(field string, value any) {
	original := *w.in.Original
	original.Spec = maps.Clone(original.Spec)
	original.Spec[field] = value
	w.in.Original = &original
}

// approves adds the approval of a revision by a user, as stamped by the API server.
func (w *world) approves(who, revision string) *world {
	if w.g.Annotations == nil {
		w.g.Annotations = map[string]string{}
	}
	line := fmt.Sprintf("round=%d,uid=%s,revision=%s %s\tseen in staging\n", w.g.Status.Round, w.g.UID, revision, who)
	before := strings.ReplaceAll(w.g.Annotations[v1alpha1.ApproveRequestedByAnnotation], line, "")
	w.g.Annotations[v1alpha1.ApproveRequestedByAnnotation] = before + line
	return w
}

// once decides once, and carries out the step.
func (w *world) once() promotion.Step {
	w.in.Now = w.in.Now.Add(time.Second)
	step := promotion.Decide(w.g, w.in)
	w.steps = append(w.steps, step)
	if step.Write == nil {
		return step
	}
	spec := runtime.DeepCopyJSON(step.Write)
	w.written = append(w.written, runtime.DeepCopyJSON(spec))
	w.in.Pinned = &promotion.Source{Spec: spec, Current: true, GatedBy: w.g.Name, Owned: w.g.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete}
	step.Wrote(w.g, spec)
	return step
}

// settles decides until nothing is left to do.
func (w *world) settles() *world {
	for range 10 {
		if !w.once().Acts() {
			return w
		}
	}
	panic("it does not settle")
}

// fetched makes the pinned source ready with the pinned revision.
func (w *world) fetched() *world {
	pinned := *w.in.Pinned
	pinned.Revision = w.g.Status.Pinned.Revision
	pinned.Ready = &metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue}
	w.in.Pinned = &pinned
	return w.settles()
}

// is returns the pinned revision, and a summary of the conditions.
func (w *world) is() string {
	pinned := "nothing"
	if gated := w.g.Status.Pinned; gated != nil {
		pinned = gated.Revision
	}
	for _, name := range []string{"Approved", "Ready", "Stalled"} {
		if c := meta.FindStatusCondition(w.g.Status.Conditions, name); c != nil {
			pinned += fmt.Sprintf(" %s=%s/%s", name, c.Status, c.Reason)
		}
	}
	return pinned
}

func (w *world) message(condition string) string {
	if c := meta.FindStatusCondition(w.g.Status.Conditions, condition); c != nil {
		return c.Message
	}
	return ""
}
