package gate

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/rollout"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// gateWithWaves returns a Gate that opened at start and releases its targets in waves with these names.
func gateWithWaves(names ...string) *v1alpha1.Gate {
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "production"}, Spec: v1alpha1.GateSpec{Release: &v1alpha1.ReleasePolicy{}}}
	for _, name := range names {
		g.Spec.Release.Waves = append(g.Spec.Release.Waves, v1alpha1.ReleaseWave{Name: name})
	}
	g.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(start), State: v1alpha1.StateOpened}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionTrue}}
	return g
}

// app returns the key of a Kustomization.
func app(name string) target.Key {
	return target.Key{
		GroupKind:      schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"},
		NamespacedName: types.NamespacedName{Namespace: "shop", Name: name},
	}
}

// The request is recorded a minute after the Gate opened, and may be handled long after that.
func TestProceedCounts(t *testing.T) {
	const malformed = "it must be TIME[,wave=NAME], such as 2026-12-19T12:00:00Z,wave=canary"
	for value, want := range map[string]string{
		"2026-11-23T12:00:30Z":                   "",
		"2026-11-23T12:00:30Z,wave=one":          "",
		"2026-11-23T12:02:00Z":                   "", // the clock of the requester is ahead
		"2026-11-23T12:00:00Z":                   "",
		"now":                                    malformed,
		" ":                                      malformed,
		" 2026-11-23T12:00:30Z":                  malformed,
		"2026-11-23T12:00:30Z,wave=one\n":        malformed,
		"2026-11-23T12:00:30Z,wave=one,":         malformed,
		"2026-11-23T12:00:30Z,wave=one x":        malformed,
		"2026-11-23T12:00:30Z,wave=":             malformed,
		"2026-11-23T12:00:30Z,by=alice":          malformed,
		"2026-11-23T12:00:30Z/1h,wave=one":       malformed,
		"2026-11-23T12:00:30Z,wave=one,by=alice": malformed,
		"2026-11-23T12:00:30Z,wave=one,wave=one": malformed,
		"2026-11-23T12:00:30Z,wave=two":          "the current wave is no longer the requested one: one",
		"2026-11-23T11:59:59Z":                   "it was requested before the gate opened",
		"2026-11-23T12:02:01Z":                   "it is in the future",
	} {
		status := &v1alpha1.ReleaseStatus{
			Waves:   &v1alpha1.WavesStatus{Current: "one"},
			Proceed: &v1alpha1.ProceedRequest{Value: value, RequestedBy: "alice", RecordedAt: metav1.NewMicroTime(start.Add(time.Minute))},
		}
		p := takeProceed(gateWithWaves("one", "two"), status)
		if p == nil || p.err != want || p.RequestedBy != "alice" || status.Proceed != nil || status.LastHandledProceed != value || (status.Waves.ProceededAt != nil) != (want == "") {
			t.Errorf("%q: %+v, status %+v, want %q", value, p, status, want)
		}
		if again := takeProceed(gateWithWaves("one", "two"), status); again != nil {
			t.Errorf("%q: handled twice", value)
		}
	}
}

// Flux may restore an older request from Git.
func TestProceedIsLaterThanLastCounted(t *testing.T) {
	last := metav1.NewMicroTime(start.Add(time.Minute))
	for after, counts := range map[time.Duration]bool{-time.Second: false, 0: false, time.Second: true} {
		status := &v1alpha1.ReleaseStatus{Waves: &v1alpha1.WavesStatus{ProceededAt: &last}, Proceed: &v1alpha1.ProceedRequest{
			Value: last.Add(after).Format(time.RFC3339), RecordedAt: metav1.NewMicroTime(start.Add(time.Hour)),
		}}
		if p := takeProceed(gateWithWaves("one"), status); (p.err == "") != counts {
			t.Errorf("%s after it: %q", after, p.err)
		}
	}
}

func TestReasonsForStoppedRelease(t *testing.T) {
	const proceed = "or until a user runs kubectl gate proceed production -n shop"
	failed := func(name string) waves.Waiting {
		return waves.Waiting{Key: app(name), Member: waves.Member{Phase: waves.Failed, Message: "path not found."}}
	}
	for name, tc := range map[string]struct {
		decision waves.Decision
		want     gate.Stop
	}{
		"nothing": {waves.Decision{}, gate.Stop{}},
		"a failure": {waves.Decision{Stops: []waves.Waiting{failed("a")}}, gate.Stop{Reason: "WaveFailed",
			Message: "wave one: Kustomization shop/a has failed: path not found. Nothing more is released until it is ready, " + proceed}},
		"two failures": {waves.Decision{Progress: waves.Progress{Done: 1}, Stops: []waves.Waiting{failed("a"), failed("b")}}, gate.Stop{Reason: "WaveFailed",
			Message: "wave two: Kustomization shop/a (and 1 more) has failed: path not found. Nothing more is released until it is ready, " + proceed}},
		"two waves match a target": {waves.Decision{Fault: &waves.Fault{Kind: waves.Overlap, Waves: []int{0, 1}, Targets: []target.Key{app("a")}}}, gate.Stop{Reason: "InvalidWaves",
			Message: "waves one and two both match Kustomization shop/a: change its labels or the waves. Nothing more is released until that is fixed, " + proceed}},
		"an empty wave": {waves.Decision{Fault: &waves.Fault{Kind: waves.Empty, Waves: []int{1}}}, gate.Stop{Reason: "InvalidWaves",
			Message: "wave two matches no target: compare its labels with those of the targets, or remove it. Nothing more is released until that is fixed, " + proceed}},
		"a cycle": {waves.Decision{Fault: &waves.Fault{Kind: waves.Cycle, Targets: []target.Key{app("a"), app("b")}}}, gate.Stop{Reason: "InvalidWaves",
			Message: "targets depend on each other in a cycle: Kustomization shop/a, Kustomization shop/b, Kustomization shop/a: change their spec.dependsOn. Nothing more is released until that is fixed, " + proceed}},
	} {
		if got := releaseStop(gateWithWaves("one", "two"), tc.decision); got != tc.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, tc.want)
		}
	}
}

// After a restart, the progress is read from the status.
func TestStatusHasReleaseProgress(t *testing.T) {
	g, failing := gateWithWaves("one", "two"), waves.Waiting{Key: app("a"), Member: waves.Member{Phase: waves.Failed, Message: "no"}}
	members := map[target.Key]waves.Member{app("a"): {}, app("b"): {}}
	for name, p := range map[string]waves.Progress{
		"at first":       {},
		"during a soak":  {ReadySince: start.Add(time.Second)},
		"a failure":      {Done: 1, Failed: []target.Key{app("a")}},
		"past a failure": {Done: 2, Excused: 1},
		"past a fault":   {Done: 1, Accepted: true},
		"over":           {Done: 3},
	} {
		d := waves.Decision{Progress: p, Over: p.Done == 3, Sizes: []int{2, 3, 4}, Ready: 1}
		if len(p.Failed) > 0 {
			d.Waiting = []waves.Waiting{failing, {Key: app("b"), Member: waves.Member{Phase: waves.Held}}}
		}
		w := &v1alpha1.WavesStatus{}
		recordWaves(g, w, d)
		if got := waveProgress(g, w, members); !reflect.DeepEqual(got, p) {
			t.Errorf("%s: got %+v, want %+v", name, got, p)
		}
		if got, want := fmt.Sprint(w.Current, w.Ready, w.Total, len(w.Done)), fmt.Sprint("one", 1, 2, 0); name == "at first" && got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// Finished waves count only as far as they match the waves of the spec.
func TestProgressOfChangedWaves(t *testing.T) {
	since := metav1.NewMicroTime(start)
	for name, tc := range map[string]struct {
		spec  string
		done  int
		ready bool
	}{
		"unchanged":           {"one two", 1, true},
		"another first wave":  {"first two", 0, false},
		"another second wave": {"one second", 1, false},
		"one wave less":       {"two", 0, false},
		"one wave more":       {"one two three", 1, true},
	} {
		w := &v1alpha1.WavesStatus{Done: []string{"one"}, Current: "two", ReadySince: &since}
		if p := waveProgress(gateWithWaves(strings.Fields(tc.spec)...), w, nil); p.Done != tc.done || p.ReadySince.IsZero() == tc.ready {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// stoppedBy returns a Gate whose release has stopped for a reason. An empty reason means that it continues.
func stoppedBy(reason, message, name string) *v1alpha1.Gate {
	g := gateWithWaves("one", "two")
	if reason != "" {
		g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ReleaseStoppedCondition, Status: metav1.ConditionTrue, Reason: reason, Message: message})
		g.Status.Release = &v1alpha1.ReleaseStatus{Waves: &v1alpha1.WavesStatus{WaitingFor: []v1alpha1.WaitingTarget{{Kind: "Kustomization", Namespace: "shop", Name: name}}}}
	}
	return g
}

// The cause of a stop is announced once, although the message of a failed target changes each time Flux tries again.
func TestEventsWhenReleaseStopsAndContinues(t *testing.T) {
	closed := stoppedBy("", "", "")
	closed.Status.Conditions[0].Status = metav1.ConditionFalse
	const isFailed, isInvalid = v1alpha1.WaveFailedReason, v1alpha1.InvalidWavesReason
	for name, tc := range map[string]struct {
		before, after *v1alpha1.Gate
		proceeded     bool
		want, on      string
	}{
		"it stops":             {stoppedBy("", "", ""), stoppedBy(isFailed, "wave one", "a"), false, "Warning ReleaseStopped: Wave one", "a"},
		"another message":      {stoppedBy(isFailed, "wave one", "a"), stoppedBy(isFailed, "wave one again", "a"), false, "", ""},
		"another target":       {stoppedBy(isFailed, "wave one", "a"), stoppedBy(isFailed, "wave one", "b"), false, "Warning ReleaseStopped: Wave one", "b"},
		"the waves are wrong":  {stoppedBy("", "", ""), stoppedBy(isInvalid, "wave tow", ""), false, "Warning ReleaseStopped: Wave tow", ""},
		"another fault":        {stoppedBy(isInvalid, "wave tow", ""), stoppedBy(isInvalid, "wave thre", ""), false, "Warning ReleaseStopped: Wave thre", ""},
		"it continues":         {stoppedBy(isFailed, "wave one", "a"), stoppedBy("", "", ""), false, "Normal ReleaseContinued: The release is no longer stopped and continues.", ""},
		"a user has proceeded": {stoppedBy(isFailed, "wave one", "a"), stoppedBy("", "", ""), true, "", ""},
		"the gate has closed":  {stoppedBy(isFailed, "wave one", "a"), closed, false, "", ""},
	} {
		got, on := "", ""
		for _, e := range stopEvents(tc.before, tc.after, tc.proceeded) {
			got += e.Type + " " + e.Reason + ": " + e.Message
			if e.target != nil {
				on = e.target.Name
			}
		}
		if got != tc.want || on != tc.on {
			t.Errorf("%s: got %q on %q, want %q on %q", name, got, on, tc.want, tc.on)
		}
	}
}

func TestWaveEvents(t *testing.T) {
	by := v1alpha1.ProceedRequest{Value: "v", RequestedBy: "alice", Message: "it is a flake"}
	sizes := []int{2, 2, 1}
	for name, tc := range map[string]struct {
		d    waveDecision
		want string
	}{
		"no wave ends":   {waveDecision{}, ""},
		"a wave ends":    {waveDecision{Decision: waves.Decision{Progress: waves.Progress{Done: 1}, Sizes: sizes}}, "Wave one is released, 2 targets are ready. Next is wave two with 2 targets."},
		"the last ends":  {waveDecision{before: waves.Progress{Done: 2}, Decision: waves.Decision{Progress: waves.Progress{Done: 3}, Sizes: sizes}}, "Wave the rest is released, 1 targets are ready."},
		"an empty one":   {waveDecision{Decision: waves.Decision{Progress: waves.Progress{Done: 1}, Sizes: []int{0, 2, 1}}}, ""},
		"past a failure": {waveDecision{Decision: waves.Decision{Progress: waves.Progress{Done: 1, Excused: 1}, Sizes: sizes}, proceed: &proceed{by, ""}}, "The release continues without waiting for wave one, by alice: it is a flake"},
		"past a fault":   {waveDecision{Decision: waves.Decision{Progress: waves.Progress{Accepted: true}, Sizes: sizes}, proceed: &proceed{by, ""}}, "The release continues with its waves as they are, by alice: it is a flake"},
		"refused":        {waveDecision{Decision: waves.Decision{Sizes: sizes}, proceed: &proceed{by, "it is in the future"}}, `annotation proceed.gate.fluxcd.io/requestedAt: "v" changes nothing: it is in the future`},
		"all released":   {waveDecision{before: waves.Progress{Done: 3}, Decision: waves.Decision{Progress: waves.Progress{Done: 3}}, proceed: &proceed{by, ""}}, `annotation proceed.gate.fluxcd.io/requestedAt: "v" changes nothing: no release is in progress`},
	} {
		var got []string
		for _, e := range progressEvents([]string{"one", "two", "the rest"}, &tc.d) {
			if warns := e.Reason == v1alpha1.ProceedRefusedReason; warns != (e.Type == events.Warning) {
				t.Errorf("%s: %+v", name, e)
			}
			got = append(got, e.Message)
		}
		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// A Gate without waves has no release in waves that could continue.
func TestRecordsAreDeletedWithWaves(t *testing.T) {
	status := &v1alpha1.ReleaseStatus{Released: 2, Waves: &v1alpha1.WavesStatus{Current: "one"}, Proceed: &v1alpha1.ProceedRequest{Value: "x"}}
	for _, before := range []*v1alpha1.ReleaseStatus{status, {Released: 2, Proceed: status.Proceed}} {
		got := releaser{rollouts: &rollout.Rollouts{}}.withoutWaves(&v1alpha1.Gate{}, released{status: before})
		equal(t, got.status, &v1alpha1.ReleaseStatus{Released: 2})
	}
}
