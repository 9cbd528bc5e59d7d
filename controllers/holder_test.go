package controllers

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fluxcd/gating-controller/internal/target"
)

func TestHowManyTargetsOfAGateAreWrittenAtOnce(t *testing.T) {
	for name, tc := range map[string]struct{ atOnce, targets, want int }{
		"as many as it says":         {3, 10, 3},
		"sixteen by default":         {0, 40, 16},
		"all if there are but a few": {3, 2, 2},
		"none":                       {3, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var done []int
				running, release := 0, make(chan struct{})
				count := func(change int) int {
					mu.Lock()
					defer mu.Unlock()
					running += change
					return running
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					(&GateReconciler{WritesAtOnce: tc.atOnce}).each(slices.All(make([]*target.Object, tc.targets)), func(i int, _ *target.Object) {
						count(1)
						<-release
						count(-1)
						mu.Lock()
						defer mu.Unlock()
						done = append(done, i)
					})
				}()
				for left := tc.targets; left > 0; left-- {
					synctest.Wait()
					if got, want := count(0), min(left, tc.want); got != want {
						t.Fatalf("%d of %d that are left are written at once, want %d", got, left, want)
					}
					release <- struct{}{}
				}
				<-ended
				slices.Sort(done)
				for i := range tc.targets {
					if i >= len(done) || done[i] != i {
						t.Fatalf("done are %v", done)
					}
				}
			})
		})
	}
}
