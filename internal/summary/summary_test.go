package summary_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func key(i int) target.Key {
	return target.Key{GroupKind: schema.GroupKind{Kind: "Kustomization"}, NamespacedName: types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("app-%d", i)}}
}

func gate(uid types.UID) summary.Gate { return summary.Gate{UID: uid} }

// told records the calls of a Summary.
type told struct {
	gates   []string
	settled bool
}

func (c *told) changed(gate summary.Gate, settled bool) {
	c.gates, c.settled = append(c.gates, string(gate.UID)), settled
}

func (c *told) take() []string {
	gates := c.gates
	c.gates = nil
	slices.Sort(gates)
	return gates
}

func TestClosingGate(t *testing.T) {
	changes := &told{}
	all := summary.Summary{Changed: changes.changed}
	all.Put(key(1), []summary.Entry{{Gate: gate("a")}}, noon)
	all.Put(key(2), []summary.Entry{{Gate: gate("a")}}, noon)
	if got, want := all.Sums(gate("a")), (summary.Sums{Total: 2}); got != want {
		t.Errorf("open: got %+v, want %+v", got, want)
	}
	all.MarkPending(gate("a"), []target.Key{key(1), key(2), key(3)})
	if got, want := all.Sums(gate("a")), (summary.Sums{Total: 3, Pending: 3}); got != want || changes.settled {
		t.Errorf("it closes: got %+v, want %+v", got, want)
	}
	for i := range 3 {
		all.StartReconcile(key(i + 1))
		all.Put(key(i+1), []summary.Entry{{Gate: gate("a"), Outcome: summary.Held}}, noon)
	}
	if got, want := all.Sums(gate("a")), (summary.Sums{Total: 3, Held: 3}); got != want || !changes.settled {
		t.Errorf("closed: got %+v, want %+v", got, want)
	}
	changes.take()
	all.Put(key(1), []summary.Entry{{Gate: gate("a"), Outcome: summary.Held}}, noon)
	if got := changes.take(); len(got) > 0 {
		t.Errorf("nothing has changed, but it tells %v", got)
	}
	for _, e := range []summary.Entry{
		{Outcome: summary.Exempt}, {Outcome: summary.Exempt, Pending: true}, {Outcome: summary.Exempt, Pending: true, Failure: &summary.Failure{Reason: "WriteFailed"}},
		{Outcome: summary.Exempt, Pending: true, Failure: &summary.Failure{Reason: "WriteFailed", Message: "conflict"}}, {Outcome: summary.Held},
	} {
		e.Gate = gate("a")
		all.Put(key(1), []summary.Entry{e}, noon)
		if got := changes.take(); !slices.Equal(got, []string{"a"}) || all.Outcome(key(1), gate("a")) != e.Outcome {
			t.Errorf("%+v: gates with changes are %v, the outcome is %d", e, got, all.Outcome(key(1), gate("a")))
		}
	}
	all.Evict(key(1))
	if got, want := all.Sums(gate("a")), (summary.Sums{Total: 2, Held: 2}); got != want {
		t.Errorf("one is gone: got %+v, want %+v", got, want)
	}
	if got := changes.take(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("one is gone: it tells %v", got)
	}
	all.Put(key(2), []summary.Entry{{Gate: gate("b"), Outcome: summary.Held}}, noon)
	if got := changes.take(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("another gate governs one: it tells %v", got)
	}
}

func TestDecidingGateIsNotSettled(t *testing.T) {
	var all summary.Summary
	all.Await(gate("a"))
	if got := all.Sums(gate("a")); got.IsSettled() {
		t.Errorf("before its targets are woken: %+v", got)
	}
	all.MarkPending(gate("a"), []target.Key{key(1)})
	if got := all.Sums(gate("a")); got.IsSettled() {
		t.Errorf("before its target is looked at: %+v", got)
	}
	for _, entries := range [][]summary.Entry{nil, {{Gate: gate("a")}}} { // by looks that began before
		all.Put(key(1), entries, noon)
		if got := all.Sums(gate("a")); got.IsSettled() || got.Total != 1 {
			t.Errorf("after a look that began before: %+v", got)
		}
	}
	all.StartReconcile(key(1))
	if got := all.Sums(gate("a")); got.IsSettled() {
		t.Errorf("while its target is looked at: %+v", got)
	}
	all.Put(key(1), []summary.Entry{{Gate: gate("a"), Outcome: summary.Held}}, noon)
	if got := all.Sums(gate("a")); !got.IsSettled() {
		t.Errorf("after that: %+v", got)
	}
}

func TestUncountedEntryCountsOnlyAsFailure(t *testing.T) {
	var all summary.Summary
	all.Put(key(1), []summary.Entry{{Gate: gate("a")}, {Gate: gate("b"), Outcome: summary.Held}}, noon)
	all.Put(key(2), []summary.Entry{{Gate: gate("a"), Uncounted: true, Failure: &summary.Failure{Reason: "WriteFailed"}}}, noon)
	if got, want := all.Sums(gate("a")), (summary.Sums{Total: 1, Failed: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := all.Sums(gate("b")), (summary.Sums{Total: 1, Held: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	all.Put(key(1), []summary.Entry{{Gate: gate("a")}}, noon)
	if got, want := all.Sums(gate("b")), (summary.Sums{}); got != want || all.Sums(gate("a")).Total != 1 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	all.Evict(key(1))
	if got, want := all.Sums(gate("a")), (summary.Sums{Failed: 1}); got != want || len(all.Failures(gate("a"))) != 1 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRemovedKind(t *testing.T) {
	var all summary.Summary
	all.Put(key(1), []summary.Entry{{Gate: gate("a")}}, noon)
	all.ForgetKind(schema.GroupKind{Kind: "HelmRelease"})
	if got, want := all.Sums(gate("a")), (summary.Sums{Total: 1}); got != want {
		t.Errorf("another kind: got %+v, want %+v", got, want)
	}
	all.ForgetKind(schema.GroupKind{Kind: "Kustomization"})
	if got, want := all.Sums(gate("a")), (summary.Sums{}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFailureIsAsOldAsItsReason(t *testing.T) {
	var all summary.Summary
	fail := func(reason, message string, now time.Time) summary.Failure {
		all.Put(key(1), []summary.Entry{{Gate: gate("a"), Pending: true, Failure: &summary.Failure{Reason: reason, Message: message}}}, now)
		failures := all.Failures(gate("a"))
		if len(failures) != 1 || all.Sums(gate("a")).Failed != 1 {
			t.Fatalf("got %v, %+v", failures, all.Sums(gate("a")))
		}
		return failures[0]
	}
	fail("WriteFailed", "once", noon)
	if got, want := fail("WriteFailed", "twice", noon.Add(time.Minute)), (summary.Failure{Key: key(1), Reason: "WriteFailed", Message: "twice", At: noon}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := fail("StatusWriteFailed", "twice", noon.Add(time.Hour)); !got.At.Equal(noon.Add(time.Hour)) {
		t.Errorf("another failure is from %s", got.At)
	}
	all.Put(key(1), []summary.Entry{{Gate: gate("a")}}, noon)
	if got := all.Failures(gate("a")); len(got) > 0 || all.Sums(gate("a")).Failed != 0 {
		t.Errorf("repaired, but there is %v", got)
	}
}

func TestSumsAreCompleteOnceAllTargetsAreReconciled(t *testing.T) {
	completed := 0
	all := summary.Summary{Completed: func() { completed++ }}
	all.Put(key(1), []summary.Entry{{Gate: gate("a")}}, noon)
	all.Expect(key(1), key(2), key(3))
	for i, want := range []bool{false, false, true} {
		if got := all.IsComplete(); got != want {
			t.Errorf("after %d: complete is %t", i, got)
		}
		all.Put(key(2+i), nil, noon)
	}
	if completed != 1 {
		t.Errorf("it tells %d times that it is complete", completed)
	}
}

// TestSumsMatchEntries compares them with a count from the beginning.
func TestSumsMatchEntries(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var all summary.Summary
	model := map[target.Key][]summary.Entry{}
	gates := []summary.Gate{gate("a"), gate("b"), gate("c")}
	awaits := map[summary.Gate]bool{}
	woken := map[target.Key][]summary.Gate{}
	for range 2000 {
		k := key(random.IntN(6))
		gate := gates[random.IntN(3)]
		switch random.IntN(8) {
		case 0, 6, 7:
			all.StartReconcile(k)
			delete(woken, k)
			continue
		case 2:
			all.Await(gate)
			awaits[gate] = true
		case 1:
			all.MarkPending(gate, []target.Key{k})
			delete(awaits, gate)
			woken[k] = append(woken[k], gate)
			if i := slices.IndexFunc(model[k], func(e summary.Entry) bool { return e.Gate == gate }); i >= 0 {
				model[k][i].Pending = true
			} else {
				model[k] = append(model[k], summary.Entry{Gate: gate, Pending: true})
			}
		default:
			var entries []summary.Entry
			for _, gate := range gates {
				if random.IntN(2) == 0 {
					continue
				}
				e := summary.Entry{Gate: gate, Outcome: summary.Outcome(random.IntN(5)), Pending: random.IntN(2) == 0}
				if random.IntN(4) == 0 {
					e.Failure = &summary.Failure{Reason: "WriteFailed"}
				}
				entries = append(entries, e)
			}
			before := model[k]
			model[k] = slices.Clone(entries)
			all.Put(k, entries, noon)
			for _, e := range before {
				if !slices.Contains(woken[k], e.Gate) {
					continue
				}
				i := slices.IndexFunc(entries, func(now summary.Entry) bool { return now.Gate == e.Gate })
				if i < 0 {
					model[k] = append(model[k], e)
				} else {
					model[k][i].Pending = true
				}
			}
		}
		unsettled := 0
		for _, gate := range gates {
			want := summary.Sums{Awaits: awaits[gate]}
			for _, entries := range model {
				for _, e := range entries {
					if e.Gate != gate {
						continue
					}
					want.Total++
					want.Held += count(e.Outcome == summary.Held)
					want.SuspendedByOthers += count(e.Outcome == summary.SuspendedByOthers)
					want.Exempt += count(e.Outcome == summary.Exempt)
					want.WouldHold += count(e.Outcome == summary.WouldHold)
					want.Pending += count(e.Pending)
					want.Failed += count(e.Failure != nil)
				}
			}
			if got := all.Sums(gate); got != want {
				t.Fatalf("gate %s: got %+v, want %+v", gate, got, want)
			}
			if got := len(all.Failures(gate)); int64(got) != want.Failed {
				t.Fatalf("gate %s: %d failures, want %d", gate, got, want.Failed)
			}
			unsettled += int(count(want.Pending > 0 || want.Awaits))
		}
		if got := all.Unsettled(); got != unsettled {
			t.Fatalf("%d gates are not settled, want %d", got, unsettled)
		}
	}
}

func count(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func TestDeletedGateHasNoSums(t *testing.T) {
	all := summary.Summary{}
	all.Await(gate("a"))
	if !all.Sums(gate("a")).Awaits {
		t.Error("it does not await anything")
	}
	all.StopAwaiting(gate("a"))
	if got := all.Sums(gate("a")); got != (summary.Sums{}) {
		t.Errorf("got %+v", got)
	}
	all.Put(key(1), []summary.Entry{{Gate: gate("b"), Outcome: summary.Held}}, noon)
	all.StopAwaiting(gate("b"))
	if got := all.Sums(gate("b")); got.Held != 1 {
		t.Errorf("it has a target still, got %+v", got)
	}
}

func TestCallbacksMayCallSummary(t *testing.T) {
	var all summary.Summary
	var sums summary.Sums
	complete := false
	all.Changed = func(gate summary.Gate, _ bool) { sums = all.Sums(gate) }
	all.Completed = func() { complete = all.IsComplete() }
	all.Expect(key(1))
	all.Put(key(1), []summary.Entry{{Gate: gate("a"), Outcome: summary.Held}}, noon)
	if want := (summary.Sums{Total: 1, Held: 1}); sums != want || !complete {
		t.Errorf("sums %+v, complete %t; want %+v and true", sums, complete, want)
	}
}
