package chaos

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// step is one action of a walk. All of its randomness comes from its seed, so that it does not depend on responses of the cluster.
type step struct {
	do   string
	seed uint64
}

func (s step) random() *rand.Rand { return rand.New(rand.NewPCG(s.seed, 0)) }

// weights are the relative frequencies of the actions. Actions that may restart a replica are not in every stretch, because a replica that
// starts reconciles everything and makes up for what it missed.
var weights = []struct {
	do     string
	weight int
	again  bool
}{
	{"change a gate", 18, false}, {"delete a gate", 4, false}, {"delete a gate by force", 3, false}, {"delete a closed gate", 6, false},
	{"suspend a gate", 2, false},
	{"request", 24, false}, {"Git strips requests", 10, false}, {"Git restores a request", 4, false}, {"restore an older request", 4, false}, {"write an invalid request", 2, false},
	{"create an exception", 10, false}, {"delete an exception", 5, false},
	{"flux suspend", 14, false}, {"flux resume", 14, false}, {"resume a target of a lenient gate", 8, false}, {"kubectl edit", 8, false},
	{"Git applies", 16, false}, {"alice applies", 4, false}, {"Flux reports", 12, false},
	{"create a target", 14, false}, {"delete a target", 5, false}, {"label a target", 12, false}, {"name gates", 8, false},
	{"set a renewal", 2, false}, {"cert-manager reconciles", 10, false}, {"approach a margin", 5, false},
	{"wait", 12, false}, {"remove a definition", 4, false}, {"race with a gate", 10, false}, {"one gate opens, one closes", 5, false}, {"move a target between gates", 4, false},
	{"kill a replica", 9, true}, {"kill both replicas", 4, true}, {"stop a replica", 6, true}, {"pause the leader", 4, true},
	{"kill the API server", 3, true}, {"kill etcd", 3, true}, {"pause the API server", 3, true}, {"start a burst of faults", 8, true}, {"cut a connection", 5, true},
}

// plan returns the steps of a walk. In every second stretch, the replicas are not restarted.
func plan(seed uint64, n int) []step {
	random := rand.New(rand.NewPCG(seed, seed))
	steps := make([]step, n)
	for i := range steps {
		steps[i] = oneStep(random, (i/stretch)%2 == 0)
	}
	return steps
}

func oneStep(random *rand.Rand, again bool) step {
	total := 0
	for _, w := range weights {
		if again || !w.again {
			total += w.weight
		}
	}
	at := random.IntN(total)
	for _, w := range weights {
		if w.again && !again {
			continue
		}
		if at -= w.weight; at < 0 {
			return step{do: w.do, seed: random.Uint64()}
		}
	}
	panic("the weights do not add up")
}

func TestPlanDependsOnSeedOnly(t *testing.T) {
	if one, other := fmt.Sprint(plan(7, 100)), fmt.Sprint(plan(7, 100)); one != other {
		t.Errorf("%s\n%s", one, other)
	}
	if one, other := fmt.Sprint(plan(7, 100)), fmt.Sprint(plan(8, 100)); one == other {
		t.Error("two seeds make the same plan")
	}
	for _, s := range plan(7, 2000) {
		if actions[s.do] == nil {
			t.Fatalf("no action %q", s.do)
		}
	}
}
