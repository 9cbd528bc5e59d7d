// Package exception reconciles GateExceptions. It alone writes their status.
package exception

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	kuberecorder "k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	runtimeCtrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/calendars"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gateexceptions,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gateexceptions/status,verbs=get;patch

// Reconciler reports on GateExceptions. The gate controller reads exceptions itself.
type Reconciler struct {
	// Client reads from the cache and writes.
	client.Client
	// EventRecorder emits events on exceptions and on their Gates.
	kuberecorder.EventRecorder
	// Metrics are the metrics of Flux controllers.
	runtimeCtrl.Metrics

	// APIReader reads from the API server.
	APIReader client.Reader
	// Calendars is the reader of the gate controller.
	Calendars *calendars.Reader
	// Clock is read once for each decision.
	Clock clock.PassiveClock
	// ServerTime returns the time of the API server, truncated to seconds. An exception is deleted only if it has also expired by that
	// time. If ServerTime is nil, only Clock is used.
	ServerTime func(context.Context) (time.Time, error)
	// Stamped returns whether the API server stamps the authors and approvers of exceptions. If it does not, approvals are ignored.
	Stamped func(context.Context) (bool, error)

	// versions tracks the versions of exceptions that this process has reconciled and written.
	versions ownwrites.Versions[types.NamespacedName]
}

// exceptions returns the client of exceptions.
func (r *Reconciler) exceptions() *ownwrites.Client {
	return &ownwrites.Client{Client: r.Client, Live: r.APIReader, Versions: &r.versions}
}

// exceptionWriter writes a GateException. After a conflict, the next reconciliation decides again.
type exceptionWriter = ownwrites.Writer[*v1alpha1.GateException]

// Reconcile handles the approvals of an exception and reports its state.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	start := time.Now() //nolint:forbidigo // only measures the duration for the metrics

	obj := &v1alpha1.GateException{}
	if err := r.exceptions().Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	defer func() {
		r.RecordDuration(ctx, obj, start)
	}()
	result, err := r.process(ctx, obj, r.Clock.Now())
	if apierrors.IsConflict(err) {
		// The cache is often behind right after our own write.
		return ctrl.Result{RequeueAfter: ownwrites.StaleRetry}, nil
	}
	if errors.Is(err, calendars.ErrPending) {
		return ctrl.Result{RequeueAfter: calendarRetry}, nil
	}
	return result, err
}

// calendarRetry is the delay before the next check whether the calendars of a Gate have been read.
const calendarRetry = time.Second

// process handles approvals, writes the status, and deletes or finalizes an exception that has ended.
func (r *Reconciler) process(ctx context.Context, obj *v1alpha1.GateException, now time.Time) (ctrl.Result, error) {
	g, ours, err := r.gateFor(ctx, obj)
	if err != nil || !ours {
		return ctrl.Result{}, err
	}
	writer := &exceptionWriter{Client: r.exceptions(), Base: obj.DeepCopy()}
	if !obj.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, writer, g, now)
	}
	if err := writer.Write(ctx, func(e *v1alpha1.GateException) bool {
		added := controllerutil.AddFinalizer(e, v1alpha1.GateFinalizer)
		return label(e) || added
	}); err != nil {
		return ctrl.Result{}, err
	}
	writer.Base.DeepCopyInto(obj)
	if removal := removalTime(obj); !removal.IsZero() && !now.Before(removal) {
		return r.remove(ctx, obj, removal)
	}
	next, err := r.reconcile(ctx, writer, obj, g, now)
	if err != nil || next.IsZero() {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: min(max(next.Sub(r.Clock.Now()), time.Millisecond), exceptionInterval)}, nil
}

// remove deletes an exception that is due for deletion according to the clock of the API server, too.
func (r *Reconciler) remove(ctx context.Context, obj *v1alpha1.GateException, at time.Time) (ctrl.Result, error) {
	if r.ServerTime != nil {
		t := gate.ServerTime{RequestedAt: r.Clock.Now()}
		t.Reported, t.Err = r.ServerTime(ctx)
		if err := t.Unknown(); err != nil {
			return ctrl.Result{}, err
		}
		if t.Reported.Before(at) {
			return ctrl.Result{RequeueAfter: min(t.Until(at), exceptionInterval)}, nil
		}
	}
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return ctrl.Result{}, client.IgnoreNotFound(r.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version}))
}

// removalTime returns when an expired exception will be deleted, zero for never.
func removalTime(obj *v1alpha1.GateException) time.Time {
	if ttl := obj.Spec.TTLAfterExpired; ttl != nil && ttl.Duration >= 0 && hasExpired(obj) {
		return obj.Spec.ValidUntil.Add(ttl.Duration)
	}
	return time.Time{}
}

// exceptionInterval bounds the wait for an instant, because the clock may be set in the meantime.
const exceptionInterval = 10 * time.Minute

// reconcile decides on an exception and writes its status at most once. It returns when to reconcile the exception again, zero if only
// events trigger that.
func (r *Reconciler) reconcile(ctx context.Context, writer *exceptionWriter, obj *v1alpha1.GateException, g *v1alpha1.Gate, now time.Time) (time.Time, error) {
	exceptions, err := view.ExceptionsFor(ctx, r.Client, view.GateKeyFor(obj))
	if err != nil {
		return time.Time{}, err
	}
	exceptions = append(slices.DeleteFunc(exceptions, func(e *v1alpha1.GateException) bool { return e.Name == obj.Name }), obj)
	before := writer.Base
	approved, voided, stamped, err := r.handleApprovals(ctx, obj, g, now)
	if err != nil {
		return time.Time{}, err
	}
	snapshot, err := r.Calendars.SnapshotFor(obj, g, exceptions)
	if err != nil {
		return time.Time{}, err
	}
	decision := snapshot.DecideException(obj, now)
	if !stamped && decision.Reason == v1alpha1.WaitingApprovalReason {
		decision.Refused = joined(decision.Refused, msgUncounted)
	}
	// Approvals voided by an edit are reported by a separate event.
	refused := decision.Refused != "" && len(voided) == 0 && !strings.Contains(conditions.GetMessage(obj, v1alpha1.ActiveCondition), decision.Refused)
	changed := !conditions.Has(before, v1alpha1.ActiveCondition) || conditions.IsTrue(before, v1alpha1.ActiveCondition) != decision.Active ||
		hasExpired(before) != decision.Expired
	reportException(obj, decision)
	// The write is conditional on the version that was read. Even with an outdated cache, no approval is lost and no event is repeated.
	if err := writer.WriteStatus(ctx, obj); err != nil {
		return time.Time{}, err
	}
	if changed {
		r.announce(obj, g, before, decision, now)
	}
	r.announceApprovals(obj, g, approved, voided, now)
	if refused {
		r.emit(obj, g, events.ForException(obj, "", now), events.New(events.Warning, v1alpha1.ApprovalRefusedReason, msgNotApproved+decision.Refused))
	}
	if message := timetable.SumUp(timetable.AmbiguitiesOfException(obj)); message != "" && before.Status.ObservedGeneration != obj.Generation {
		r.emit(obj, g, events.ForException(obj, "", now), events.New(events.Warning, v1alpha1.AmbiguousScheduleReason, message))
	}
	r.RecordReadiness(ctx, obj)
	r.RecordStalled(ctx, obj)
	switch removal := removalTime(obj); {
	case !decision.Recheck.IsZero():
		return decision.Recheck, nil
	case removal.IsZero() && now.Sub(obj.Spec.ValidUntil.Time) < clockMargin:
		return now.Add(exceptionInterval), nil
	default:
		return removal, nil
	}
}

// clockMargin is how long an exception is still reconciled after it has expired, because the clock may be set back.
const clockMargin = 24 * time.Hour

// handleApprovals records approvals. stamped is false if the annotations contain approvals that the API server has not stamped.
func (r *Reconciler) handleApprovals(ctx context.Context, obj *v1alpha1.GateException, g *v1alpha1.Gate, now time.Time) (approved, voided []v1alpha1.Approval, stamped bool, err error) {
	stamped = true
	_, requested := obj.Annotations[v1alpha1.ApproveRequestedAtAnnotation]
	waits := g != nil && gate.Missing(g, obj) > 0
	if approved, _ := gate.HandleApprovals(obj.DeepCopy(), now, true); requested && waits || len(approved) > 0 {
		if stamped, err = r.Stamped(ctx); err != nil {
			return nil, nil, false, err
		}
	}
	approved, voided = gate.HandleApprovals(obj, now, stamped)
	return approved, voided, stamped, nil
}

// gateFor returns the Gate of an exception, nil if it does not exist. It returns false if another process handles the exception.
func (r *Reconciler) gateFor(ctx context.Context, obj *v1alpha1.GateException) (*v1alpha1.Gate, bool, error) {
	g := &v1alpha1.Gate{}
	err := r.Get(ctx, view.GateKeyFor(obj), g)
	if err == nil {
		return g, true, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, false, err
	}
	// Every shard reports on an exception whose Gate does not exist, because the other shards may have missed the deletion.
	exists, err := view.GateExists(ctx, r.APIReader, view.GateKeyFor(obj))
	return nil, !exists, err
}

// label sets the labels of an exception: the name of its Gate, and whether its current spec has expired. It returns whether the labels have
// changed.
func label(obj *v1alpha1.GateException) (changed bool) {
	name, expired := obj.Spec.GateRef.Name, ""
	if len(validation.IsValidLabelValue(name)) > 0 {
		name = ""
	}
	if hasExpired(obj) && obj.Status.ObservedGeneration == obj.Generation {
		expired = "true"
	}
	labels := map[string]string{}
	maps.Copy(labels, obj.Labels)
	for key, value := range map[string]string{v1alpha1.GateLabel: name, v1alpha1.ExpiredLabel: expired} {
		if labels[key] = value; value == "" {
			delete(labels, key)
		}
	}
	changed = !maps.Equal(labels, obj.Labels)
	obj.Labels = labels
	return changed
}

// hasExpired returns whether the condition Active of an exception has the reason Expired.
func hasExpired(obj *v1alpha1.GateException) bool {
	return conditions.GetReason(obj, v1alpha1.ActiveCondition) == v1alpha1.ExpiredReason
}

// markActive sets the condition Active of an exception.
func markActive(obj *v1alpha1.GateException, d gate.ExceptionDecision) {
	mark := conditions.MarkFalse
	if d.Active {
		mark = conditions.MarkTrue
	}
	mark(obj, v1alpha1.ActiveCondition, d.Reason, "%s", joined(d.Message, d.Refused, d.Approve))
}

// reportException records a decision in the status of an exception.
func reportException(obj *v1alpha1.GateException, d gate.ExceptionDecision) {
	obj.Status.ObservedGeneration = obj.Generation
	markActive(obj, d)
	conditions.Delete(obj, meta.StalledCondition)
	switch {
	case len(d.Errors) > 0:
		cause := d.Errors.ToAggregate().Error()
		conditions.MarkStalled(obj, v1alpha1.InvalidSpecReason, "%s", cause)
		conditions.MarkFalse(obj, meta.ReadyCondition, v1alpha1.InvalidSpecReason, "%s", cause)
	case d.Reason == v1alpha1.GateNotFoundReason, d.Reason == v1alpha1.GateNotReadyReason:
		conditions.MarkFalse(obj, meta.ReadyCondition, d.Reason, "%s", d.Message)
	case d.TooMany != "":
		conditions.MarkFalse(obj, meta.ReadyCondition, v1alpha1.TooManyExceptionsReason, "%s", d.TooMany)
	case d.Overlapped != "":
		conditions.MarkFalse(obj, meta.ReadyCondition, v1alpha1.OverlappedReason, "%s", d.Overlapped)
	default:
		conditions.MarkTrue(obj, meta.ReadyCondition, meta.SucceededReason, "%s", d.Message)
	}
	if v, ok := meta.ReconcileAnnotationValue(obj.GetAnnotations()); ok {
		obj.Status.SetLastHandledReconcileRequest(v)
	}
}

// joined joins the non-empty parts of a message.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

// announce emits an event if an exception has started or stopped applying.
func (r *Reconciler) announce(obj *v1alpha1.GateException, g *v1alpha1.Gate, before *v1alpha1.GateException, d gate.ExceptionDecision, now time.Time) {
	details, applied := events.ForException(obj, "", now), conditions.IsTrue(before, v1alpha1.ActiveCondition)
	switch {
	case d.Active && !applied:
		r.emit(obj, g, details, events.New(events.Normal, v1alpha1.ExceptionActivatedReason, d.Message))
	case applied && !d.Active && !d.Expired:
		r.emit(obj, g, details, events.New(events.Warning, v1alpha1.ExceptionInterruptedReason, msgInterrupted+d.Message))
	case conditions.Has(before, v1alpha1.ActiveCondition) && !hasExpired(before) && d.Expired:
		r.emit(obj, g, details, events.New(events.Normal, v1alpha1.ExceptionExpiredReason, d.Message))
	}
}

func (r *Reconciler) announceApprovals(obj *v1alpha1.GateException, g *v1alpha1.Gate, approved, voided []v1alpha1.Approval, now time.Time) {
	for _, a := range approved {
		r.emit(obj, g, events.ForException(obj, a.ApprovedBy, now), events.New(events.Normal, v1alpha1.ExceptionApprovedReason, fmt.Sprintf(msgApproved, a.ApprovedBy)))
	}
	for _, a := range voided {
		r.emit(obj, g, events.ForException(obj, a.ApprovedBy, now), events.New(
			events.Warning, v1alpha1.ApprovalsVoidedReason,
			fmt.Sprintf(msgVoided, a.ApprovedBy, a.RecordedAt.UTC().Format(time.RFC3339)),
		))
	}
}

// emit emits an event on an exception, and on its Gate unless the Gate is nil.
func (r *Reconciler) emit(obj *v1alpha1.GateException, g *v1alpha1.Gate, details events.Details, event events.Event) {
	details[events.ReasonKey] = event.Reason
	details.Emit(r, obj, event)
	if g != nil {
		event.Message = fmt.Sprintf("%s '%s': %s", v1alpha1.GateExceptionKind, obj.Name, event.Message)
		details.Emit(r, g, event)
	}
}

// finalize removes the finalizer of an exception when its Gate no longer takes the exception into account.
func (r *Reconciler) finalize(ctx context.Context, writer *exceptionWriter, g *v1alpha1.Gate, now time.Time) error {
	obj := writer.Base
	if g != nil && g.DeletionTimestamp.IsZero() && !g.Spec.Suspend && slices.ContainsFunc(g.Status.Exceptions, func(record v1alpha1.ExceptionRecord) bool {
		return record.Name == obj.Name && record.Reason != v1alpha1.ExpiredReason
	}) {
		return nil // the update of the Gate's status enqueues the exception again
	}
	if !controllerutil.ContainsFinalizer(obj, v1alpha1.GateFinalizer) {
		return nil
	}
	if err := writer.Write(ctx, func(e *v1alpha1.GateException) bool { return controllerutil.RemoveFinalizer(e, v1alpha1.GateFinalizer) }); err != nil {
		return client.IgnoreNotFound(err)
	}
	if conditions.IsTrue(obj, v1alpha1.ActiveCondition) {
		r.emit(obj, g, events.ForException(obj, "", now), events.New(events.Normal, v1alpha1.ExceptionExpiredReason, msgDeleted))
	}
	return nil
}
