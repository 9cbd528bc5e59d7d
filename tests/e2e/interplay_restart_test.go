package e2e

import (
	"maps"
	"testing"
)

// downCases are events while the controller is down: how an app gets into its state, what happens meanwhile, and its states after the
// controller has started and after the gate has opened.
var downCases = map[string]struct {
	settings          []setting
	before, meanwhile func(*fleet)
	after, opened     state
	// gateDeleted is the state if the gate is deleted instead.
	gateDeleted state
	// locked has the states with the lock, if they differ: after the controller has started, and after the gate has opened.
	locked, lockedThen state
}{
	"down-gate-closes": {
		meanwhile: func(w *fleet) { w.close("production"); w.is(free) },
		after:     held, opened: free,
	},
	"down-gate-opens": {
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.open("production"); w.is(held) },
		after:     free, opened: free,
	},
	"down-only-closes": {
		meanwhile: func(w *fleet) { w.closeOnly("production"); w.is(free) },
		after:     held, opened: free,
	},
	"down-only-opens": {
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.openOnly("production"); w.is(held) },
		after:     free, opened: free,
	},
	"down-only-ends": {
		before:    func(w *fleet) { w.close("production"); w.openOnly("production") },
		meanwhile: func(w *fleet) { w.close("production"); w.is(free) },
		after:     held, opened: free,
	},
	"down-gate-deleted": {
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.deleteGate("production"); w.is(held) },
		after:     free,
	},
	"down-gate-deleted-by-force": {
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.deleteGate("production"); w.removeFinalizer("production"); w.is(held) },
		after:     free,
	},
	"down-flux-suspend": {
		meanwhile: func(w *fleet) { w.fluxSuspend(); w.close("production") },
		after:     suspended, opened: suspended,
	},
	"down-flux-resume": {
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.fluxResume(); w.is(unlessLocked(w, free, held)) },
		after:     held, opened: free,
	},
	"down-flux-resume-respected": {
		settings:  []setting{respecting},
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.fluxResume(); w.is(free) },
		after:     free, opened: free,
	},
	"down-flux-resume-and-suspend": {
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.fluxResume(); w.fluxSuspend() },
		after:     suspended, opened: suspended, locked: held, lockedThen: free,
	},
	"down-flux-resume-and-suspend-gate-deleted-after": {
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.fluxResume(); w.fluxSuspend() },
		after:     suspended, gateDeleted: suspended, locked: held, lockedThen: free,
	},
	"down-flux-resume-suspend-and-gate-deleted": {
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.fluxResume(); w.fluxSuspend(); w.deleteGate("production") },
		after:     suspended, locked: free,
	},
	"down-git-false": {
		settings:  []setting{suspendInGit("false")},
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.parentReconciles(); w.is(unlessLocked(w, free, held)) },
		after:     held, opened: free,
	},
	"down-git-adds-true-with-more": {
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.gitWithMore("true"); w.open("production") },
		after:     suspended, opened: suspended,
	},
	"down-target-recreated": {
		before:    func(w *fleet) { w.close("production") },
		meanwhile: func(w *fleet) { w.deleteApp(); w.parentReconciles(); w.is(unlessLocked(w, free, held)) },
		after:     held, opened: free,
	},
}

func TestInterplayOfRestart(t *testing.T) {
	fleets := map[string]*fleet{}
	phase := func(name string, do func(name string, w *fleet)) {
		t.Run(name, func(t *testing.T) {
			for name, w := range maps.Clone(fleets) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					do(name, w.on(t))
				})
			}
		})
	}
	for name, s := range states {
		fleets[name] = prepareFleet(t, s.settings...)
	}
	for name, c := range downCases {
		fleets[name] = prepareFleet(t, c.settings...)
	}
	phase("before", func(name string, w *fleet) {
		w.begin()
		if s, ok := states[name]; ok {
			s.reach(w)
			w.is(s.is)
		} else if before := downCases[name].before; before != nil {
			before(w)
		}
	})
	if t.Failed() {
		return
	}
	w := newWorld(t)
	w.Must(gating.Kill())
	phase("while the controller is down", func(name string, w *fleet) {
		w.down = true
		if c, ok := downCases[name]; ok {
			c.meanwhile(w)
		}
	})
	var err error
	gating, err = cluster.StartGatingController(w.Context())
	w.Must(err)
	phase("after", func(name string, w *fleet) {
		w.down = false
		c, ok := downCases[name]
		if !ok {
			c.after, c.opened = states[name].restarted, states[name].opened
		}
		if w.withLock && c.locked != "" {
			c.after = c.locked
			if c.opened != "" {
				c.opened = c.lockedThen
			} else if c.gateDeleted != "" {
				c.gateDeleted = c.lockedThen
			}
		}
		w.step("the controller is started", false, func() {})
		w.is(c.after)
		switch {
		case c.opened != "":
			w.open("production")
			w.is(c.opened)
		case c.gateDeleted != "":
			w.deleteGate("production")
			w.is(c.gateDeleted)
		}
	})
}
