package waves

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// ofEach is the number of Kustomizations in each wave, and soak the time for which each must be ready.
	ofEach = 20
	soak   = 5 * time.Second
	// patience is how long tests watch for changes that must not happen.
	patience = 5 * time.Second
)

var names = []string{"canary", "eu", "us"}

// held returns the Gate production that holds all Kustomizations.
func (w *world) held(n int64, perMinute int32, soak time.Duration, waves ...string) *v1alpha1.Gate {
	w.Helper()
	policy := &v1alpha1.ReleasePolicy{PerMinute: perMinute}
	for _, name := range waves {
		policy.Waves = append(policy.Waves, v1alpha1.ReleaseWave{Name: name, MatchLabels: map[string]string{"wave": name}, Soak: &v1alpha1.Duration{Duration: soak}})
	}
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}}, Release: policy,
	})
	w.Eventually("all targets are held", func() error {
		if err := w.TryRead(g); err != nil {
			return err
		}
		if c := g.Status.Targets; c == nil || c.Held != n || c.Pending > 0 {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	return g
}

// allApplied waits until all Kustomizations have applied a revision and are ready.
func (w *world) allApplied(revision string, names []string) {
	w.Helper()
	w.Eventually("all have applied "+revision, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		last := map[string]version{}
		for _, s := range w.observed {
			last[s.name] = s
		}
		for _, name := range names {
			if s := last[name]; s.revision != revision || s.ready != target.Ready && s.ready != target.Rechecking {
				return fmt.Errorf("%s: %+v", name, s)
			}
		}
		return nil
	})
}

// Three waves have twenty Kustomizations each, and one of them breaks. The controller is killed during the first wave, during its soak,
// while the release is stopped, and during the last wave.
func TestThreeWavesWithFailureAndKilledController(t *testing.T) {
	w := newWorld(t)
	var all []string
	waveOf := map[string]string{}
	for _, wave := range append(slices.Clone(names), "") {
		n := ofEach
		if wave == "" {
			n = 2 // targets without a wave
		}
		for i := range n {
			name := fmt.Sprintf("%s-%02d", strings.TrimPrefix(wave+"-app", "-"), i)
			all = append(all, name)
			waveOf[name] = wave
		}
	}
	w.publish("v1", all...)
	w.follow()
	for _, name := range all {
		w.kustomization(name, waveOf[name], func(spec map[string]any) {
			if waveOf[name] == "canary" { // these are also applied again during the soak
				spec["interval"] = "10s"
			}
		})
	}
	w.allApplied("v1", all)
	g := w.held(int64(len(all)), 600, soak, names...)

	const broken = "eu-app-07"
	w.publish("v2", slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == broken })...)
	w.mu.Lock()
	w.observed = nil
	w.mu.Unlock()
	w.open(g)

	w.Eventually("the first wave is in progress", func() error { return w.atLeast("canary", 3) })
	w.restart()
	w.waits(g, "the first wave is ready", func(_ *v1alpha1.Gate, s *v1alpha1.WavesStatus) bool {
		return s.Current == "canary" && s.ReadySince != nil
	})
	since := g.Status.Release.Waves.ReadySince
	w.restart()
	w.waits(g, "the second wave stops at the broken target", func(g *v1alpha1.Gate, s *v1alpha1.WavesStatus) bool {
		return s.Current == "eu" && conditions.IsTrue(g, v1alpha1.ReleaseStoppedCondition)
	})
	if message := conditions.GetMessage(g, v1alpha1.ReleaseStoppedCondition); !strings.Contains(message, "Kustomization "+w.Namespace+"/"+broken+" has failed") {
		t.Error(message)
	}
	stopped := w.released("eu")
	w.restart()
	w.Throughout(patience, "the release stays stopped", func() error {
		w.Read(g)
		if n := w.released("eu"); n > stopped+1 || w.released("us") > 0 || !conditions.IsTrue(g, v1alpha1.ReleaseStoppedCondition) {
			return fmt.Errorf("%d released of eu, %d before, %d of us, %+v", n, stopped, w.released("us"), g.Status.Conditions)
		}
		return nil
	})
	w.publish("v3", all...)
	w.Eventually("the third wave is in progress", func() error { return w.atLeast("us", 3) })
	w.restart()
	w.waits(g, "all waves are released", func(g *v1alpha1.Gate, s *v1alpha1.WavesStatus) bool {
		return s.Current == "" && slices.Equal(s.Done, []string{"canary", "eu", "us", "the rest"}) && g.Status.Targets.Held == 0
	})
	w.allApplied("v3", all)
	w.expectOrder(waveOf, since.Time)
}

// atLeast returns an error unless some targets of a wave are released.
func (w *world) atLeast(wave string, n int) error {
	if released := w.released(wave); released < n {
		return fmt.Errorf("%d are released", released)
	}
	return nil
}

// expectOrder expects that no Kustomization was released before all of the earlier waves had been ready for the soak after their release.
// The first wave has been ready since an instant.
func (w *world) expectOrder(waveOf map[string]string, since time.Time) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	released, ready := map[string]bool{}, map[string]bool{}
	began := map[string]time.Time{}
	before := map[string][]string{"eu": {"canary"}, "us": {"canary", "eu"}, "": names}
	for _, s := range w.observed {
		if s.suspended {
			if released[s.name] {
				w.Errorf("%s was held again", s.name)
			}
			continue
		}
		if released[s.name] {
			ready[s.name] = ready[s.name] || s.ready == target.Ready && s.revision != "v1"
			continue
		}
		released[s.name] = true
		if _, ok := began[s.wave]; !ok {
			began[s.wave] = s.at
		}
		for name, wave := range waveOf {
			if slices.Contains(before[s.wave], wave) && !ready[name] {
				w.Errorf("%s was released before %s was ready", s.name, name)
			}
		}
	}
	if len(released) != len(waveOf) {
		w.Errorf("%d of %d targets were released", len(released), len(waveOf))
	}
	if soaked := began["eu"].Sub(since); soaked < soak-500*time.Millisecond { // observed when it is stored, not when it is decided
		w.Errorf("the second wave began %s after the first one was ready", soaked)
	}
}

// A target that does not become healthy stops the release, too, and a user requests to proceed.
func TestProceedContinuesRelease(t *testing.T) {
	w := newWorld(t)
	all := []string{"canary-app", "eu-app", "us-app"}
	w.publish("v1", all...)
	w.follow()
	for i, name := range all {
		w.kustomization(name, names[i], func(spec map[string]any) { spec["wait"] = true })
	}
	w.allApplied("v1", all)
	g := w.held(3, 0, time.Hour, names...)
	deployment := fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: canary, namespace: %s}
spec:
  selector: {matchLabels: {app: canary}}
  template:
    metadata: {labels: {app: canary}}
    spec: {containers: [{name: canary, image: canary}]}
`, w.Namespace) // nothing runs its Pods
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("app"), "v2", map[string]string{
		"canary-app/app.yaml": deployment, "eu-app/app.yaml": w.configMap("eu-app", "v2"), "us-app/app.yaml": w.configMap("us-app", "v2"),
	}))
	w.open(g)
	w.waits(g, "the release stops", func(g *v1alpha1.Gate, s *v1alpha1.WavesStatus) bool {
		return conditions.IsTrue(g, v1alpha1.ReleaseStoppedCondition) && s.Current == "canary" && s.WaitingFor[0].Name == "canary-app"
	})
	proceed := func() {
		w.Annotate(g, v1alpha1.ProceedRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	}
	proceed()
	w.waits(g, "the second wave is ready and soaked", func(g *v1alpha1.Gate, s *v1alpha1.WavesStatus) bool {
		return s.Current == "eu" && s.ReadySince != nil && s.ProceededPast == "canary" && !conditions.Has(g, v1alpha1.ReleaseStoppedCondition)
	})
	if !harness.Suspended(w.app("us-app")) {
		t.Error("the third wave is released")
	}
	proceed()
	w.waits(g, "all targets are released", func(g *v1alpha1.Gate, s *v1alpha1.WavesStatus) bool {
		return s.Current == "" && g.Status.Targets.Held == 0
	})
}
