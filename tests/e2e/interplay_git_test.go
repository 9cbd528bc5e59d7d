package e2e

import "testing"

// cases are rows of docs/contribute/interplay.md by name.
type cases map[string]func(*testing.T)

func (c cases) run(t *testing.T) {
	for name, test := range c {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func TestInterplayWithGit(t *testing.T) { gitCases.run(t) }

var gitCases = cases{
	"git-omits": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.is(held)
		w.push()
		w.parentReconciles()
		w.is(held)
		w.gitWithMore("")
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"git-false": func(t *testing.T) {
		w := newFleet(t, suspendInGit("false"))
		w.close("production")
		w.is(held)
		w.warned(0)
		w.parentReconciles() // resumes it, until it is held again
		w.is(held)
		w.warned(unlessLocked(w, 1, 0))
		w.open("production")
		w.is(free)
		w.parentReconciles()
		w.is(free)
	},
	"git-false-respected": func(t *testing.T) {
		w := newFleet(t, suspendInGit("false"), respecting)
		w.close("production")
		w.is(held)
		w.parentReconciles()
		w.is(free)
		w.open("production")
		w.close("production")
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"git-true": func(t *testing.T) {
		w := newFleet(t, suspendInGit("true"))
		w.is(suspended)
		w.close("production")
		w.is(suspended)
		w.parentReconciles()
		w.open("production")
		w.is(suspended)
		w.git("")
		w.is(free)
	},
	"git-true-dropped": func(t *testing.T) {
		w := newFleet(t, suspendInGit("true"))
		w.close("production")
		w.is(suspended)
		w.git("")
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"git-true-then-false": func(t *testing.T) {
		w := newFleet(t, suspendInGit("true"))
		w.close("production")
		w.git("false")
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"git-adds-true": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.git("true")
		w.is(unlessLocked(w, held, both)) // Flux sees no difference in a dry run
		w.open("production")
		w.is(unlessLocked(w, free, suspended))
		w.parentReconciles()
		w.is(suspended)
	},
	"git-adds-true-with-more": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.gitWithMore("true")
		w.is(both)
		w.open("production")
		w.is(suspended)
	},
	"git-adds-and-drops-true": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.git("true")
		w.git("")
		w.is(held)
		w.open("production")
		w.is(free)
		w.parentReconciles()
		w.is(free)
	},
	"git-drops-true": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.gitWithMore("true")
		w.git("")
		w.is(unlessLocked(w, both, held)) // Flux sees no difference in a dry run
		w.open("production")
		w.is(unlessLocked(w, suspended, free))
		w.parentReconciles()
		w.is(free)
	},
	"git-drops-true-with-more": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.gitWithMore("true")
		w.is(both)
		w.gitWithMore("")
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"git-replaces-true": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		w.gitWithMore("true")
		w.is(both)
		w.git("false")
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"ignored-false": func(t *testing.T) {
		w := newFleet(t, suspendInGit("false"), ignoring)
		w.close("production")
		w.is(held)
		w.parentReconciles()
		w.gitWithMore("false")
		w.is(held)
		w.warned(unlessLocked(w, 0, 1))
		w.open("production")
		w.is(free)
	},
	"ignored-false-next-commit": func(t *testing.T) {
		w := newFleet(t, suspendInGit("false"), ignoring)
		w.close("production")
		w.open("production")
		w.is(free)
		w.gitFails("spec.suspend: Invalid value")
		w.gitWithMore("")
		w.is(free)
	},
	"ignored-true": func(t *testing.T) {
		w := newFleet(t, ignoring)
		w.close("production")
		w.git("true")
		w.is(unlessLocked(w, held, both))
		w.open("production")
		w.parentReconciles()
		w.is(unlessLocked(w, free, suspended))
	},
	"ignored-true-with-more": func(t *testing.T) {
		w := newFleet(t, ignoring)
		w.close("production")
		w.gitWithMore("true")
		w.is(both)
		w.open("production")
		w.git("")
		w.is(suspended)
		w.fluxResume()
		w.is(free)
	},
	"if-not-present": func(t *testing.T) {
		w := newFleet(t, suspendInGit("false"), onlyIfNotPresent)
		w.close("production")
		w.is(held)
		w.gitWithMore("false")
		w.gitWithMore("true")
		w.is(held)
		w.warned(0)
		w.open("production")
		w.is(free)
	},
	"if-not-present-true": func(t *testing.T) {
		w := newFleet(t, suspendInGit("true"), onlyIfNotPresent)
		w.close("production")
		w.gitWithMore("")
		w.open("production")
		w.is(suspended)
		w.fluxResume()
		w.is(free)
	},
	"old-owners": func(t *testing.T) {
		w := newFleet(t)
		owners := w.live().GetManagedFields()
		w.close("production")
		w.is(held)
		w.fluxWritesOwners(owners)
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"old-owners-of-a-release": func(t *testing.T) {
		w := newFleet(t)
		w.close("production")
		owners := w.live().GetManagedFields()
		w.open("production")
		w.fluxWritesOwners(owners)
		w.is(free)
		w.fluxSuspend()
		w.is(suspended)
		w.close("production")
		w.open("production")
		w.is(suspended)
	},
	"born-while-closed": func(t *testing.T) {
		w := prepareFleet(t)
		w.newGate("production")
		w.close("production")
		w.firstApplied()
		w.is(held)
		w.open("production")
		w.is(free)
	},
	"born-suspended": func(t *testing.T) {
		w := prepareFleet(t, suspendInGit("true"))
		w.newGate("production")
		w.close("production")
		w.firstApplied()
		w.is(suspended)
		w.open("production")
		w.is(suspended)
	},
}

// unlessLocked returns one of the expected observations: without or with the lock.
func unlessLocked[T any](w *fleet, without, with T) T {
	if w.withLock {
		return with
	}
	return without
}
