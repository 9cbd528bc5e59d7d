package verdict

import (
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Situation holds all inputs of a Ruling as plain values. Unknown lists the facts that were not read. If a fact was read, its zero value
// does not prevent a release.
type Situation struct {
	// Object is the trimmed target, and Definition is the definition of its kind.
	Object     *target.Object
	Definition target.Definition
	// Gates lists the Gates that govern the target or whose names are on it, each once.
	Gates []Gate
	Now   time.Time
	// Sharded is true if other processes reconcile some of the Gates. Reporter is true if this process reports on a target without Gates of
	// its own, because it was the last to write the target, or has just started.
	Sharded, Reporter bool

	// Unknown lists the facts that have not been read yet.
	Unknown Facts
	// Lockers lists the Gates that GateLocks lock the target for.
	Lockers []string
	// Live lists the target's Gates across all shards, read live. It is required to start a pass, and to release a target without names. If
	// Live has been read but is nil, only Gates count.
	Live []Gate
	// NoSlot lists the Gates with a pace that have not given the target a slot yet.
	NoSlot []string
}

// Facts are parts of a Situation that are expensive to read.
type Facts uint8

const (
	// Lockers of the target.
	Lockers Facts = 1 << iota
	// Live Gates of the target.
	Live
	// Slots for the release of the target.
	Slots
)

// Wait is the reason why the release of a target waits.
type Wait uint8

const (
	// NoWait means that no release waits.
	NoWait Wait = iota
	// ForFacts means that the release depends on a fact that has not been read.
	ForFacts
	// ForLock means that a GateLock still locks the target for a Gate that releases it.
	ForLock
	// ForShard means that a Gate of another shard is not open, and that the target has no names of Gates.
	ForShard
	// ForSlot means that a Gate releases its targets at a pace or in waves.
	ForSlot
)

const (
	// staleInterval is how long to wait before requeueing a target if the Gates in the cache are out of date. Usually, an event triggers the
	// reconciliation earlier.
	staleInterval = time.Second

	// lockInterval is how long to wait before requeueing a locked target. Usually, an event of its GateLock triggers the reconciliation
	// earlier.
	lockInterval = 5 * time.Second

	// MissingInterval is how long to wait before requeueing a target that refers to a missing or denied Gate, or that is held without a name.
	// Usually, an event triggers the reconciliation earlier. The interval is long because each invented name costs a request to the API
	// server.
	MissingInterval = 10 * time.Minute
)

// Rule returns the ruling on a target. It is final if Needs is empty. Otherwise, the target does not change until the missing facts
// are read.
func Rule(s Situation) Ruling {
	r := s.decide(s.Gates)
	if r.startsPass() {
		r = s.confirmPass(r)
	}
	r.conclude(s)
	return r
}

// conclude completes a ruling from decide. It sets the reasons why a release waits, Report and
// Recheck.
func (r *Ruling) conclude(s Situation) {
	r.recheckBy(r.Plan.Recheck)
	for _, g := range s.Gates {
		r.recheckBy(g.Initial)
	}
	reports := s.reports(r.Step.Names)
	switch {
	case r.Releases():
		r.await(s)
	case r.Step.Hold && (len(r.Step.Names) == 0 || slices.ContainsFunc(s.Gates, Gate.IsRefused)):
		r.recheckBy(s.Now.Add(MissingInterval))
	}
	if r.isNewlyIgnored() { // set the condition first, because the next ruling reads it
		r.Step.Write = false
		if reports {
			r.recheckBy(s.Now)
		}
	}
	r.recheckBy(r.passEnds())
	if !reports {
		r.Step.Refused = ""
	}
	r.Report = reports && !r.Step.Write && r.Wait == NoWait && r.Needs == 0
}

// decide returns the ruling under the given Gates. It ignores the reasons why a release waits.
func (s Situation) decide(gates []Gate) Ruling {
	obj, now := s.Object, s.Now
	adapter := target.Of(&obj.Unstructured)
	was := ApprovedOf(obj)
	r := Ruling{Object: obj, Now: now, Observed: Observed{
		State: adapter.Observe(obj, Us), HeldBy: HeldBy(&obj.Unstructured), Exempted: IsExemption(was),
	}}
	if was != nil {
		r.Observed.ReportedAt = was.LastTransitionTime.Time
	}
	if r.Observed.pass(obj, s.Definition, now) {
		gates = barred(gates, now)
	}
	r.Verdict = Judge(r.Observed, gates)
	if _, renews := adapter.(target.Renewer); renews {
		r.Terms = Terms(r.Verdict.Holders)
		r.Terms.Definition = s.Definition
		r.Terms.Activates = Activates(obj)
		r.Terms.Ignored = isWindowIgnored(obj)
	}
	r.Plan = adapter.Plan(obj, r.Observed.State, r.Terms, now)
	r.Step = fitting(obj, r.Observed, Next(r.Observed, r.Verdict, r.Plan), r.Plan)
	return r
}

// confirmPass decides again with the live Gates before a pass starts, because a reconciliation cannot be undone. If the live Gates have not
// been read, the ruling needs them.
func (s Situation) confirmPass(r Ruling) Ruling {
	switch {
	case s.Unknown&Live != 0:
		r.Needs = Live
		r.Step = r.Observed.stays()
	case s.Live != nil:
		if r = s.decide(s.Live); !r.Step.Write {
			r.recheckBy(s.Now.Add(staleInterval))
		}
	}
	return r
}

// reports returns whether this process reports on a target. names are the Gates whose names are on it after the step. With shards, several
// processes may hold the target. The process that reconciles the Gate with the first name reports, or the process that released the target.
func (s Situation) reports(names []string) bool {
	switch {
	case !s.Sharded:
		return true
	case len(names) > 0:
		return !slices.ContainsFunc(s.Gates, func(g Gate) bool { return g.Name == names[0] && g.Effect == OtherShard })
	}
	return s.Reporter || slices.ContainsFunc(s.Gates, Gate.IsOurs)
}

// await makes a release wait for its GateLock, for the Gates of other shards, and for its slots, in this order. A target that waits does
// not change, except that a pass may end.
func (r *Ruling) await(s Situation) {
	nameless := len(r.Observed.HeldBy) == 0
	switch suspends := target.Suspends(target.Of(&r.Object.Unstructured)); {
	case suspends && s.Unknown&Lockers != 0:
		r.Wait, r.Needs = ForFacts, Lockers
	case suspends && r.isLocked(s.Lockers):
		r.Wait = ForLock
		r.recheckBy(r.Now.Add(lockInterval))
	case nameless && s.Unknown&Live != 0:
		r.Wait, r.Needs = ForFacts, Live
	case nameless && slices.ContainsFunc(s.Live, func(g Gate) bool { return g.Covers() && !g.LetsActivate() }):
		r.Wait = ForShard
	default:
		r.awaitSlots(s)
	}
	if r.Wait != NoWait {
		r.Step, r.Slots = r.Observed.stays(), nil
		r.Step.Write = r.Step.Write && r.Needs == 0
	}
	if r.Wait == ForSlot && r.Observed.Request != nil {
		r.Step.Refused = msgAwaitsSlot
	}
}

// isLocked returns whether a GateLock still locks the target for a Gate that releases it.
func (r *Ruling) isLocked(lockers []string) bool {
	released := slices.Concat(r.Dropped(), r.Verdict.Open, namesOf(r.Verdict.Initial))
	return slices.ContainsFunc(released, func(name string) bool { return slices.Contains(lockers, name) })
}

// awaitSlots sets the slots that a release takes, or those that it waits for. A Certificate that must be renewed now does not wait.
func (r *Ruling) awaitSlots(s Situation) {
	for _, g := range s.Gates {
		if !g.HasPace() || !slices.Contains(r.Observed.HeldBy, g.Name) && !gate.ReleasesInWaves(g.Object) {
			continue // in waves, targets that only other Gates hold wait, too
		}
		switch late, recheck := r.isLate(g); {
		case late:
		case s.Unknown&Slots != 0:
			r.Wait, r.Needs = ForFacts, Slots
			return
		case slices.Contains(s.NoSlot, g.Name):
			r.Wait, r.Queues = ForSlot, append(r.Queues, g)
			r.recheckBy(recheck)
		default:
			r.Slots = append(r.Slots, g)
		}
	}
}

// stays returns the step that changes nothing, except that a pass may end.
func (o Observed) stays() Step {
	step := Step{Outcome: Held, Hold: true, Names: o.HeldBy, Pass: o.Pass}
	switch {
	case o.State == target.Passing && o.Outcome != "":
		step.Write, step.Pass = true, o.end(o.Outcome, o.Message)
	case o.State == target.Passing:
		step.Outcome, step.Hold = Passing, false
	}
	step.Ends = step.Pass
	return step
}

// recheckBy sets Recheck to at, unless Recheck is already earlier. It ignores a zero time.
func (r *Ruling) recheckBy(at time.Time) {
	if r.Recheck.IsZero() || !at.IsZero() && at.Before(r.Recheck) {
		r.Recheck = at
	}
}
