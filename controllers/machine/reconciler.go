// Package machine refreshes the certificates of Cluster API Machines while Gates are open. It alone writes the annotations of Machines
// and the status of MachineCertificateRefreshes.
package machine

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kuberecorder "k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/machinecerts"
)

const (
	// retryDelay is the delay of a retry after a conflict, and between checks of a Gate that has not been reconciled yet.
	retryDelay = time.Second
	// pollInterval is the resync interval while a Machine is due, because there are no events for the Gates of other shards.
	pollInterval = time.Minute
	// resyncInterval is the resync interval of a namespace in which nothing is due. It bounds the delay after the clock was set.
	resyncInterval = 10 * time.Minute
)

// Reconciler reconciles all MachineCertificateRefreshes and Machines of one namespace at a time. Each pass reads them from the API
// server, because a stale read could start a second refresh. It reads Machines first and Gates last, because a write fails if the Machine
// has changed in the meantime, but not if a Gate has.
type Reconciler struct {
	// Client writes Machines and MachineCertificateRefreshes.
	client.Client
	// EventRecorder emits events on Machines.
	kuberecorder.EventRecorder
	// Metrics are the metrics of Flux controllers.
	runtimectrl.Metrics

	// APIReader reads from the API server.
	APIReader client.Reader
	// Clock is read once for each pass.
	Clock clock.PassiveClock
	// Shard selects the MachineCertificateRefreshes of this process by their labels, nil for all.
	Shard labels.Selector

	kinds kinds
}

// pass is one reconciliation of a namespace.
type pass struct {
	*Reconciler
	now       time.Time
	refreshes []v1alpha1.MachineCertificateRefresh
	machines  []*metav1.PartialObjectMetadata
	// installed is true if the cluster serves Machines. unread is the error from listing them, nil if there was none.
	installed bool
	unread    error
	// next is the time when the next pass is due.
	next time.Time
}

// Reconcile reconciles a namespace.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	installed, version := r.kinds.served()
	if !installed {
		return ctrl.Result{}, nil
	}
	p := &pass{Reconciler: r, now: r.Clock.Now(), installed: version != ""}
	if p.installed {
		p.machines, p.unread = r.list(ctx, version, req.Namespace)
	}
	list := &v1alpha1.MachineCertificateRefreshList{}
	if err := r.APIReader.List(ctx, list, client.InNamespace(req.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	p.refreshes = list.Items
	var failed []error
	for i := range p.refreshes {
		if obj := &p.refreshes[i]; obj.DeletionTimestamp.IsZero() && (r.Shard == nil || r.Shard.Matches(labels.Set(obj.Labels))) {
			failed = append(failed, p.reconcile(ctx, obj))
		}
	}
	for _, name := range p.orphans() {
		f := &fleet{pass: p, selector: labels.Nothing(), policy: machinecerts.Policy{Name: name, Idle: true, Timeout: v1alpha1.DefaultMachineTimeout}}
		d := f.decide()
		p.recheckAt(d.Recheck)
		failed = append(failed, f.act(ctx, d))
	}
	if err := errors.Join(failed...); err != nil {
		return ctrl.Result{}, err
	}
	if p.next.IsZero() && len(p.refreshes) == 0 {
		return ctrl.Result{}, nil
	}
	p.recheckAt(p.now.Add(resyncInterval))
	return ctrl.Result{RequeueAfter: max(p.next.Sub(r.Clock.Now()), time.Millisecond)}, nil
}

// recheckAt schedules the next pass at an instant, unless an earlier pass is scheduled. It ignores a zero time.
func (p *pass) recheckAt(at time.Time) {
	if p.next.IsZero() || !at.IsZero() && at.Before(p.next) {
		p.next = at
	}
}

// orphans returns the names of MachineCertificateRefreshes that are in the records of Machines but do not exist. It adds an empty name if
// a record was removed.
func (p *pass) orphans() []string {
	var names []string
	for _, m := range p.machines {
		switch record := recordOn(m); {
		case record != nil:
			names = append(names, record.Refresh)
		case requestOn(m) == machinecerts.Ours:
			names = append(names, "")
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return slices.ContainsFunc(p.refreshes, func(obj v1alpha1.MachineCertificateRefresh) bool {
			return client.ObjectKeyFromObject(&obj).String() == name && obj.DeletionTimestamp.IsZero()
		})
	})
}

// reconcile begins and ends refreshes of a MachineCertificateRefresh, and writes its status.
func (p *pass) reconcile(ctx context.Context, obj *v1alpha1.MachineCertificateRefresh) error {
	start := time.Now() //nolint:forbidigo // only measures the duration for the metrics
	defer func() { p.RecordDuration(ctx, obj, start) }()

	f := &fleet{pass: p, obj: obj, writer: writer{Client: p.Client, Base: obj.DeepCopy()}, policy: machinecerts.Policy{
		Name: client.ObjectKeyFromObject(obj).String(), Within: obj.Spec.Within.Or(0), Timeout: obj.Spec.Timeout.Or(v1alpha1.DefaultMachineTimeout),
	}}
	failed := f.prepare(ctx)
	d := f.decide()
	if !f.waits {
		failed = errors.Join(failed, f.act(ctx, d))
		d = f.decide()
	}
	if d.Due > 0 || d.Running != "" {
		p.recheckAt(p.now.Add(pollInterval))
	}
	p.recheckAt(d.Recheck)
	if err := f.report(ctx, d, failed); ownwrites.Raced(err) {
		p.recheckAt(p.now.Add(retryDelay))
	} else {
		failed = errors.Join(failed, err)
	}
	p.RecordReadiness(ctx, obj)
	p.RecordStalled(ctx, obj)
	return failed
}
