package revisions

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// mostWrites exceeds the number of writes of a promotion.
const mostWrites = 12

// The controller is killed before and after each write of a promotion: the first promotion, which creates the pinned source, and one that
// moves it. A commit that is pushed meanwhile is not approved.
func TestKilledControllerPromotesOnlyApprovedRevision(t *testing.T) {
	w := newWorld(t)
	w.follow(v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
	w.sees("main@sha1:" + w.head)
	k := w.StartKiller(&gating)
	pins := w.Record(schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"})
	for _, made := range []bool{false, true} {
		kills := 0
		for n := range mostWrites {
			if !w.killedAt(k, pins, n, made) {
				break
			}
			kills++
		}
		// The writes are: the planned promotion, the pinned source, the completed promotion, and for one of the two an update by the API server.
		if kills < 3 || kills == mostWrites {
			t.Errorf("the controller was killed at %d writes", kills)
		}
	}
}

// killedAt makes a new GatedSource promote two revisions, and kills the controller at a write of each. It returns whether the controller
// was killed.
func (w *world) killedAt(k *harness.Killer, pins *harness.History, n int, made bool) (killed bool) {
	w.Helper()
	name := fmt.Sprintf("apps-%d-%t", n, made)
	w.g = &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}, Approvals: &v1alpha1.ApprovalRule{Required: 1},
	}}
	w.Create(w.g)
	var approved []string
	for range 2 {
		revision := "main@sha1:" + w.head
		w.sees(revision)
		approved = append(approved, revision)
		k.KillAt(n, made, "/gatedsources/"+name+"/status", "/gitrepositories", "/gitrepositories/"+name+"-gated")
		next := w.commit(fmt.Sprintf("%s %d", name, len(approved)))
		w.Must(w.approve(revision))
		w.fetch("apps")
		w.eventually("the revision is promoted, or the controller is killed", func(s v1alpha1.GatedSourceStatus) bool {
			return !k.IsAlive() || s.Pinned != nil && s.Pinned.Revision == revision && s.Latest.Revision == next
		})
		if !k.Survives() {
			killed = true
			k.Start(w.World)
		}
		w.sees(next)
		w.isPinned(revision)
		w.promotedOnce(approved)
	}
	w.pinnedInOrder(pins, name+"-gated", approved)
	w.Must(w.Client.Delete(w.Context(), w.g)) // the pinned source stays
	return killed
}

// promotedOnce checks that the status has each of the revisions once, and that no other revision is approved.
func (w *world) promotedOnce(approved []string) {
	w.Helper()
	s := w.g.Status
	for i, p := range s.Promotions {
		if want := approved[len(approved)-1-min(i, len(approved)-1)]; p.Revision != want || p.Reason != v1alpha1.RevisionApprovedReason || len(p.Approvals) != 1 || p.Approvals[0].Revision != want {
			w.Errorf("promotion %d of %s is %+v, want %s", i, w.g.Name, p, want)
		}
	}
	if len(s.Promotions) != len(approved) || len(s.Approvals) != 0 || s.Promoting != nil {
		w.Errorf("%s: %d promotions of %d, approvals %+v, promoting %+v", w.g.Name, len(s.Promotions), len(approved), s.Approvals, s.Promoting)
	}
}

// pinnedInOrder checks that a source was pinned to the revisions in this order, and never to another one.
func (w *world) pinnedInOrder(pins *harness.History, name string, want []string) {
	w.Helper()
	var got []string
	for _, version := range pins.All() {
		commit, _, _ := unstructured.NestedString(version.Object, "spec", "ref", "commit")
		if revision := "main@sha1:" + commit; version.GetName() == name && (len(got) == 0 || got[len(got)-1] != revision) {
			got = append(got, revision)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		w.Errorf("%s was pinned to %q, want %q", name, got, want)
	}
}
