package machine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/machinecerts"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// fleet contains the Machines of one MachineCertificateRefresh during a pass.
type fleet struct {
	*pass
	// obj is nil if the MachineCertificateRefresh does not exist.
	obj      *v1alpha1.MachineCertificateRefresh
	writer   writer
	selector labels.Selector
	policy   machinecerts.Policy
	// waits is true if no Machine may be written until the Gates are known.
	waits bool
	// opened is the time when the last Gate opened, and closed lists the closed Gates.
	opened time.Time
	closed []string
	// reason and message are for the condition Ready, empty if the object is ready.
	reason, message string
}

// writer writes a MachineCertificateRefresh. After a conflict, the next pass decides again.
type writer = ownwrites.Writer[*v1alpha1.MachineCertificateRefresh]

// prepare reads the Gates and sets the policy. After a failed refresh, no new refresh begins until the Gates open again, the spec
// changes, or a reconciliation is requested.
func (f *fleet) prepare(ctx context.Context) error {
	var err error
	if f.selector, err = metav1.LabelSelectorAsSelector(f.obj.Spec.Selector.Kubernetes()); err != nil {
		f.unready(v1alpha1.InvalidSpecReason, fmt.Sprintf("spec.selector: %s", err))
		f.selector = labels.Nothing()
	} else if f.obj.Spec.Selector == nil {
		f.selector = labels.Everything()
	}
	if err = errors.Join(f.judge(ctx), f.unread); err != nil {
		f.unready(v1alpha1.ReadFailedReason, err.Error())
		f.waits = true
	}
	requested, _ := meta.ReconcileAnnotationValue(f.obj.GetAnnotations())
	status := &f.obj.Status
	if s := status.Stopped; s != nil && (f.policy.Open && f.opened.After(s.RecordedAt.Time) || status.ObservedGeneration != f.obj.Generation ||
		requested != status.LastHandledReconcileAt) {
		status.Stopped = nil
	}
	f.policy.Idle = status.Stopped != nil
	if f.waits {
		f.recheckAt(f.now.Add(retryDelay))
	}
	if !f.installed {
		f.unready(v1alpha1.CRDNotFoundReason, msgNotInstalled)
	}
	return err
}

// judge reads the Gates from the API server and sets opened and closed.
func (f *fleet) judge(ctx context.Context) error {
	f.policy.Open, f.policy.Margin = true, math.MaxInt64
	for _, ref := range f.obj.Spec.GateRefs {
		g := &v1alpha1.Gate{}
		if err := f.APIReader.Get(ctx, client.ObjectKey{Namespace: f.obj.Namespace, Name: ref.Name}, g); client.IgnoreNotFound(err) != nil {
			return err
		}
		v := verdict.Governing(ref.Name, g, f.now)
		switch {
		case g.UID == "" || !g.DeletionTimestamp.IsZero():
			f.forbid(v1alpha1.GateNotFoundReason, ref.Name, msgGateMissing)
		case verdict.IsInvalid(g):
			f.forbid(v1alpha1.GateNotReadyReason, ref.Name, msgGateInvalid)
		case v.Audits:
			f.forbid(v1alpha1.GateNotReadyReason, ref.Name, msgGateAudits)
		case v.Effect == verdict.Suspended:
			f.forbid(v1alpha1.GateNotReadyReason, ref.Name, msgGateSuspended)
		case v.Effect == verdict.Open:
			if last := g.Status.LastTransition; last != nil && last.At.After(f.opened) {
				f.opened = last.At.Time
			}
		case v.Effect == verdict.Closed:
			terms := verdict.Terms([]verdict.Gate{v})
			f.policy.Open, f.policy.Strict = false, f.policy.Strict || terms.Strict
			f.policy.Margin = min(f.policy.Margin, terms.Margin, f.obj.Spec.Lifetime()/6)
			f.closed = append(f.closed, ref.Name)
		default:
			f.waits = true
			f.unready(v1alpha1.GateNotReadyReason, fmt.Sprintf(msgGateUndecided, ref.Name))
		}
	}
	return nil
}

// forbid prevents all refreshes because of a Gate, even shortly before certificates expire.
func (f *fleet) forbid(reason, gate, problem string) {
	f.policy.Open, f.policy.Strict = false, true
	f.unready(reason, fmt.Sprintf(msgForbidden, gate, problem))
}

// unready sets the reason why the object is not ready, unless a reason is already set.
func (f *fleet) unready(reason, message string) {
	if f.reason == "" {
		f.reason, f.message = reason, message
	}
}

func (f *fleet) decide() machinecerts.Decision {
	machines := make([]machinecerts.Machine, len(f.machines))
	for i, m := range f.machines {
		machines[i] = machineState(m, f.selector.Matches(labels.Set(m.Labels)))
	}
	return machinecerts.Decide(f.policy, machines, f.now)
}

// act ends the refreshes that are over. If there are none, it begins the next refresh.
func (f *fleet) act(ctx context.Context, d machinecerts.Decision) error {
	var failed []error
	for _, end := range d.Ends {
		failed = append(failed, f.check(end.Machine, f.end(ctx, end)))
	}
	if len(d.Ends) > 0 {
		f.recheckAt(f.now.Add(retryDelay)) // the next refresh begins after fresh reads
		return errors.Join(failed...)
	}
	for _, name := range d.Next {
		err := f.begin(ctx, f.find(name))
		failed = append(failed, f.check(name, err))
		if !refused(err) {
			break // the refresh has begun, or may have begun
		}
	}
	return errors.Join(failed...)
}

// refused returns whether the API server has refused a write for a reason other than a conflict.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !ownwrites.Raced(err) && status.Status().Code >= 400 && status.Status().Code < 500
}

// check returns the error of a write, or nil if the write conflicted with another client.
func (f *fleet) check(machine string, err error) error {
	if ownwrites.Raced(err) {
		f.recheckAt(f.now.Add(retryDelay))
		return nil
	}
	if err != nil {
		f.unready(v1alpha1.WriteFailedReason, fmt.Sprintf("Machine %s: %s", machine, err))
	}
	return err
}

func (f *fleet) find(name string) *metav1.PartialObjectMetadata {
	return f.machines[slices.IndexFunc(f.machines, func(m *metav1.PartialObjectMetadata) bool { return fullName(m) == name })]
}

// begin requests a refresh. The request and its record are written in one conditional write.
func (f *fleet) begin(ctx context.Context, m *metav1.PartialObjectMetadata) error {
	state := machineState(m, true)
	expiry, err := time.Parse(time.RFC3339, state.Expiry)
	if err != nil {
		return err
	}
	if state.Status == machinecerts.StatusFailed {
		// Clear the old status, because it would hide another failure of the provider.
		if err := f.clearStatus(ctx, m); err != nil {
			return err
		}
	}
	ttl := f.obj.Spec.TTL
	record := machinecerts.Record{Refresh: f.policy.Name, RequestedAt: f.now, Expiry: expiry}
	if err := f.annotate(ctx, m, map[string]string{requestAnnotation: ttl, v1alpha1.RefreshAnnotation: record.String()}); err != nil {
		return err
	}
	why := msgGatesOpen
	if !f.policy.Open {
		why = fmt.Sprintf(msgExpiring, state.Expiry, f.closed[0])
	}
	f.Eventf(m, corev1.EventTypeNormal, v1alpha1.RefreshCertsInProgressReason, msgRequested, f.obj.Name, ttl, why)
	return nil
}

// end removes the annotations of a request. If the refresh failed, it first records the failure in the status.
func (f *fleet) end(ctx context.Context, end machinecerts.End) error {
	if end.Outcome.Stops() && f.obj != nil {
		f.policy.Idle = true
		f.obj.Status.Stopped = &v1alpha1.MachineFailure{Machine: baseName(end.Machine), Message: end.Message, RecordedAt: metav1.NewTime(f.now)}
		if err := f.writeStatus(ctx); err != nil {
			return err
		}
	}
	m := f.find(end.Machine)
	if err := f.annotate(ctx, m, nil); err != nil {
		return err
	}
	switch {
	case end.Outcome.Stops():
		f.Eventf(m, corev1.EventTypeWarning, v1alpha1.RefreshCertsFailedReason, msgRefreshFailed, end.Message)
	case end.Outcome == machinecerts.Done:
		f.Eventf(m, corev1.EventTypeNormal, v1alpha1.RefreshCertsDoneReason, msgRefreshed, end.Message)
	}
	return nil
}

// report writes the status if it has changed.
func (f *fleet) report(ctx context.Context, d machinecerts.Decision, failed error) error {
	status := &f.obj.Status
	status.Due, status.Refreshing = int64(d.Due), baseName(d.Running)
	if s := status.Stopped; s != nil {
		f.reason = v1alpha1.RefreshCertsFailedReason
		f.message = fmt.Sprintf(msgStopped, s.Machine, s.Message, meta.ReconcileRequestAnnotation)
	}
	for _, fault := range d.Faults {
		f.unready(v1alpha1.RefreshCertsFailedReason, fmt.Sprintf("Machine %s: %s", baseName(fault.Machine), fault.Message))
	}
	if failed != nil {
		f.unready(meta.FailedReason, failed.Error())
	}
	conditions.Delete(f.obj, meta.StalledCondition)
	switch f.reason {
	case "":
		conditions.MarkTrue(f.obj, meta.ReadyCondition, meta.SucceededReason, "%s", f.progress(d))
	case v1alpha1.InvalidSpecReason:
		conditions.MarkStalled(f.obj, f.reason, "%s", f.message)
		fallthrough
	default:
		conditions.MarkFalse(f.obj, meta.ReadyCondition, f.reason, "%s", f.message)
	}
	return f.writeStatus(ctx)
}

func (f *fleet) progress(d machinecerts.Decision) string {
	text := fmt.Sprintf("%d Machines are due", d.Due)
	if d.Due == 1 {
		text = "1 Machine is due"
	}
	switch {
	case d.Running != "":
		return text + ", and " + baseName(d.Running) + " is being refreshed"
	case d.Held > 0:
		return text + fmt.Sprintf(": %d wait for Gate %s to open", d.Held, f.closed[0])
	}
	return text
}

// writeStatus writes the status. It records the generation that the decision is based on, so that after a crash, a failure is not
// attributed to the previous spec.
func (f *fleet) writeStatus(ctx context.Context) error {
	f.obj.Status.ObservedGeneration = f.obj.Generation
	f.obj.Status.LastHandledReconcileAt, _ = meta.ReconcileAnnotationValue(f.obj.GetAnnotations())
	for i := range f.obj.Status.Conditions {
		f.obj.Status.Conditions[i].ObservedGeneration = f.obj.Generation
	}
	return f.writer.WriteStatus(ctx, f.obj)
}
