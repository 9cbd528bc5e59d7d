// Package summary counts, in memory, the outcomes of the targets of each Gate. The reconcilers of targets put outcomes into it, and the
// reconciler of the Gate reads the sums for its status. After a restart, all targets are reconciled once, which restores the sums.
package summary

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/internal/target"
)

// Outcome is the outcome of a target for one Gate.
type Outcome uint8

const (
	// Other means none of the outcomes below, for example that the Gate is open, or that another client has resumed the target and the Gate
	// permits that.
	Other Outcome = iota
	// Held means that the Gate holds the target.
	Held
	// SuspendedByOthers means that a user or another client has suspended the target.
	SuspendedByOthers
	// Exempt means that the target is not held although the Gate is closed.
	Exempt
	// WouldHold means that the Gate would hold the target if its mode were not Audit.
	WouldHold
)

// Gate identifies a Gate. A recreated Gate with the same name has a different UID.
type Gate struct {
	types.NamespacedName
	UID types.UID
}

// Entry is the outcome of a target for one Gate.
type Entry struct {
	Gate    Gate
	Outcome Outcome
	// Overlaid means that an overlay gives the target a state other than the state of the Gate.
	Overlaid bool
	// Pending means that the target does not have the desired state yet.
	Pending bool
	// Failure is the failure that keeps the target from its desired state, nil if there is none.
	Failure *Failure
	// Uncounted is true if the entry is about something other than a target, such as a GateLock.
	Uncounted bool
	// outdated is true if the Gate has decided since the last reconciliation of the target started.
	outdated bool
}

// Failure is the reason why a target has not reached the desired state.
type Failure struct {
	// Key is the key of the target.
	Key target.Key
	// Reason is one of the CamelCase reasons in status.targets.failures.
	Reason, Message string
	// At is the time when the failure was first observed.
	At time.Time
}

// Sums counts the targets of a Gate by outcome.
type Sums struct {
	Total, Held, WouldHold, SuspendedByOthers, Exempt, Overlaid, Pending, Failed int64
	// Awaits is true while the Gate is deciding. Its targets may not be marked as pending yet.
	Awaits bool
}

// IsSettled returns whether all targets have reached the desired state, or have failed.
func (s Sums) IsSettled() bool { return s.Pending == 0 && !s.Awaits }

// Summary counts the outcomes of targets by Gate. The zero value is ready for use. It is safe for concurrent use.
type Summary struct {
	// Changed is called for each Gate whose sums or failures have changed, with whether the Gate is settled. After concurrent changes, the
	// calls may come in any order.
	Changed func(gate Gate, settled bool)
	// Completed is called when all expected targets have been reconciled.
	Completed func()

	mu sync.Mutex
	// changed and completed determine what to call after mu is released.
	changed   []Gate
	completed bool
	targets   map[target.Key][]Entry
	// gates holds the counts by UID.
	gates map[types.UID]*counted
	// unsettled is the number of Gates that are not settled.
	unsettled int
	// expected contains the targets that have not been reconciled since the start.
	expected map[target.Key]bool
}

// counted holds the counts of one Gate.
type counted struct {
	sums     Sums
	failures map[target.Key]Failure
}

// StartReconcile records that a reconciliation of a target starts. If a Gate decides afterwards, the target stays pending until the next
// reconciliation, which takes that decision into account.
func (t *Summary) StartReconcile(key target.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.targets[key] {
		t.targets[key][i].outdated = false
	}
}

// Put replaces the outcomes of a target, one for each Gate that governs it. It takes ownership of entries, which the caller must not use
// again. A failure with the same reason keeps its time. If a Gate has decided since StartReconcile, the target stays pending for it.
func (t *Summary) Put(key target.Key, entries []Entry, now time.Time) {
	t.mu.Lock()
	defer t.unlock()
	for _, was := range t.targets[key] {
		if !was.outdated {
			continue
		}
		if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Gate == was.Gate }); i >= 0 {
			entries[i].Pending, entries[i].outdated = true, true
		} else {
			entries = append(entries, was)
		}
	}
	t.put(key, entries, now)
}

// put replaces the outcomes of a target. The caller must hold mu.
func (t *Summary) put(key target.Key, entries []Entry, now time.Time) {
	if t.expected[key] {
		delete(t.expected, key)
		t.completed = len(t.expected) == 0
	}
	before := t.targets[key]
	changed := map[Gate]bool{}
	for _, e := range before {
		t.count(e, key, -1)
		changed[e.Gate] = true
	}
	for i := range entries {
		e := &entries[i]
		if e.Failure != nil {
			failure := *e.Failure
			failure.Key, failure.At = key, now
			if was := failureIn(before, e.Gate); was != nil && was.Reason == failure.Reason {
				failure.At = was.At
			}
			e.Failure = &failure
		}
		t.count(*e, key, 1)
		changed[e.Gate] = !sameIn(before, *e)
	}
	t.store(key, entries)
	for gate, is := range changed {
		if is {
			t.changed = append(t.changed, gate)
		}
	}
}

// Evict removes a target that was deleted.
func (t *Summary) Evict(key target.Key) {
	t.mu.Lock()
	defer t.unlock()
	t.put(key, nil, time.Time{})
}

// MarkPending records that a Gate has decided. Its targets are pending until they are reconciled.
func (t *Summary) MarkPending(gate Gate, keys []target.Key) {
	t.mu.Lock()
	defer t.unlock()
	t.setAwaits(gate.UID, false)
	for _, key := range keys {
		entries := t.targets[key]
		known := false
		for i := range entries {
			if e := &entries[i]; e.Gate == gate {
				t.count(*e, key, -1)
				e.Pending, e.outdated, known = true, true, true
				t.count(*e, key, 1)
			}
		}
		if !known {
			e := Entry{Gate: gate, Pending: true, outdated: true}
			t.count(e, key, 1)
			t.store(key, append(entries, e))
		}
	}
	t.changed = append(t.changed, gate)
}

// Await records that a Gate is deciding. MarkPending or StopAwaiting must follow.
func (t *Summary) Await(gate Gate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setAwaits(gate.UID, true)
}

// StopAwaiting records that a Gate will not decide, because it is suspended.
func (t *Summary) StopAwaiting(gate Gate) { t.Forget(gate.UID) }

// Forget records that a Gate was deleted. Its sums are kept until its last target is updated.
func (t *Summary) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setAwaits(uid, false)
}

// ForgetKind removes all targets of a kind that no longer exists.
func (t *Summary) ForgetKind(kind schema.GroupKind) {
	t.mu.Lock()
	defer t.unlock()
	for key := range t.targets {
		if key.GroupKind == kind {
			t.put(key, nil, time.Time{})
		}
	}
}

// Expect records, at the start, which targets must be reconciled before the sums are complete.
func (t *Summary) Expect(keys ...target.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.expected == nil {
		t.expected = map[target.Key]bool{}
	}
	for _, key := range keys {
		if _, known := t.targets[key]; !known {
			t.expected[key] = true
		}
	}
}

// IsComplete returns whether all expected targets have been reconciled. Until then, the sums are too low.
func (t *Summary) IsComplete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.expected) == 0
}

// Sums returns the sums of a Gate.
func (t *Summary) Sums(gate Gate) Sums {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.gates[gate.UID]; known != nil {
		return known.sums
	}
	return Sums{}
}

// Outcome returns the outcome of a target for a Gate. It returns Other if the target has not been reconciled.
func (t *Summary) Outcome(key target.Key, gate Gate) Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.targets[key] {
		if e.Gate == gate {
			return e.Outcome
		}
	}
	return Other
}

// Unsettled returns how many Gates are not settled.
func (t *Summary) Unsettled() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unsettled
}

// Failures returns the failures of a Gate, in any order.
func (t *Summary) Failures(gate Gate) []Failure {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.gates[gate.UID]
	if known == nil {
		return nil
	}
	all := make([]Failure, 0, len(known.failures))
	for _, failure := range known.failures {
		all = append(all, failure)
	}
	return all
}

// store stores the outcomes of a target. The caller must hold mu, as for all functions below.
func (t *Summary) store(key target.Key, entries []Entry) {
	if t.targets == nil {
		t.targets = map[target.Key][]Entry{}
	}
	if t.targets[key] = entries; len(entries) == 0 {
		delete(t.targets, key)
	}
}

func (t *Summary) count(e Entry, key target.Key, by int64) {
	known := t.edit(e.Gate.UID)
	known.count(e, key, by)
	t.save(e.Gate.UID, known)
}

func (t *Summary) setAwaits(uid types.UID, awaits bool) {
	known := t.edit(uid)
	known.sums.Awaits = awaits
	t.save(uid, known)
}

// edit returns the counts of a Gate. The caller changes them and calls save.
func (t *Summary) edit(uid types.UID) *counted {
	known := t.gates[uid]
	if known == nil {
		return &counted{failures: map[target.Key]Failure{}}
	}
	if !known.sums.IsSettled() {
		t.unsettled--
	}
	return known
}

// save stores the counts of a Gate. If they are zero, it evicts the Gate.
func (t *Summary) save(uid types.UID, known *counted) {
	if t.gates == nil {
		t.gates = map[types.UID]*counted{}
	}
	if !known.sums.IsSettled() {
		t.unsettled++
	}
	if t.gates[uid] = known; known.sums == (Sums{}) {
		delete(t.gates, uid)
	}
}

// count adds by to each count that an entry of a target affects. A negative by removes the entry.
func (c *counted) count(e Entry, key target.Key, by int64) {
	s := &c.sums
	if !e.Uncounted {
		s.Total += by
	}
	switch e.Outcome {
	case Held:
		s.Held += by
	case SuspendedByOthers:
		s.SuspendedByOthers += by
	case Exempt:
		s.Exempt += by
	case WouldHold:
		s.WouldHold += by
	case Other:
	}
	if e.Overlaid {
		s.Overlaid += by
	}
	if e.Pending {
		s.Pending += by
	}
	if e.Failure != nil {
		s.Failed += by
		if c.failures[key] = *e.Failure; by < 0 {
			delete(c.failures, key)
		}
	}
}

// unlock releases mu, and then calls Changed and Completed.
func (t *Summary) unlock() {
	changed, completed := t.changed, t.completed
	t.changed, t.completed = nil, false
	settled := make([]bool, len(changed))
	for i, gate := range changed {
		known := t.gates[gate.UID]
		settled[i] = known == nil || known.sums.IsSettled()
	}
	t.mu.Unlock()
	if t.Changed != nil {
		for i, gate := range changed {
			t.Changed(gate, settled[i])
		}
	}
	if completed && t.Completed != nil {
		t.Completed()
	}
}

func failureIn(entries []Entry, gate Gate) *Failure {
	for _, e := range entries {
		if e.Gate == gate {
			return e.Failure
		}
	}
	return nil
}

// sameIn returns whether entries already have the outcome, failure, overlay and pending state of e for its Gate.
func sameIn(entries []Entry, e Entry) bool {
	for _, was := range entries {
		if was.Gate == e.Gate {
			same := was.Outcome == e.Outcome && was.Overlaid == e.Overlaid && was.Pending == e.Pending
			return same && (was.Failure == nil) == (e.Failure == nil) && (e.Failure == nil || *was.Failure == *e.Failure)
		}
	}
	return false
}
