package controllers

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/fluxcd/gating-controller/controllers/calendars"
	"github.com/fluxcd/gating-controller/controllers/events"
	gatecontroller "github.com/fluxcd/gating-controller/controllers/gate"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/controllers/rollout"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// memory is the state of the controllers in memory. After a restart, everything is reconciled once.
type memory struct {
	tally      *summary.Summary
	turns      *rollout.Turns
	book       *rollout.Book
	versions   *ownwrites.Versions[types.NamespacedName]
	targets    *ownwrites.Versions[target.Key]
	gates      *gatecontroller.State
	watcher    *view.DependencyReader
	calendar   *calendars.Reader
	news       *events.Recorder
	appliers   *gatecontroller.Appliers
	background *gatecontroller.Background
	passes     *rollout.Passes
}

func newMemory() *memory {
	return &memory{
		tally: &summary.Summary{}, turns: &rollout.Turns{}, book: &rollout.Book{}, versions: &ownwrites.Versions[types.NamespacedName]{}, targets: &ownwrites.Versions[target.Key]{}, gates: &gatecontroller.State{},
		watcher: &view.DependencyReader{}, calendar: &calendars.Reader{}, news: &events.Recorder{}, appliers: &gatecontroller.Appliers{}, background: &gatecontroller.Background{}, passes: &rollout.Passes{},
	}
}

// gateCaches returns the state of Gates, each of which evicts a Gate that was deleted.
func (m *memory) gateCaches(backoff workqueue.TypedRateLimiter[types.UID]) []ownwrites.Cache {
	return []ownwrites.Cache{m.tally, m.turns, m.book, m.gates, m.watcher, m.calendar, m.news, m.passes, backoff}
}

// targetCaches returns the state of targets.
func (m *memory) targetCaches() []ownwrites.Evictor[target.Key] {
	return []ownwrites.Evictor[target.Key]{m.tally, m.turns, m.news, m.targets}
}
