package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestPassOlderThanAllRecordedOnesIsNoChange(t *testing.T) {
	var passes Passes
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	granted := func(minute int) verdict.Pass {
		return verdict.Pass{Value: fmt.Sprint(minute), Since: start.Add(time.Duration(minute) * time.Minute)}
	}
	for minute := 1; minute <= v1alpha1.MaxHistory/2; minute++ {
		if !passes.Record("gate", target.Key{}, granted(minute)) {
			t.Errorf("pass %d is no change", minute)
		}
	}
	if passes.Record("gate", target.Key{}, granted(0)) {
		t.Error("a pass that is evicted immediately is a change")
	}
	if got := passes.Entries("gate"); len(got) != v1alpha1.MaxHistory/2 || !got[0].At.Time.Equal(granted(1).Since) {
		t.Errorf("got %d entries from %v on", len(got), got[0].At)
	}
}
