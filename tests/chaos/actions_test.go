package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/chaos/checker"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// actions are the actions of steps by name.
var actions map[string]func(w *walk, random *rand.Rand)

func init() {
	actions = map[string]func(w *walk, random *rand.Rand){
		"change a gate":            func(w *walk, r *rand.Rand) { w.changeGate(r.IntN(gateCount), w.gateSpec(r)) },
		"delete a gate":            func(w *walk, r *rand.Rand) { w.deleteGate(r.IntN(gateCount)) },
		"delete a gate by force":   func(w *walk, r *rand.Rand) { w.forceGate(r.IntN(gateCount)) },
		"delete a closed gate":     (*walk).deleteClosedGate,
		"suspend a gate":           (*walk).suspendGate,
		"request":                  (*walk).request,
		"Git strips requests":      (*walk).strip,
		"Git restores a request":   (*walk).restoreRequest,
		"restore an older request": (*walk).requestAndRestore,
		"approach a margin":        (*walk).nearMargin,
		"write an invalid request": (*walk).nonsense,
		"create an exception":      (*walk).createException,
		"delete an exception":      func(w *walk, r *rand.Rand) { w.remove(w.exception(r.IntN(2), r.IntN(gateCount))) },

		"flux suspend":                      func(w *walk, r *rand.Rand) { w.suspendTarget(r, "flux", true) },
		"flux resume":                       func(w *walk, r *rand.Rand) { w.suspendTarget(r, "flux", nil) },
		"resume a target of a lenient gate": (*walk).resumeToRespect,
		"kubectl edit":                      func(w *walk, r *rand.Rand) { w.suspendTarget(r, "kubectl-edit", []any{true, false, nil}[r.IntN(3)]) },
		"Git applies": func(w *walk, r *rand.Rand) {
			w.apply(r, "kustomize-controller", []any{nil, nil, true, false}[r.IntN(4)])
		},
		"alice applies": func(w *walk, r *rand.Rand) { w.apply(r, "alice", []any{nil, true}[r.IntN(2)]) },

		"Flux reports":            func(w *walk, r *rand.Rand) { w.report(w.any(r), r) },
		"create a target":         func(w *walk, r *rand.Rand) { w.createTarget(slots[r.IntN(len(slots))], r) },
		"delete a target":         func(w *walk, r *rand.Rand) { w.deleteTarget(slots[r.IntN(len(slots))]) },
		"label a target":          (*walk).labelTarget,
		"name gates":              (*walk).nameGates,
		"set a renewal":           (*walk).setRenewal,
		"cert-manager reconciles": func(w *walk, _ *rand.Rand) { w.Must(w.try(w.certManager)) },
		"remove a definition":     (*walk).vanishForAWhile,

		"wait":                        func(w *walk, r *rand.Rand) { w.pass(time.Duration(100+r.IntN(2000)) * time.Millisecond) },
		"kill a replica":              func(w *walk, r *rand.Rand) { w.end((*harness.Process).Kill, w.oneOf(r), r.IntN(6)) },
		"stop a replica":              func(w *walk, r *rand.Rand) { w.end((*harness.Process).Stop, w.oneOf(r), r.IntN(4)) },
		"kill both replicas":          func(w *walk, r *rand.Rand) { w.killBoth(r.IntN(8)) },
		"pause the leader":            func(w *walk, r *rand.Rand) { w.pause(w.leader(), 3+r.IntN(6)) },
		"start a burst of faults":     func(w *walk, r *rand.Rand) { w.setWeather(storm); w.stormUntil = w.at + 2 + r.IntN(8) },
		"cut a connection":            func(w *walk, r *rand.Rand) { w.oneOf(r).proxy.Cut(true); w.stormUntil = w.at + 2 + r.IntN(8) },
		"race with a gate":            (*walk).race,
		"one gate opens, one closes":  (*walk).handOver,
		"move a target between gates": (*walk).moveBetweenGates,
		"kill the API server":         func(w *walk, r *rand.Rand) { w.restart(w.KillAPIServer, r) },
		"pause the API server":        (*walk).pauseAPIServer,
		"kill etcd":                   func(w *walk, r *rand.Rand) { w.restart(w.KillEtcd, r) },
	}
}

// oneOf returns a replica, most often the leader.
func (w *walk) oneOf(random *rand.Rand) *replica {
	if at := random.IntN(6); at < 2 {
		return w.replicas[at]
	}
	return w.leader()
}

// end stops a replica for some steps.
func (w *walk) end(how func(*harness.Process) error, r *replica, steps int) {
	w.Helper()
	if r.runs() {
		w.unpause(r)
		w.Must(how(r.process))
	}
	r.downUntil = w.at + 1 + steps
}

func (w *walk) killBoth(steps int) {
	w.Helper()
	for _, r := range w.replicas {
		w.end((*harness.Process).Kill, r, steps)
	}
}

// race makes users suspend and resume targets, and Flux report on them, while requests on a Gate arrive. It cuts the watches of the
// replicas and delays their writes: holds and conditions arrive 300 milliseconds after the replica has read the target.
func (w *walk) race(random *rand.Rand) {
	w.Helper()
	for _, r := range w.replicas {
		r.proxy.CutWatches()
		r.proxy.HoldWrites(300 * time.Millisecond)
	}
	for range 4 {
		w.request(random)
		for range 6 {
			w.pass(time.Duration(random.IntN(150)) * time.Millisecond)
			w.suspendTarget(random, "flux", []any{true, true, nil}[random.IntN(3)])
			for _, s := range slots[:len(slots)-certificateSlots] {
				if random.IntN(4) == 0 {
					w.report(s, random)
				}
			}
		}
	}
	for _, r := range w.replicas {
		r.proxy.HoldWrites(0)
	}
}

// handOver closes a Gate while writes of its targets are refused, so that its name is not added to them. Then it opens another Gate that
// holds the targets. They must stay held.
func (w *walk) handOver(random *rand.Rand) {
	w.Helper()
	opens := random.IntN(gateCount)
	closes := (opens + 1 + random.IntN(gateCount-1)) % gateCount
	opened := v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Mode: v1alpha1.ModeEnforce, Interval: v1alpha1.Duration{Duration: 24 * time.Hour},
		Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*", Namespace: w.namespaces[0]}},
	}
	frozen := freeze(random, opened)
	w.changeGate(closes, opened)
	w.changeGate(opens, frozen)
	for _, i := range []int{closes, opens} {
		now := time.Now().UTC().Truncate(time.Second)
		w.makeRequest(w.gate(i), checker.Request{Action: v1alpha1.RequestOpen, At: now, Value: now.Format(time.RFC3339)})
	}
	w.pass(1500 * time.Millisecond)
	w.refuseTargets("kustomizations")
	w.changeGate(closes, frozen)
	w.pass(4 * time.Second)
	w.changeGate(opens, opened)
	w.pass(time.Second)
	w.refuseTargets("")
}

// freeze closes a Gate for a while, after every other request.
func freeze(random *rand.Rand, spec v1alpha1.GateSpec) v1alpha1.GateSpec {
	from, until := soon(random, -9, 0), soon(random, 20, 40)
	spec.ClosePeriods = []v1alpha1.ClosePeriod{{
		Period: v1alpha1.Period{Name: "freeze", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}, Override: v1alpha1.OverrideDeny,
	}}
	return spec
}

// moveBetweenGates acts as a user who names one and then another closed Gate on a held target.
func (w *walk) moveBetweenGates(random *rand.Rand) {
	w.Helper()
	one := random.IntN(gateCount)
	both := []int{one, (one + 1 + random.IntN(gateCount-1)) % gateCount}
	for _, i := range both {
		w.changeGate(i, freeze(random, v1alpha1.GateSpec{
			Default: v1alpha1.StateOpened, Mode: v1alpha1.ModeEnforce, Interval: v1alpha1.Duration{Duration: 24 * time.Hour},
		}))
	}
	s := slots[random.IntN(kustomizationSlots)]
	w.createTarget(s, random)
	for range 4 {
		for _, i := range both {
			g := w.gate(i)
			w.logf("%s %s: %s", s.kind, s.name, g.Name)
			w.patch(w.target(s), types.MergePatchType,
				annotationPatch(map[string]any{"gating.toolkit.fluxcd.io/gates": g.Namespace + "/" + g.Name}), "kubectl-annotate")
			w.pass(time.Duration(500+random.IntN(1500)) * time.Millisecond)
		}
	}
}

// refuseTargets makes all writes of a resource by the replicas fail.
func (w *walk) refuseTargets(resource string) {
	for _, r := range w.replicas {
		r.proxy.RefuseWrites(resource)
	}
}

func (w *walk) deleteTarget(s slot) {
	if w.usable(s) {
		w.remove(w.target(s))
	}
}

// restart kills a part of the control plane and starts it again. The walk writes nothing until the history has all versions that were
// written meanwhile.
func (w *walk) restart(kill func() (func(context.Context) error, error), random *rand.Rand) {
	w.Helper()
	w.log.Disturbed(time.Now())
	start, err := kill()
	w.Must(err)
	w.pass(time.Duration(random.IntN(1500)) * time.Millisecond)
	w.Must(start(w.Context()))
	w.Must(harness.Eventually(w.Context(), w.patience, "the history has caught up", w.caughtUp))
	w.log.Disturbed(time.Now())
}

// pauseAPIServer suspends the API server for some seconds, after earlier requests have completed.
func (w *walk) pauseAPIServer(random *rand.Rand) {
	w.Helper()
	w.log.Disturbed(time.Now())
	resume, err := w.PauseAPIServer()
	w.Must(err)
	w.pass(time.Duration(2+random.IntN(6)) * time.Second)
	w.Must(resume())
	w.Must(harness.Eventually(w.Context(), w.patience, "the history has caught up", w.caughtUp))
	// A write that was decided before the pause may arrive now.
	w.history.Paused(time.Now())
	w.log.Disturbed(time.Now())
}
