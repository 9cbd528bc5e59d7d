package waves_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/waves"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func key(name string) target.Key {
	return target.Key{NamespacedName: types.NamespacedName{Name: name}}
}

// member returns a target in a phase that depends on others. wave is the index of its wave, -1 for none.
func member(wave int, phase waves.Phase, needs ...string) waves.Member {
	m := waves.Member{Phase: phase}
	if wave >= 0 {
		m.Matches = 1 << wave
	}
	for _, name := range needs {
		m.Needs = append(m.Needs, key(name))
	}
	return m
}

// release returns a release in two waves with a soak of ten minutes each.
func release(members map[string]waves.Member) *waves.Release {
	r := &waves.Release{Soaks: []time.Duration{10 * time.Minute, 10 * time.Minute}, Members: map[target.Key]waves.Member{}, Settled: true}
	for name, m := range members {
		r.Members[key(name)] = m
	}
	return r
}

// called returns the names of the targets that may be released.
func called(d waves.Decision) string {
	var names []string
	for key, may := range d.May {
		if may {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func waitsFor(d waves.Decision) string {
	var names []string
	for _, w := range d.Waiting {
		names = append(names, w.Key.Name)
	}
	return strings.Join(names, " ")
}

func TestReleasableTargets(t *testing.T) {
	const held, ready, failed, progressing = waves.Held, waves.Ready, waves.Failed, waves.Progressing
	second := waves.Progress{Done: 1}
	for name, tc := range map[string]struct {
		members        map[string]waves.Member
		progress       waves.Progress
		proceed        bool
		called, waits  string
		done           int
		fault          waves.FaultKind
		failed, isOver bool
	}{
		"the first wave alone": {
			members: map[string]waves.Member{"a": member(0, held), "b": member(1, held), "c": member(-1, held)}, called: "a", waits: "a"},
		"nothing while the first wave is on its way": {
			members: map[string]waves.Member{"a": member(0, progressing), "b": member(1, held)}, waits: "a"},
		"nothing of the next wave during the soak": {
			members: map[string]waves.Member{"a": member(0, ready), "b": member(1, held)}, progress: waves.Progress{ReadySince: noon.Add(-9 * time.Minute)}},
		"the next wave after the soak": {
			members:  map[string]waves.Member{"a": member(0, ready), "b": member(1, held), "c": member(-1, held)},
			progress: waves.Progress{ReadySince: noon.Add(-10 * time.Minute)}, called: "b", waits: "b", done: 1},
		"the rest last, without a soak": {
			members:  map[string]waves.Member{"a": member(0, ready), "b": member(1, ready), "c": member(-1, held)},
			progress: waves.Progress{Done: 1, ReadySince: noon.Add(-10 * time.Minute)}, called: "c", waits: "c", done: 2},
		"all over at once if nobody waits for the soak": {
			members: map[string]waves.Member{"a": member(0, ready), "b": member(1, ready)}, done: 3, isOver: true},
		"the next wave although one of this is applied once more": {
			members:  map[string]waves.Member{"a": member(0, waves.Rechecking), "b": member(1, held)},
			progress: waves.Progress{ReadySince: noon.Add(-time.Hour)}, called: "b", waits: "b", done: 1},
		"nothing while one that had failed is applied once more": {
			members:  map[string]waves.Member{"a": member(0, waves.Rechecking), "b": member(1, held)},
			progress: waves.Progress{ReadySince: noon.Add(-time.Hour), Failed: []target.Key{key("a")}}, waits: "a", failed: true},
		"not what others hold": {
			members: map[string]waves.Member{"a": member(0, waves.Blocked), "a2": member(0, held), "b": member(1, held)}, called: "a2", waits: "a a2"},
		"what is skipped holds nobody up": {
			members: map[string]waves.Member{"a": member(0, waves.Skipped), "b": member(1, held)}, progress: waves.Progress{ReadySince: noon.Add(-time.Hour)},
			called: "b", waits: "b", done: 1},
		"nothing after a failure in the wave": {
			members: map[string]waves.Member{"a": member(0, failed), "a2": member(0, held), "b": member(1, held)}, waits: "a a2", failed: true},
		"nothing after a failure in a wave before": {
			members: map[string]waves.Member{"a": member(0, failed), "b": member(1, held)}, progress: second, waits: "a b", done: 1, failed: true},
		"what fails in a later wave stops nothing": {
			members: map[string]waves.Member{"a": member(0, held), "b": member(1, failed)}, called: "a", waits: "a"},
		"what has stopped the release and is tried again": {
			members: map[string]waves.Member{"a": member(0, progressing), "a2": member(0, held), "b": member(1, held)}, progress: waves.Progress{Failed: []target.Key{key("a")}},
			waits: "a a2", failed: true},
		"the next wave if a person proceeds": {
			members: map[string]waves.Member{"a": member(0, failed), "a2": member(0, held), "b": member(1, held), "c": member(-1, held)},
			proceed: true, called: "a2 b", waits: "b", done: 1},
		"failures of excused waves stop nothing": {
			members:  map[string]waves.Member{"a": member(0, failed), "b": member(1, held)},
			progress: waves.Progress{Done: 1, Excused: 1}, called: "b", waits: "b", done: 1},
		"but those after them do": {
			members:  map[string]waves.Member{"a": member(0, failed), "b": member(1, failed), "c": member(-1, held)},
			progress: waves.Progress{Done: 1, Excused: 1}, waits: "b", done: 1, failed: true},
		"nothing if two waves match one": {
			members: map[string]waves.Member{"a": {Matches: 3}, "a2": member(0, held), "b": member(1, held)}, fault: waves.Overlap, waits: "a2"},
		"all the same if a person proceeds, the one with the last wave": {
			members: map[string]waves.Member{"a": {Matches: 3}, "a2": member(0, held), "b": member(1, held)}, proceed: true, called: "a2", waits: "a2"},
		"nothing if a wave is empty": {
			members: map[string]waves.Member{"a": member(0, held)}, fault: waves.Empty, waits: "a"},
		"all the same if a person has proceeded": {
			members: map[string]waves.Member{"a": member(0, held)}, progress: waves.Progress{Accepted: true}, called: "a", waits: "a"},
		"the next wave, without a soak of the empty one": {
			members: map[string]waves.Member{"b": member(1, held)}, progress: waves.Progress{Accepted: true}, called: "b", waits: "b", done: 1},
		"first what others need": {
			members: map[string]waves.Member{"a": member(0, held, "b"), "b": member(0, held, "c"), "c": member(0, held), "d": member(1, held)}, called: "c", waits: "a b c"},
		"then those that need it": {
			members: map[string]waves.Member{"a": member(0, held, "b"), "b": member(0, held, "c"), "c": member(0, ready), "d": member(1, held)}, called: "b", waits: "a b"},
		"what needs something of a later wave, of nobody or what is skipped": {
			members: map[string]waves.Member{"a": member(0, held, "d", "nobody", "e"), "d": member(1, held), "e": member(0, waves.Skipped)}, called: "a", waits: "a"},
		"nothing if some need each other": {
			members: map[string]waves.Member{"a": member(0, held, "b"), "b": member(0, held, "c"), "c": member(0, held, "b"), "d": member(1, held)},
			fault:   waves.Cycle, waits: "a b c"},
		"all the same if a person has proceeded with the cycle": {
			members:  map[string]waves.Member{"a": member(0, held, "b"), "b": member(0, held, "a"), "d": member(1, held)},
			progress: waves.Progress{Accepted: true}, called: "a b", waits: "a b"},
		"what is held again of a wave that is over": {
			members: map[string]waves.Member{"a": member(0, held), "b": member(1, ready), "c": member(-1, held)}, progress: second, called: "a", waits: "a", done: 1},
		"a dependency on a later wave that depends on it is no cycle": {
			members: map[string]waves.Member{"a": member(0, held, "b"), "b": member(1, held, "a")}, called: "a", waits: "a"},
		"a fault stops the targets that no wave matches": {
			members:  map[string]waves.Member{"a": {Matches: 3, Phase: ready}, "a2": member(0, ready), "c": member(-1, held)},
			progress: waves.Progress{Done: 2}, waits: "c", done: 2, fault: waves.Overlap},
		"a fault stops a wave of ready targets": {
			members: map[string]waves.Member{"a": {Matches: 3, Phase: ready}, "a2": member(0, ready)}, fault: waves.Overlap},
		"failed targets in the order in which they were reported": {
			members:  map[string]waves.Member{"a": member(0, failed), "a2": member(0, failed), "a3": member(0, failed), "b": member(1, held)},
			progress: waves.Progress{Failed: []target.Key{key("a3"), key("a2")}}, waits: "a3 a2 a", failed: true},
		"a failed dependency of an excused wave is ignored": {
			members:  map[string]waves.Member{"a": member(0, failed), "b": member(1, held, "a")},
			progress: waves.Progress{Done: 1, Excused: 1}, called: "b", waits: "b", done: 1},
		"a held dependency of an excused wave is released first": {
			members:  map[string]waves.Member{"a": member(0, held), "b": member(1, held, "a")},
			progress: waves.Progress{Done: 1, Excused: 1}, called: "a", waits: "b", done: 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := release(tc.members).Decide(tc.progress, tc.proceed, noon)
			fault := waves.FaultKind(0)
			if d.Fault != nil {
				fault = d.Fault.Kind
			}
			got := fmt.Sprint(called(d), "|", waitsFor(d), "|", d.Done, fault, len(d.Stops) > 0, d.Over)
			if want := fmt.Sprint(tc.called, "|", tc.waits, "|", tc.done, tc.fault, tc.failed, tc.isOver); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestSoakStartsOnceAllAreReady(t *testing.T) {
	members := map[string]waves.Member{"a": member(0, waves.Ready), "a2": member(0, waves.Progressing), "b": member(1, waves.Held)}
	d := release(members).Decide(waves.Progress{}, false, noon)
	if !d.ReadySince.IsZero() || !d.Again.IsZero() {
		t.Errorf("one is not ready: %+v", d)
	}
	members["a2"] = member(0, waves.Ready)
	d = release(members).Decide(d.Progress, false, noon)
	if !d.ReadySince.Equal(noon) || !d.Again.Equal(noon.Add(10*time.Minute)) {
		t.Errorf("all are ready: since %s, again at %s", d.ReadySince, d.Again)
	}
	members["a2"] = member(0, waves.Rechecking) // reconciled at its interval, so it has been ready since
	if d = release(members).Decide(d.Progress, false, noon.Add(time.Minute)); !d.ReadySince.Equal(noon) {
		t.Errorf("applied once more: since %s", d.ReadySince)
	}
	members["a2"] = member(0, waves.Failed)
	if d = release(members).Decide(d.Progress, false, noon.Add(2*time.Minute)); !d.ReadySince.IsZero() || len(d.Stops) != 1 {
		t.Errorf("failed: since %s, %v", d.ReadySince, d.Failed)
	}
	members["a2"] = member(0, waves.Ready)
	if d = release(members).Decide(d.Progress, false, noon.Add(3*time.Minute)); !d.ReadySince.Equal(noon.Add(3 * time.Minute)) {
		t.Errorf("repaired: since %s", d.ReadySince)
	}
}

// No wave ends and no soak begins until all targets have been evaluated.
func TestWaveEndsOnceAllMembersAreUpToDate(t *testing.T) {
	r := release(map[string]waves.Member{"a": member(0, waves.Ready), "b": member(1, waves.Held)})
	r.Settled = false
	if d := r.Decide(waves.Progress{ReadySince: noon.Add(-time.Hour)}, false, noon); d.Done != 0 || called(d) != "" {
		t.Errorf("%+v", d)
	}
}

// world is a release in which targets change at random.
type world struct {
	*waves.Release
	p waves.Progress
}

func newWorld(t *rapid.T) *world {
	n := rapid.IntRange(1, 4).Draw(t, "waves")
	w := &world{Release: &waves.Release{Members: map[target.Key]waves.Member{}, Settled: true}}
	for i := range n {
		w.Soaks = append(w.Soaks, time.Duration(rapid.IntRange(0, 3).Draw(t, "soak"))*time.Minute)
		w.Members[key(fmt.Sprint("first-of-", i))] = member(i, waves.Held)
	}
	names := slices.Sorted(maps.Keys(w.byName()))
	for i := range rapid.IntRange(0, 8).Draw(t, "targets") {
		m := member(rapid.IntRange(-1, n-1).Draw(t, "wave"), waves.Held)
		if rapid.Bool().Draw(t, "needs") { // only earlier targets, so that there is no cycle
			m.Needs = append(m.Needs, key(rapid.SampledFrom(names).Draw(t, "which")))
		}
		name := fmt.Sprintf("t%d", i)
		w.Members[key(name)] = m
		names = append(names, name)
	}
	return w
}

// byName returns the members by name.
func (w *world) byName() map[string]waves.Member {
	all := map[string]waves.Member{}
	for k, m := range w.Members {
		all[k.Name] = m
	}
	return all
}

func (w *world) waveOf(m waves.Member) int {
	for i := range w.Soaks {
		if m.Matches == 1<<i {
			return i
		}
	}
	return len(w.Soaks)
}

// TestWaveWaitsForEarlierWaves changes targets at random. A target may be called only while no target of its wave or an
// earlier one has failed, and after its dependencies are ready. The first target of a wave may be called only after all targets of earlier
// waves have been ready for the soak.
func TestWaveWaitsForEarlierWaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		now := noon
		allReady := map[int]time.Time{} // since when all targets of a wave and of earlier waves have been ready
		begun := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			for _, k := range w.sorted() {
				if m := w.Members[k]; m.Phase != waves.Held && rapid.IntRange(0, 2).Draw(t, "changes") == 0 {
					m.Phase = rapid.SampledFrom([]waves.Phase{waves.Progressing, waves.Rechecking, waves.Ready, waves.Ready, waves.Ready, waves.Failed}).Draw(t, "phase")
					w.Members[k] = m
				}
			}
			for i := range w.Soaks {
				if !w.readyUpTo(i) {
					delete(allReady, i)
				} else if _, ok := allReady[i]; !ok {
					allReady[i] = now
				}
			}
			d := w.Decide(w.p, false, now)
			for _, k := range w.sorted() {
				if !d.May[k] {
					continue
				}
				m := w.Members[k]
				wave := w.waveOf(m)
				w.expectCalled(t, k, m, wave)
				if wave > begun {
					if since, ok := allReady[wave-1]; !ok || now.Sub(since) < w.Soaks[wave-1] {
						t.Fatalf("%s of wave %d is called before those before were ready for their soak", k.Name, wave)
					}
				}
			}
			for k, may := range d.May {
				if m := w.Members[k]; may && rapid.Bool().Draw(t, "released") {
					begun = max(begun, w.waveOf(m))
					m.Phase = waves.Progressing
					w.Members[k] = m
				}
			}
			begun = max(begun, min(d.Done, len(w.Soaks)))
			w.p = d.Progress
		}
	})
}

func (w *world) sorted() []target.Key {
	return slices.SortedFunc(maps.Keys(w.Members), func(a, b target.Key) int { return strings.Compare(a.Name, b.Name) })
}

func (w *world) readyUpTo(wave int) bool {
	for _, m := range w.Members {
		if w.waveOf(m) <= wave && m.Phase != waves.Ready && m.Phase != waves.Rechecking {
			return false
		}
	}
	return true
}

// expectCalled fails the test unless a target may be called: no earlier target has failed, and its dependencies are ready.
func (w *world) expectCalled(t *rapid.T, k target.Key, m waves.Member, wave int) {
	for other, o := range w.Members {
		if w.waveOf(o) <= wave && o.Phase == waves.Failed {
			t.Fatalf("%s is called although %s has failed", k.Name, other.Name)
		}
	}
	for _, need := range m.Needs {
		if o := w.Members[need]; w.waveOf(o) <= wave && o.Phase != waves.Ready && o.Phase != waves.Rechecking {
			t.Fatalf("%s is called although it needs %s", k.Name, need.Name)
		}
	}
}

// A release ends if all released targets become ready.
func TestReleaseEndsIfAllBecomeReady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		now := noon
		for range 100 {
			d := w.Decide(w.p, false, now)
			if w.p = d.Progress; d.Over {
				return
			}
			for k, m := range w.Members {
				if m.Phase == waves.Progressing || d.May[k] {
					m.Phase++ // progressing, then rechecking, then ready
					if m.Phase == waves.Blocked {
						m.Phase = waves.Progressing
					}
					w.Members[k] = m
				} else if m.Phase == waves.Rechecking {
					m.Phase = waves.Ready
					w.Members[k] = m
				}
			}
			now = now.Add(time.Minute)
		}
		t.Fatalf("it does not end: %+v", w.p)
	})
}

// Each request continues by one wave, and all targets are released in the end. The first wave is empty.
func TestRepeatedProceedReleasesAll(t *testing.T) {
	r := release(map[string]waves.Member{"a": {Matches: 3, Phase: waves.Held}, "b": member(1, waves.Failed), "c": member(-1, waves.Blocked)})
	var p waves.Progress
	for i, want := range []string{"1 true", "2 true", "3 true", "3 true"} {
		d := r.Decide(p, true, noon)
		if got := fmt.Sprint(d.Done, " ", d.Accepted); got != want {
			t.Errorf("step %d: %s, want %s", i, got, want)
		}
		p = d.Progress
	}
	if d := r.Decide(p, false, noon); !d.Over || called(d) != "a" {
		t.Errorf("%+v", d)
	}
}

func TestLongChainIsNoCycle(t *testing.T) {
	members := map[string]waves.Member{"t0": member(0, waves.Held), "z": member(1, waves.Held)}
	for i := range 20000 {
		members[fmt.Sprint("t", i+1)] = member(0, waves.Held, fmt.Sprint("t", i))
	}
	if d := release(members).Decide(waves.Progress{}, false, noon); d.Fault != nil || called(d) != "t0" {
		t.Errorf("%+v, %s", d.Fault, called(d))
	}
	members["t0"] = member(0, waves.Held, "t20000")
	if d := release(members).Decide(waves.Progress{}, false, noon); d.Fault == nil || len(d.Fault.Targets) != 20001 {
		t.Errorf("%+v", d.Fault)
	}
}

func TestNoReleaseIsNeededIfNothingIsHeld(t *testing.T) {
	for phase, want := range map[waves.Phase]bool{
		waves.Held: true, waves.Blocked: true, waves.Progressing: false, waves.Rechecking: false, waves.Ready: false, waves.Failed: false, waves.Skipped: false,
	} {
		r := release(map[string]waves.Member{"a": member(0, waves.Ready), "b": member(1, phase)})
		if got := r.IsNeeded(); got != want {
			t.Errorf("phase %d: %t", phase, got)
		}
	}
}

func TestReadyCountsTargetsOfCurrentWave(t *testing.T) {
	members := map[string]waves.Member{"a": member(0, waves.Ready), "b": member(1, waves.Ready), "b2": member(1, waves.Skipped),
		"b3": member(1, waves.Progressing), "c": member(-1, waves.Held)}
	if d := release(members).Decide(waves.Progress{Done: 1}, false, noon); d.Ready != 2 {
		t.Errorf("%d targets are ready, want 2", d.Ready)
	}
}
