package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// unhandled returns the lines of the requests that the controller has not handled, without their values and numbers.
func (w *world) unhandled(g *v1alpha1.Gate) (all []string) {
	w.Helper()
	value := w.get(g).Annotations[v1alpha1.UnhandledAnnotation]
	if value == "" {
		return nil
	}
	for i, line := range strings.Split(value, "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 6 || fields[0] != fmt.Sprint(i+1) {
			w.Fatalf("line %d is %q", i+1, line)
		}
		all = append(all, strings.Join([]string{fields[1], fields[2], fields[4], fields[5]}, " "))
	}
	return all
}

func (w *world) hasLines(g *v1alpha1.Gate, want ...string) {
	w.Helper()
	if got := w.unhandled(g); !slices.Equal(got, want) {
		w.Errorf("unhandled requests:\n%q\nwant\n%q", got, want)
	}
}

// While the controller is away, the annotation of a request has room for one. It used to lose the first of two closes, and the Gate
// opened when the second, shorter one was over.
func TestACloseThatAnotherOneReplacesWhileTheControllerIsAwayCounts(t *testing.T) {
	w := newWorld(t)
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.decided(g, metav1.ConditionTrue)
	closes := w.role([]string{"get", "patch", "close"}, []string{"gates"})
	alice, carl := w.as("alice", closes), w.as("carl", closes)
	start := w.stopController()
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+now()+"/2h", v1alpha1.CloseReasonAnnotation+"=incident 77")
	w.allowed(carl, "annotate", "--overwrite", "gate", "production", closeAt+"="+now()+"/2s", v1alpha1.CloseReasonAnnotation+"=a try")
	w.hasLines(g, "close annotation alice incident 77")
	start()
	w.decided(g, metav1.ConditionFalse)
	w.Eventually("the lines are removed", func() error {
		if left := w.get(g).Annotations[v1alpha1.UnhandledAnnotation]; left != "" {
			return fmt.Errorf("%q is left", left)
		}
		return nil
	})
	g = w.get(g)
	if g.Status.Memory.LastHandledLine != 1 || len(g.Status.Requests) != 2 {
		t.Errorf("the status has %+v", g.Status)
	}
	reset := g.Status.ResetToDefaultAt
	if reset == nil || time.Until(reset.Time) < time.Hour {
		t.Errorf("it opens at %s", reset)
	}
	for _, who := range []string{"alice: incident 77", "carl: a try"} {
		if !slices.ContainsFunc(g.Status.History, func(e v1alpha1.HistoryEntry) bool { return e.RequestedBy+": "+e.Message == who }) {
			t.Errorf("the history lacks %s: %+v", who, g.Status.History)
		}
	}
	// The next line gets a number that no line had.
	start = w.stopController()
	for _, lasts := range []string{"/3h", "/1s"} {
		w.allowed(carl, "annotate", "--overwrite", "gate", "production", closeAt+"="+now()+lasts)
	}
	if got := w.get(g).Annotations[v1alpha1.UnhandledAnnotation]; !strings.HasPrefix(got, "2\tclose\t") {
		t.Errorf("the next line is %q", got)
	}
	start()
}

func TestAdmissionRecordsWhatIsReplacedOrRemovedBeforeItIsHandled(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, edith := w.as("alice", opener), w.as("edith", editor, viewer)
	w.stopController()
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+now(), openWhy+"=one")
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", openWhy+"=the same request with another reason")
	w.hasLines(g)
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", openAt+"="+now()+"/1h", openWhy+"=two\n\tlines")
	w.allowed(edith, "annotate", "gate", "production", openAt+"-")
	want := []string{"open annotation alice the same request with another reason"}
	w.hasLines(g, want...) // an open that is removed opens nothing
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+now(), v1alpha1.CloseReasonAnnotation+"=two\n\tlines")
	w.allowed(edith, "annotate", "gate", "production", closeAt+"-", v1alpha1.CloseReasonAnnotation+"-")
	want = append(want, "close annotation alice two  lines")
	w.hasLines(g, want...)
	for _, forgery := range []string{"=", "-", "=1\tclose\tannotation\t2026-12-01T00:00:00Z\tbob\t"} {
		w.allowed(alice, "annotate", "--overwrite", "gate", "production", v1alpha1.UnhandledAnnotation+forgery)
		w.hasLines(g, want...)
	}
}

func TestARequestThatWasHandledIsNotRecordedWhenItIsReplaced(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, edith := w.as("alice", opener), w.as("edith", editor, viewer)
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+now(), openAt+"="+now())
	w.decided(g, metav1.ConditionFalse)
	w.stopController()
	w.allowed(edith, "annotate", "gate", "production", closeAt+"-")
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", openAt+"="+now()+"/1h")
	w.hasLines(g)
}

func TestThereIsRoomForSomeUnhandledRequestsOfEachUser(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	edith := w.as("edith", editor, viewer)
	w.stopController()
	at := func(i int) string { return stamp(time.Now().Add(time.Duration(i) * time.Second)) }
	n := 0
	ask := func(p *person) string {
		n++
		out, err := p.kubectl(w.Context(), w.Namespace, "annotate", "--overwrite", "gate", "production", closeAt+"="+at(n), v1alpha1.CloseReasonAnnotation+"=bob")
		if err == nil {
			return ""
		}
		return out
	}
	closes := w.role([]string{"get", "patch", "close"}, []string{"gates"})
	alice := w.as("alice", closes)
	for range 5 {
		if refused := ask(alice); refused != "" {
			t.Fatal(refused)
		}
	}
	if refused := ask(alice); !strings.Contains(refused, "user alice must wait: the gating-controller has not handled 4 earlier requests for gate "+w.Namespace+"/production, 4 of them by this user") {
		t.Errorf("the request after four is answered %q", refused)
	}
	for _, name := range []string{"bob", "carl", "dora", "emil", "fred", "gina", "hugo", "ines"} {
		p := w.as(name, closes)
		for i := 0; i < 5; i++ {
			if refused := ask(p); refused != "" && len(w.unhandled(g)) < 32 {
				t.Fatalf("%s, request %d with %d lines: %s", name, i, len(w.unhandled(g)), refused)
			}
		}
	}
	if got := len(w.unhandled(g)); got != 32 {
		t.Errorf("%d lines", got)
	}
	zoe := w.as("zoe", closes)
	if refused := ask(zoe); !strings.Contains(refused, "has not handled 32 earlier requests") {
		t.Errorf("the request after 32 is answered %q", refused)
	}
	// Flux must be able to apply the Gate.
	w.allowed(edith, "patch", "gate", "production", "--type=merge", "-p", `{"spec":{"interval":"5m"}}`)
	w.allowed(edith, "patch", "gate", "production", "--type=merge", "-p", `{"spec":{"interval":"6m"},"metadata":{"annotations":{"`+closeAt+`":null}}}`)
	if got := len(w.unhandled(g)); got != 33 {
		t.Errorf("%d lines after the last close was removed", got)
	}
}

// Flux strips the annotations of kubectl at its next reconciliation, which may come before the controller has seen a close.
func TestFluxStripsAnUnhandledCloseWhichCountsAllTheSame(t *testing.T) {
	r := newGit(t, editor, viewer)
	manifest := func(interval string) string {
		return fmt.Sprintf(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"Gate","spec":{"default":"opened","window":"10s","interval":%q},`+
			`"metadata":{"name":"production","namespace":%q}}`, interval, r.Namespace)
	}
	r.commitManifest(manifest("1m"))
	r.synced()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: r.Namespace}}
	r.decided(g, metav1.ConditionTrue)
	alice, carl := r.as("alice", opener), r.as("carl", opener)
	start := r.stopController()
	r.allowed(alice, "annotate", "gate", "production", closeAt+"="+now()+"/2h", v1alpha1.CloseReasonAnnotation+"=incident 77")
	r.synced()
	r.hasLines(g, "close annotation alice incident 77")
	r.settled(g)
	r.allowed(carl, "annotate", "gate", "production", closeAt+"="+now()+"/1s")
	r.commitManifest(manifest("2m")) // and a new spec with it
	r.synced()
	r.hasLines(g, "close annotation alice incident 77", "close annotation carl ")
	r.settled(g)
	start()
	r.decided(g, metav1.ConditionFalse)
	r.synced() // strips what decided asked by
	r.decided(g, metav1.ConditionFalse)
	r.synced()
	r.settled(g)
	if g = r.get(g); g.Status.Memory.LastHandledLine != 2 || g.Annotations[v1alpha1.UnhandledAnnotation] != "" || g.Status.Requests[0].RequestedBy != "alice" {
		t.Errorf("annotations %v, status %+v", g.Annotations, g.Status)
	}
}
