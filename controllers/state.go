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

// state is the state of the controllers in memory. After a restart, all objects are reconciled once.
type state struct {
	summary      *summary.Summary
	slots        *rollout.Slots
	rollouts     *rollout.Rollouts
	versions     *ownwrites.Versions[types.NamespacedName]
	targets      *ownwrites.Versions[target.Key]
	gates        *gatecontroller.State
	dependencies *view.DependencyReader
	calendars    *calendars.Reader
	targetEvents *events.Recorder
	appliers     *gatecontroller.Appliers
	background   *gatecontroller.Background
	passes       *rollout.Passes
}

func newState() *state {
	return &state{
		summary: &summary.Summary{}, slots: &rollout.Slots{}, rollouts: &rollout.Rollouts{}, versions: &ownwrites.Versions[types.NamespacedName]{}, targets: &ownwrites.Versions[target.Key]{}, gates: &gatecontroller.State{},
		dependencies: &view.DependencyReader{}, calendars: &calendars.Reader{}, targetEvents: &events.Recorder{}, appliers: &gatecontroller.Appliers{}, background: &gatecontroller.Background{}, passes: &rollout.Passes{},
	}
}

// gateCaches returns the caches that evict deleted Gates.
func (m *state) gateCaches(backoff workqueue.TypedRateLimiter[types.UID]) []ownwrites.Cache {
	return []ownwrites.Cache{m.summary, m.slots, m.rollouts, m.gates, m.dependencies, m.calendars, m.targetEvents, m.passes, backoff}
}

// targetCaches returns the caches that evict deleted targets.
func (m *state) targetCaches() []ownwrites.Evictor[target.Key] {
	return []ownwrites.Evictor[target.Key]{m.summary, m.slots, m.targetEvents, m.targets}
}
