package controllers

import (
	"context"
	"maps"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/refresh"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestARequestOfSomebodyElseIsNotTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs, ours := w.machine("a", 2*days), w.machine("b", 3*days)
	w.note("kubectl-annotate", theirs, map[string]any{target.RefreshRequestAnnotation: "90d"})
	g := w.fleetGate("nights", "opened")
	keep := func(when string) {
		t.Helper()
		if request, recorded := w.asked(theirs); request != "90d" || recorded {
			t.Errorf("%s: got %q, recorded %t", when, request, recorded)
		}
	}
	w.reconcile(g)
	keep("at first")
	w.expectAsked([]*target.Object{ours})
	w.note("manager", theirs, map[string]any{target.RefreshStatusAnnotation: "failed"})
	w.in(2 * time.Hour)
	w.reconcile(g)
	keep("after it failed")
	w.expectAsked([]*target.Object{ours})
	equal(t, failuresOf(g), []string{"Machine/a RefreshCertsFailed"})
	w.close(g, w.clock.Now())
	w.reconcile(g)
	keep("once the gate is closed")
	w.open(g, w.clock.Now().Add(time.Second))
	w.in(3 * time.Hour)
	w.provider(theirs, works)
	w.provider(theirs, works)
	w.reconcile(g)
	w.expectAsked([]*target.Object{theirs, ours}, "b")

	// Somebody who changes our request takes it over.
	w.note("kubectl-annotate", ours, map[string]any{target.RefreshRequestAnnotation: "5y"})
	w.reconcile(g)
	if request, recorded := w.asked(ours); request != "5y" || recorded {
		t.Errorf("got %q, recorded %t", request, recorded)
	}
	w.Must(cluster.Client.Delete(w.Context(), g))
	w.reconcile(g)
	if request, _ := w.asked(ours); request != "5y" {
		t.Errorf("got %q", request)
	}
}

func TestEveryGateOfAMachineHasToBeOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, free := w.machine("a", 2*days), w.machine("b", 3*days)
	both := []*target.Object{m, free}
	w.note("kubectl-annotate", m, map[string]any{v1alpha1.GatesAnnotation: "approval"})
	g := w.fleetGate("nights", "opened")
	w.reconcile(g)
	w.expectAsked(both, "b") // the gate that the other names does not exist
	w.provider(free, works)
	w.provider(free, works)
	w.reconcile(g)
	w.expectAsked(both)

	approval := w.Gate("approval", v1alpha1.GateSpec{Default: "closed"})
	w.reconcile(approval)
	w.reconcile(g)
	w.expectAsked(both)
	w.expectFleet(approval, "none")
	w.open(approval, start)
	w.reconcile(approval)
	w.reconcile(g)
	w.expectAsked(both, "a")

	w.close(approval, start.Add(time.Second))
	w.in(time.Second)
	w.reconcile(approval)
	w.expectQuiet(m)
	w.reconcile(g)
	w.expectAsked(both)

	w.in(days) // the margin of both
	if result := w.reconcile(g); result.RequeueAfter > days {
		t.Errorf("requeue after %s", result.RequeueAfter)
	}
	w.expectAsked(both, "a")
	w.reconcile(approval)
	w.expectAsked(both, "a")
}

// Gates are read once for all Machines. A request to one of them after that counts as well.
func TestAGateThatClosesOnceGatesWereReadKeepsAMachineBack(t *testing.T) {
	t.Parallel()
	for name, closes := range map[string]func(w *world, other *v1alpha1.Gate){
		"by a request": func(w *world, other *v1alpha1.Gate) { w.close(other, start) },
		"by its spec": func(w *world, other *v1alpha1.Gate) {
			w.Edit(other, func() { other.Spec.Default = v1alpha1.StateClosed })
			w.reconcile(other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.machine("a", 2*days)
			other := w.Gate("other", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{{Kind: "Machine", Name: "*"}}})
			g := w.fleetGate("nights", "opened")
			w.reconcile(other)
			w.APIReader = interceptor.NewClient(cluster.Client, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					err := c.List(ctx, list, opts...)
					if _, ok := list.(*v1alpha1.GateList); ok {
						closes(w, other)
					}
					return err
				},
			})
			w.reconcile(g)
			w.expectAsked([]*target.Object{m})
			w.APIReader = cluster.Client
			w.reconcile(other)
			w.open(other, w.in(time.Second))
			w.reconcile(other)
			w.reconcile(g)
			w.expectAsked([]*target.Object{m}, "a")
		})
	}
}

func TestAStrictGateIsNotBypassedByAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.machine("a", time.Hour)
	strict := w.fleetGate("strict", "closed", func(s *v1alpha1.GateSpec) { s.Certificates = &v1alpha1.CertificatePolicy{Strict: true} })
	other, opened := w.fleetGate("other", "closed"), w.fleetGate("opened", "opened")
	for _, g := range []*v1alpha1.Gate{strict, other, opened, strict} {
		w.reconcile(g)
		w.expectQuiet(m)
	}
}

func TestWhatIsNotToBeRefreshed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	busy := w.machine("busy", days)
	w.note("manager", busy, map[string]any{target.RefreshStatusAnnotation: "in-progress"})
	broken := w.machine("broken", days)
	w.note("manager", broken, map[string]any{target.CertificatesExpiryAnnotation: "tomorrow"})
	fresh := w.machine("fresh", days)
	w.note("manager", fresh, map[string]any{target.CertificatesExpiryAnnotation: nil})
	leaving := w.machine("leaving", days)
	leaving.SetFinalizers([]string{"test/keep"})
	w.Must(cluster.Client.Update(w.Context(), &leaving.Unstructured))
	w.Must(cluster.Client.Delete(w.Context(), &leaving.Unstructured))
	copied := w.machine("copied", 90*days)
	record := refresh.Record{Gate: w.Namespace + "/nights", RequestedAt: start.Add(-days), Expiry: start}
	w.note("velero", copied, map[string]any{v1alpha1.RefreshAnnotation: record.String(), target.RefreshStatusAnnotation: "failed"})

	g := w.fleetGate("nights", "opened")
	w.reconcile(g)
	for _, m := range []*target.Object{busy, broken, fresh, leaving, copied} {
		if request, _ := w.asked(m); request != "" {
			t.Errorf("%s is asked", m.GetName())
		}
	}
	w.expectFleet(g, "due 1")
	equal(t, failuresOf(g), []string{"Machine/broken RefreshCertsFailed"})
	w.provider(busy, works) // nobody asks any more
	w.reconcile(g)
	w.expectAsked([]*target.Object{busy}, "busy")
}

func TestAGateThatDoesNotSayHowRefreshesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.machine("a", -days)
	g := w.fleetGate("nights", "opened", func(s *v1alpha1.GateSpec) { s.Machines = nil })
	w.reconcile(g)
	w.expectQuiet(m)
	w.expectFleet(g, "none")
	equal(t, g.Status.Targets.Total, int64(1))
}

// A cache that does not have our last write yet must not let a second one begin.
func TestACacheThatIsBehindDoesNotBeginASecondOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.machine("a", 3*days)
	g := w.fleetGate("nights", "opened")
	stale := &staleTargets{TargetReader: w.Targets}
	w.Targets = stale
	w.reconcile(g)
	w.expectAsked([]*target.Object{first}, "a")
	urgent := w.machine("b", 2*days)
	stale.first = true
	w.reconcile(g)
	w.expectAsked([]*target.Object{first, urgent}, "a")
}

// staleTargets shows Machines as they were before anybody asked for anything.
type staleTargets struct {
	TargetReader
	first bool
}

func (s *staleTargets) Select(ctx context.Context, adapter target.Adapter, namespace string, ref *v1alpha1.TargetReference) ([]*target.Object, error) {
	all, err := s.TargetReader.Select(ctx, adapter, namespace, ref)
	for i, obj := range all {
		if s.first {
			obj = &target.Object{Unstructured: *obj.DeepCopy()}
			all[i] = obj
			annotations := obj.GetAnnotations()
			delete(annotations, target.RefreshRequestAnnotation)
			delete(annotations, v1alpha1.RefreshAnnotation)
			obj.SetAnnotations(annotations)
		}
	}
	return all, err
}

func (s *staleTargets) HeldBy(ctx context.Context, gate string) ([]*target.Object, error) {
	if s.first {
		return nil, nil
	}
	return s.TargetReader.HeldBy(ctx, gate)
}

func TestNothingIsBegunIfNobodyKnowsWhatTheAPIServerHas(t *testing.T) {
	for _, kind := range []string{"Machine", "Gate"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			both := []*target.Object{w.machine("a", days), w.machine("b", days)}
			g := w.fleetGate("nights", "opened")
			w.APIReader = brokenList{w.APIReader, kind}
			if _, err := w.try(g); err == nil {
				t.Error("no error")
			}
			w.expectAsked(both)
			equal(t, failuresOf(g), []string{"Machine/* ReadFailed"})
			w.APIReader = cluster.Client
			w.reconcile(g)
			w.expectAsked(both, "a")
		})
	}
}

// brokenList cannot list the objects of a kind.
type brokenList struct {
	client.Reader
	kind string
}

func (b brokenList) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind := list.GetObjectKind().GroupVersionKind().Kind
	if _, ok := list.(*v1alpha1.GateList); ok {
		kind = "GateList"
	}
	if kind == b.kind+"List" {
		return errBroken
	}
	return b.Reader.List(ctx, list, opts...)
}

func TestARequestWithoutItsRecordIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.machine("a", days)
	g := w.fleetGate("nights", "opened")
	w.reconcile(g)
	w.note("kubectl-edit", m, map[string]any{v1alpha1.RefreshAnnotation: nil})
	w.Edit(g, func() { g.Spec.Targets = nil })
	w.reconcile(g)
	equal(t, holders(&trimmed(w.reload(m)).Unstructured), []string{w.Namespace + "/"})
	if _, err := w.on().machines.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.Namespace}}); err != nil {
		t.Error(err)
	}
	w.expectQuiet(m)
}

func trimmed(obj *target.Object) *target.Object {
	target.Trim(&obj.Unstructured, verdict.Us)
	return obj
}

func TestAMachineThatIsDeletedOrReplacedWhileItIsWrittenIsLeftAlone(t *testing.T) {
	for name, replaced := range map[string]bool{"deleted": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.machine("a", days)
			g := w.fleetGate("nights", "opened")
			w.writes.before = once("apply Machine", func() error {
				err := cluster.Client.Delete(w.Context(), &m.Unstructured)
				if replaced {
					m = w.machine("a", 90*days)
				}
				return err
			})
			w.reconcile(g)
			w.reconcile(g)
			if !replaced {
				w.expectFleet(g, "none")
				return
			}
			w.expectQuiet(m)
			w.expectFleet(g, "due 0")
		})
	}
}

// A webhook that puts back what we remove, or removes what we set, must not keep
// a reconciliation from coming to an end.
func TestSomebodyWhoUndoesOurWritesAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		round string
		undo  map[string]any
	}{
		"a request that never stays": {"begin", map[string]any{target.RefreshRequestAnnotation: nil, v1alpha1.RefreshAnnotation: nil}},
		"a request that stays":       {"withdrawn", map[string]any{target.RefreshRequestAnnotation: "1y"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, g, both := fleetOfTwo(t, rounds[tc.round])
			w.writes.take("")
			w.writes.after = func(write string) error {
				if write != "apply Machine/a" {
					return nil
				}
				return w.tryNote("webhook", both[0], tc.undo)
			}
			w.reconcile(g)
			if writes := w.writes.take("apply Machine"); len(writes) != 1 {
				t.Errorf("writes %q", writes)
			}
		})
	}
}

func TestGatesAreReadOnceForAllMachinesThatTheyKeepBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.expectQuiet(w.machine(name, 2*days))
	}
	closed, g := w.fleetGate("closed", "closed"), w.fleetGate("opened", "opened")
	w.reconcile(closed)
	reads := &reads{log: map[string]int{}}
	w.APIReader = reads.client(cluster.Client)
	w.reconcile(g)
	if got, want := reads.take(), map[string]int{"list Gate": 1, "list Machine": 1}; !maps.Equal(got, want) {
		t.Errorf("read: %v, want %v", got, want)
	}
}
