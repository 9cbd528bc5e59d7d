package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// walks are the lengths of the random walks. Each step is checked like the steps of the cases.
const walks, walkSteps = 2, 20

func TestInterplayOfRandomSteps(t *testing.T) {
	for seed := range uint64(walks) {
		for name, s := range map[string][]setting{"enforced": nil, "respected": {respecting}} {
			t.Run(fmt.Sprintf("%s-%d", name, seed), func(t *testing.T) {
				t.Parallel()
				w := newFleet(t, s...)
				w.newGate("freeze")
				random := rand.New(rand.NewPCG(seed, seed))
				for range walkSteps {
					w.anything(random)
				}
			})
		}
	}
}

// anything performs a random step.
func (w *fleet) anything(random *rand.Rand) {
	w.Helper()
	of := func(choices ...string) string { return choices[random.IntN(len(choices))] }
	gate, suspend := of("production", "freeze"), of("", "true", "true", "false")
	steps := []func(){
		func() { w.close(gate) }, func() { w.close(gate) }, func() { w.close(gate) },
		func() { w.open(gate) }, func() { w.open(gate) }, func() { w.open(gate) },
		w.parentReconciles, w.parentReconciles,
		func() { w.git(suspend) }, func() { w.gitWithMore(suspend) },
		func() { w.openOnly(gate) },
		func() {
			if !slices.Contains(w.closed, w.Namespace+"/"+gate) { // otherwise, timing determines whether a resumed app is held again
				w.closeOnly(gate)
			}
		},
		func() { w.deleteGate(gate); w.newGate(gate) },
	}
	if w.exists {
		steps = append(steps, w.fluxSuspend, w.fluxSuspend, w.fluxResume, w.fluxResume, w.deleteApp,
			func() { w.kubectlPatch(suspend) })
		if w.value != "false" { // otherwise the API server reports a conflict
			steps = append(steps, func() { w.applyAs(alice) })
		}
	}
	steps[random.IntN(len(steps))]()
}
