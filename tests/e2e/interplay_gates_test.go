package e2e

import (
	"fmt"
	"testing"
)

func TestInterplayOfGates(t *testing.T) { gateCases.run(t) }

var gateCases = cases{
	"two-gates": func(t *testing.T) {
		w := newFleet(t)
		w.newGate("freeze")
		w.everyOrder(free, held)
	},
	"two-gates-suspended": func(t *testing.T) {
		w := newFleet(t)
		w.newGate("freeze")
		w.fluxSuspend()
		w.everyOrder(suspended, suspended)
	},
	"two-gates-one-deleted": func(t *testing.T) {
		w := newFleet(t)
		w.newGate("freeze")
		w.close("production")
		w.close("freeze")
		w.deleteGate("production")
		w.is(held)
		w.open("freeze")
		w.is(free)
	},
	"names-its-gate": func(t *testing.T) {
		w := newFleet(t, naming)
		w.is(free)
		w.close("production")
		w.is(held)
		w.parentReconciles()
		w.fluxResume()
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"names-no-gate": func(t *testing.T) {
		w := newFleet(t, naming)
		w.deleteGate("production")
		w.is(held)
		w.fluxResume()
		w.is(held)
		w.recreateGate("production")
		w.is(free)
	},
	"two-gates-resumed": func(t *testing.T) {
		w := newFleet(t, respecting)
		w.newGate("freeze")
		w.close("production")
		w.fluxResume()
		w.is(free)
		w.close("freeze")
		w.is(held)
		w.open("production")
		w.is(held)
		w.open("freeze")
		w.is(free)
	},
}

// everyOrder closes and opens the two gates in every order.
func (w *fleet) everyOrder(whenOpen, whenClosed state) {
	w.Helper()
	close, open := (*fleet).close, (*fleet).open
	type change struct {
		gate string
		do   func(*fleet, string)
	}
	a1, a0, b1, b0 := change{"production", close}, change{"production", open}, change{"freeze", close}, change{"freeze", open}
	for _, order := range [][]change{
		{a1, a0, b1, b0}, {a1, b1, a0, b0}, {a1, b1, b0, a0}, {b1, a1, a0, b0}, {b1, a1, b0, a0}, {b1, b0, a1, a0},
	} {
		for _, c := range order {
			c.do(w, c.gate)
			want := whenOpen
			if len(w.closed) > 0 {
				want = whenClosed
			}
			w.is(want)
		}
	}
}

// states are the rows of the table of states in docs/contribute/interplay.md: how an app gets into a state, and its state after each event.
var states = map[string]struct {
	settings []setting
	reach    func(*fleet)
	is       state
	// gateDeleted, restarted and recreated are the states after these events. opened is the state when the gate opens after a restart or
	// recreation.
	gateDeleted, restarted, recreated state
	opened, openedRecreated           state
}{
	"released": {
		reach: func(w *fleet) { w.close("production"); w.open("production") },
		is:    free, gateDeleted: free, restarted: free, recreated: free, opened: free, openedRecreated: free,
	},
	"held": {
		reach: func(w *fleet) { w.close("production") },
		is:    held, gateDeleted: free, restarted: held, recreated: held, opened: free, openedRecreated: free,
	},
	"suspended-by-a-person": {
		reach: func(w *fleet) { w.fluxSuspend(); w.close("production") },
		is:    suspended, gateDeleted: suspended, restarted: suspended, recreated: held, opened: suspended, openedRecreated: free,
	},
	"suspended-in-git": {
		settings: []setting{suspendInGit("true")},
		reach:    func(w *fleet) { w.close("production") },
		is:       suspended, gateDeleted: suspended, restarted: suspended, recreated: suspended, opened: suspended, openedRecreated: suspended,
	},
	"held-and-suspended-in-git": {
		reach: func(w *fleet) { w.close("production"); w.gitWithMore("true") },
		is:    both, gateDeleted: suspended, restarted: both, recreated: suspended, opened: suspended, openedRecreated: suspended,
	},
	"held-and-suspended-by-a-person": {
		reach: func(w *fleet) { w.close("production"); w.applyAs(alice) },
		is:    both, gateDeleted: suspended, restarted: both, recreated: held, opened: suspended, openedRecreated: free,
	},
	"resumed-and-respected": {
		settings: []setting{respecting},
		reach:    func(w *fleet) { w.close("production"); w.fluxResume() },
		is:       free, gateDeleted: free, restarted: free, recreated: held, opened: free, openedRecreated: free,
	},
	"opened-only": {
		reach: func(w *fleet) { w.close("production"); w.openOnly("production") },
		is:    free, gateDeleted: free, restarted: free, recreated: free, opened: free, openedRecreated: free,
	},
	"closed-only": {
		reach: func(w *fleet) { w.closeOnly("production") },
		is:    held, gateDeleted: free, restarted: held, recreated: held, opened: free, openedRecreated: free,
	},
	"taken-over": {
		settings: []setting{respecting},
		reach:    func(w *fleet) { w.close("production"); w.fluxResume(); w.fluxSuspend() },
		is:       suspended, gateDeleted: suspended, restarted: suspended, recreated: held, opened: suspended, openedRecreated: free,
	},
}

func TestInterplayOfDeletedGate(t *testing.T) {
	for name, s := range states {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFleet(t, s.settings...)
			s.reach(w)
			w.is(s.is)
			w.deleteGate("production")
			w.is(s.gateDeleted)
			w.newGate("production") // the new Gate has no record of the first one
			w.is(s.gateDeleted)
		})
	}
}

func TestInterplayOfRecreatedTarget(t *testing.T) {
	for name, s := range states {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFleet(t, s.settings...)
			s.reach(w)
			applied := w.applied(fmt.Sprintf("v%d", w.revision))
			before := applied()
			w.deleteApp()
			if after := applied(); before == nil && (after == nil) != (s.is != free) {
				t.Errorf("app was %s, and the check of its ConfigMap returned %v", s.is, after) // orphaned if suspended, else pruned
			}
			w.parentReconciles()
			w.is(s.recreated)
			w.open("production")
			w.is(s.openedRecreated)
		})
	}
}
