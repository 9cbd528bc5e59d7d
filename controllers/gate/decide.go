package gate

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// stampsTimeout bounds how long the query for stamps delays a close.
const stampsTimeout = 2 * time.Second

// Decider decides on Gates, and reads what their decisions need.
type Decider struct {
	// Clock is read when something has taken a while.
	Clock clock.PassiveClock
	// ServerTime asks the API server for the time, cut off to the second. A Gate opens
	// only if it is open at that time, too. Nil means that Clock alone counts.
	ServerTime func(context.Context) (time.Time, error)
	// ServerClock says by how much Clock is behind that of the API server: a Gate closes by the later of the two. Nil means that it is not.
	ServerClock *ServerClock
	// Dependencies reads the dependencies of Gates.
	Dependencies *view.DependencyReader
	// Stamped returns whether the API server stamps who opens Gates and who approves that. Nil means that it does not.
	Stamped func(context.Context) (bool, error)
	// Skew is by how much Clock was ahead of that of the API server, negative if it was behind.
	Skew *prometheus.GaugeVec
}

// decision is a decision on a Gate.
type decision struct {
	*gate.Resolution
	// observed was read for the decision.
	observed gate.Observed
	// faults are the dependencies that cannot be read.
	faults []view.Fault
	// closing is when the Gate closes even if its dependencies are ready, zero if it does not.
	closing time.Time
}

// Decide reads what a decision needs, until it is final. If reading takes until the Gate closes, it decides again.
func (r *Decider) Decide(ctx context.Context, s *gate.Snapshot, now time.Time) decision {
	d := decision{observed: r.observe(ctx, s.Gate)}
	for {
		d.observed.Behind = r.ServerClock.Behind() // each response may show it
		d.Resolution = s.Resolve(d.observed, now)
		switch d.Needs {
		case gate.NeedsDependencies, gate.NeedsCurrentDependencies:
			r.readDependencies(ctx, s.Gate, &d)
			if later := r.Clock.Now(); !d.closing.IsZero() && !later.Before(d.closing) {
				now, d = later, decision{observed: r.observe(ctx, s.Gate)}
			}
		case gate.NeedsServerTime:
			d.observed.Server = r.readServerTime(ctx)
		case gate.NeedsNothing:
			r.ServerClock.report(r.Skew, d.observed.Behind)
			r.logDelay(ctx, s.Gate, &d)
			return d
		}
	}
}

// decideWithDependencies decides again on a Gate that is closed without its dependencies, so that its status says which are ready.
func (r *Decider) decideWithDependencies(ctx context.Context, s *gate.Snapshot, d decision) decision {
	if d.Unread {
		r.readDependencies(ctx, s.Gate, &d)
		d.Resolution = s.Resolve(d.observed, d.At)
	}
	return d
}

// observe reads what all decisions need.
func (r *Decider) observe(ctx context.Context, obj *v1alpha1.Gate) gate.Observed {
	if len(obj.Spec.DependsOn) == 0 {
		r.Dependencies.Forget(obj.UID)
	}
	return gate.Observed{Stamps: r.stamps(ctx, obj), TwoClocks: r.ServerTime != nil}
}

// readDependencies reads the dependencies of a Gate. Before the Gate opens, it reads all of them from the API server.
func (r *Decider) readDependencies(ctx context.Context, obj *v1alpha1.Gate, d *decision) {
	opens := d.Needs == gate.NeedsCurrentDependencies
	if !opens {
		d.closing = d.Closing
	}
	if !d.closing.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.closing.Sub(r.Clock.Now()))
		defer cancel()
	}
	d.observed.Dependencies, d.faults, d.observed.Cached = r.Dependencies.Read(ctx, obj, d.At, opens)
	d.observed.Cached = d.observed.Cached && !opens
}

func (r *Decider) readServerTime(ctx context.Context) *gate.ServerTime {
	t := &gate.ServerTime{RequestedAt: r.Clock.Now()}
	t.Reported, t.Err = r.ServerTime(ctx)
	t.ReceivedAt = r.Clock.Now()
	if t.Err == nil {
		r.Skew.WithLabelValues().Set(t.Ahead().Seconds())
	}
	return t
}

// logDelay logs that the clock of the API server delays the opening of a Gate, once.
func (r *Decider) logDelay(ctx context.Context, before *v1alpha1.Gate, d *decision) {
	delayed := func(message string) bool { return strings.HasSuffix(message, gate.ClocksDiffer) }
	if t := d.observed.Server; t != nil && d.State == v1alpha1.StateClosed && delayed(d.Message) && !delayed(conditions.GetMessage(before, v1alpha1.OpenedCondition)) {
		ctrl.LoggerFrom(ctx).Info("Gate stays closed until the clock of the API server says that it is open, too",
			"gate", client.ObjectKeyFromObject(before).String(), "clock", t.RequestedAt.UTC(), "server", t.Reported.UTC(), "ahead", t.Ahead().String())
	}
}

// stamps asks the API server whether it stamps names, if anything new of a Gate depends on that.
func (r *Decider) stamps(ctx context.Context, obj *v1alpha1.Gate) ledger.Stamps {
	if r.Stamped == nil || !ledger.NeedsStamps(obj) {
		return ledger.Unstamped
	}
	limited, cancel := context.WithTimeout(ctx, stampsTimeout)
	defer cancel()
	switch stamped, err := r.Stamped(limited); {
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "Cannot tell whether the API server stamps identities; deferring new requests")
		return ledger.StampsUnknown
	case stamped:
		return ledger.Stamped
	}
	return ledger.Unstamped
}
