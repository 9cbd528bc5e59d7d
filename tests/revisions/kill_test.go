package revisions

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// killer is a proxy between the controller and the API server, and kills the controller at a write.
type killer struct {
	*harness.FaultProxy
	*harness.Process

	mu sync.Mutex
	// paths are the paths of the counted writes, and left is how many of them may still pass.
	paths []string
	left  int
	made  bool
	// killed is closed once the controller is killed.
	killed chan struct{}
}

// startThrough replaces the shared controller with one that can be killed at a write, until the end of the test.
func (w *world) startThrough() *killer {
	w.Helper()
	w.Must(gating.Stop())
	proxy, err := cluster.StartControllerProxy(w.Context(), "killer", 1)
	w.Must(err)
	k := &killer{FaultProxy: proxy}
	proxy.OnWrite(k.lets)
	k.start(w)
	w.Cleanup(func() {
		w.Must(k.Process.Stop())
		w.Must(proxy.Stop())
		var err error
		gating, err = cluster.StartGatingController(context.WithoutCancel(w.Context()))
		w.Must(err)
	})
	return k
}

func (k *killer) start(w *world) {
	w.Helper()
	var err error
	k.Process, err = cluster.StartGatingControllerThrough(w.Context(), k.FaultProxy)
	w.Must(err)
	gating = k.Process // so that its log is shown
}

// killAt kills the controller at the nth write of some paths: before the write, or after it and before the response.
func (k *killer) killAt(n int, made bool, paths ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left, k.made, k.paths, k.killed = n, made, paths, make(chan struct{})
}

// survives returns whether the controller was not killed. It can no longer be killed after that.
func (k *killer) survives() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.paths = nil
	select {
	case <-k.killed:
		return false
	default:
		return true
	}
}

// lets counts the writes, and kills the controller at the chosen one.
func (k *killer) lets(path string, made bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, counts := range k.paths {
		if made != k.made || !strings.HasSuffix(path, counts) {
			continue
		}
		if k.left--; k.left >= 0 {
			return true
		}
		k.paths = nil
		_ = k.Kill() // if that fails, the test detects it
		close(k.killed)
		return false
	}
	return true
}

// mostWrites exceeds the number of writes of a promotion.
const mostWrites = 12

// The controller is killed before and after each write of a promotion: the first promotion, which creates the pinned source, and one that
// moves it. A commit that is pushed meanwhile is not approved.
func TestKilledControllerPromotesOnlyApprovedRevision(t *testing.T) {
	w := newWorld(t)
	w.follow(v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
	w.sees("main@sha1:" + w.head)
	k := w.startThrough()
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
func (w *world) killedAt(k *killer, pins *harness.History, n int, made bool) (killed bool) {
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
		k.killAt(n, made, "/gatedsources/"+name+"/status", "/gitrepositories", "/gitrepositories/"+name+"-gated")
		next := w.commit(fmt.Sprintf("%s %d", name, len(approved)))
		w.Must(w.approve(revision))
		w.fetch("apps")
		w.eventually("the revision is promoted, or the controller is killed", func(s v1alpha1.GatedSourceStatus) bool {
			return !k.isAlive() || s.Pinned != nil && s.Pinned.Revision == revision && s.Latest.Revision == next
		})
		if !k.survives() {
			killed = true
			k.start(w)
		}
		w.sees(next)
		w.isPinned(revision)
		w.promotedOnce(approved)
	}
	w.pinnedInOrder(pins, name+"-gated", approved)
	w.Must(w.Client.Delete(w.Context(), w.g)) // the pinned source stays
	return killed
}

func (k *killer) isAlive() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.killed:
		return false
	default:
		return true
	}
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
