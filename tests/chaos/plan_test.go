package chaos

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// step is one thing that happens. All that is random about it comes from its seed, so
// that what the cluster answers has no part in it.
type step struct {
	do   string
	seed uint64
}

func (s step) random() *rand.Rand { return rand.New(rand.NewPCG(s.seed, 0)) }

// weights are how often each thing happens, relative to the others.
var weights = []struct {
	do     string
	weight int
}{
	{"change a gate", 18}, {"delete a gate", 5}, {"delete a gate by force", 3}, {"suspend a gate", 2},
	{"request", 24}, {"Git strips requests", 10}, {"Git puts a request back", 4}, {"nonsense is requested", 2},
	{"create an exception", 10}, {"delete an exception", 5},
	{"flux suspend", 14}, {"flux resume", 14}, {"kubectl edit", 8}, {"Git applies", 16}, {"alice applies", 4},
	{"create a target", 14}, {"delete a target", 5}, {"label a target", 8}, {"name gates", 8},
	{"somebody sets a renewal", 2}, {"cert-manager looks", 10},
	{"wait", 14}, {"a definition vanishes", 2},
	{"kill a replica", 6}, {"kill both replicas", 3}, {"stop a replica", 4}, {"pause the leader", 2},
	{"kill the API server", 2}, {"kill etcd", 2}, {"faults burst", 5}, {"cut a line", 3}, {"race with a gate", 10},
}

// plan returns the steps of a walk.
func plan(seed uint64, n int) []step {
	random := rand.New(rand.NewPCG(seed, seed))
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	steps := make([]step, n)
	for i := range steps {
		at := random.IntN(total)
		for _, w := range weights {
			if at -= w.weight; at < 0 {
				steps[i] = step{do: w.do, seed: random.Uint64()}
				break
			}
		}
	}
	return steps
}

func TestAPlanDependsOnTheSeedAlone(t *testing.T) {
	if one, other := fmt.Sprint(plan(7, 100)), fmt.Sprint(plan(7, 100)); one != other {
		t.Errorf("%s\n%s", one, other)
	}
	if one, other := fmt.Sprint(plan(7, 100)), fmt.Sprint(plan(8, 100)); one == other {
		t.Error("two seeds make the same plan")
	}
	for _, s := range plan(7, 2000) {
		if actions[s.do] == nil {
			t.Fatalf("nobody knows how to %s", s.do)
		}
	}
}
