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

// State is the state of the controllers in memory. After a restart, all objects are reconciled once.
type State struct {
	Summary      *summary.Summary
	Slots        *rollout.Slots
	Rollouts     *rollout.Rollouts
	versions     *ownwrites.Versions[types.NamespacedName]
	targets      *ownwrites.Versions[target.Key]
	Gates        *gatecontroller.State
	dependencies *view.DependencyReader
	Calendars    *calendars.Reader
	targetEvents *events.Recorder
	appliers     *gatecontroller.Appliers
	Background   *gatecontroller.Background
	passes       *rollout.Passes
}

// NewState returns the state of a controller that has just started.
func NewState() *State {
	return &State{
		Summary: &summary.Summary{}, Slots: &rollout.Slots{}, Rollouts: &rollout.Rollouts{}, versions: &ownwrites.Versions[types.NamespacedName]{}, targets: &ownwrites.Versions[target.Key]{}, Gates: &gatecontroller.State{},
		dependencies: &view.DependencyReader{}, Calendars: &calendars.Reader{}, targetEvents: &events.Recorder{}, appliers: &gatecontroller.Appliers{}, Background: &gatecontroller.Background{}, passes: &rollout.Passes{},
	}
}

// gateCaches returns the caches that evict deleted Gates.
func (m *State) gateCaches(backoff workqueue.TypedRateLimiter[types.UID]) []ownwrites.Cache {
	return []ownwrites.Cache{m.Summary, m.Slots, m.Rollouts, m.Gates, m.dependencies, m.Calendars, m.targetEvents, m.passes, backoff}
}

// targetCaches returns the caches that evict deleted targets.
func (m *State) targetCaches() []ownwrites.Evictor[target.Key] {
	return []ownwrites.Evictor[target.Key]{m.Summary, m.Slots, m.targetEvents, m.targets}
}
