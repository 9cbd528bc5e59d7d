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

// stampsTimeout bounds how long the check for stamps can delay a close.
const stampsTimeout = 2 * time.Second

// Decider decides on Gates, and reads the inputs of these decisions.
type Decider struct {
	// Clock is read again after slow reads.
	Clock clock.PassiveClock
	// ServerTime returns the time of the API server, truncated to seconds. A Gate opens only if it is also open at that time. If
	// ServerTime is nil, only Clock is used.
	ServerTime func(context.Context) (time.Time, error)
	// ServerClock measures how far Clock is behind the API server. A Gate closes by the clock that is ahead. If ServerClock is nil,
	// Clock is assumed not to be behind.
	ServerClock *ServerClock
	// Dependencies reads the dependencies of Gates.
	Dependencies *view.DependencyReader
	// Stamped returns whether the API server stamps requesters and approvers. If Stamped is nil, it does not.
	Stamped func(context.Context) (bool, error)
	// Skew is the metric of how far Clock was ahead of the API server, negative if it was behind.
	Skew *prometheus.GaugeVec
}

// decision is a decision on a Gate.
type decision struct {
	*gate.Resolution
	// observed contains the inputs that were read for the decision.
	observed gate.Observed
	// faults lists the dependencies that cannot be read.
	faults []view.Fault
	// closing is the time when the Gate closes regardless of its dependencies, zero if it does not close.
	closing time.Time
}

// Decide reads the inputs of a decision until it is final. If the Gate closes while inputs are being read, it starts over.
func (r *Decider) Decide(ctx context.Context, s *gate.Snapshot, now time.Time) decision {
	d := decision{observed: r.observe(ctx, s.Gate)}
	for {
		d.observed.Behind = r.ServerClock.Behind() // because each response may have updated it
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

// decideWithDependencies reads the dependencies of a Gate that is closed anyway and decides again, so that the status reports which
// dependencies are ready.
func (r *Decider) decideWithDependencies(ctx context.Context, s *gate.Snapshot, d decision) decision {
	if d.Unread {
		r.readDependencies(ctx, s.Gate, &d)
		d.Resolution = s.Resolve(d.observed, d.At)
	}
	return d
}

// observe returns the inputs that every decision needs.
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

// logDelay logs that the clock of the API server delays the opening of a Gate, once per opening.
func (r *Decider) logDelay(ctx context.Context, before *v1alpha1.Gate, d *decision) {
	delayed := func(message string) bool { return strings.HasSuffix(message, gate.ClocksDiffer) }
	if t := d.observed.Server; t != nil && d.State == v1alpha1.StateClosed && delayed(d.Message) && !delayed(conditions.GetMessage(before, v1alpha1.OpenedCondition)) {
		ctrl.LoggerFrom(ctx).Info("gate stays closed until the clock of the API server reaches the opening time",
			"gate", client.ObjectKeyFromObject(before).String(), "clock", t.RequestedAt.UTC(), "server", t.Reported.UTC(), "ahead", t.Ahead().String())
	}
}

// stamps returns whether the API server stamps identities. It checks this only if a new request or approval depends on it.
func (r *Decider) stamps(ctx context.Context, obj *v1alpha1.Gate) ledger.Stamps {
	if r.Stamped == nil || !ledger.NeedsStamps(obj) {
		return ledger.Unstamped
	}
	limited, cancel := context.WithTimeout(ctx, stampsTimeout)
	defer cancel()
	switch stamped, err := r.Stamped(limited); {
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "cannot tell whether the API server stamps identities; deferring new requests")
		return ledger.StampsUnknown
	case stamped:
		return ledger.Stamped
	}
	return ledger.Unstamped
}
