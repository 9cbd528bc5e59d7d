// Package lock reconciles namespaces. It alone writes their GateLocks.
package lock

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// +kubebuilder:rbac:groups=internal.gating.toolkit.fluxcd.io,resources=gatelocks,verbs=get;list;watch;create;update

// Reconciler writes the GateLocks, if config/lock is installed. It writes all locks of a namespace at once.
type Reconciler struct {
	// Client writes GateLocks.
	client.Client
	view.Reach
	// APIReader reads from the API server.
	APIReader client.Reader
	// Clock is read once per reconciliation.
	Clock clock.PassiveClock
	// Locks reads GateLocks.
	Locks view.LockReader
	// Gates looks up Gates.
	Gates *view.GateIndex
	// Targets reads targets.
	Targets view.TargetReader
	// Summary records failures.
	Summary *summary.Summary
}

// Reconcile updates a GateLock to the locks of all Gates. The name in the request is the namespace of the GateLock, or v1alpha1.AnyName
// for the GateLock of all namespaces.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	namespace, now := req.Name, r.Clock.Now()
	if namespace != v1alpha1.AnyName && !r.Watches(namespace) { // the GateLock of all namespaces may contain locks of a previous controller
		return ctrl.Result{}, nil
	}
	obj, err := r.Locks.Lock(ctx, namespace)
	if err != nil {
		return ctrl.Result{}, r.recordUnread(ctx, namespace, err, now)
	}
	if obj == nil {
		r.Summary.Evict(summaryKey(namespace))
		return ctrl.Result{}, nil
	}
	for retry := 0; ; retry++ {
		read := obj
		obj = read.DeepCopy()
		parts, gates, err := r.parts(ctx, obj, now)
		if err != nil {
			return ctrl.Result{}, err
		}
		lock.Update(&obj.Spec, parts)
		left := lock.Bound(&obj.Spec)
		if !equality.Semantic.DeepEqual(read.Spec, obj.Spec) {
			err = r.write(ctx, obj)
		}
		if (ownwrites.Raced(err) || apierrors.IsAlreadyExists(err)) && retry < ownwrites.Retries {
			if obj, err = view.ReadLock(ctx, r.APIReader, client.ObjectKeyFromObject(obj)); err == nil {
				continue
			}
		}
		r.recordOutcome(namespace, gates, left, err, now)
		return ctrl.Result{}, err
	}
}

// summaryKey returns the key of a GateLock in the summary.
func summaryKey(namespace string) target.Key {
	return target.Key{
		GroupKind:      lockv1alpha1.GroupVersion.WithKind(lockv1alpha1.GateLockKind).GroupKind(),
		NamespacedName: types.NamespacedName{Namespace: namespace, Name: view.LockKey(namespace, "").Name},
	}
}

// errLockFull is returned if locks do not fit into a GateLock.
var errLockFull = errors.New(msgLockFull)

// recordOutcome records a failure for the Gates if locks were left out or could not be written. Otherwise, it removes the failure.
func (r *Reconciler) recordOutcome(namespace string, gates []*v1alpha1.Gate, left []string, err error, now time.Time) {
	if err != nil {
		r.recordFailure(namespace, gates, v1alpha1.WriteFailedReason, err, now)
		return
	}
	gates = slices.DeleteFunc(gates, func(g *v1alpha1.Gate) bool { return !slices.Contains(left, client.ObjectKeyFromObject(g).String()) })
	if len(gates) > 0 {
		r.recordFailure(namespace, gates, v1alpha1.LockFullReason, errLockFull, now)
		return
	}
	r.Summary.Evict(summaryKey(namespace))
}

func (r *Reconciler) recordFailure(namespace string, gates []*v1alpha1.Gate, reason string, err error, now time.Time) {
	var entries []summary.Entry
	for _, g := range gates {
		entries = append(entries, summary.Entry{Gate: summary.KeyFor(g), Uncounted: true, Failure: &summary.Failure{Reason: reason, Message: err.Error()}})
	}
	r.Summary.Put(summaryKey(namespace), entries, now)
}

// recordUnread records that the GateLock of a namespace cannot be read.
func (r *Reconciler) recordUnread(ctx context.Context, namespace string, err error, now time.Time) error {
	var opts []client.ListOption
	if namespace != v1alpha1.AnyName {
		opts = append(opts, client.InNamespace(namespace))
	}
	gates, listed := view.ListGates(ctx, r.Gates.Reader, opts...)
	if listed != nil {
		return listed
	}
	gates = slices.DeleteFunc(gates, func(g *v1alpha1.Gate) bool {
		_, has := r.refsIn(g, namespace)
		return !has
	})
	r.recordFailure(namespace, gates, v1alpha1.ReadFailedReason, err, now)
	return err
}

// write creates or updates a GateLock, conditional on the version that was read. It ignores namespaces that do not exist or are being
// deleted.
func (r *Reconciler) write(ctx context.Context, obj *lockv1alpha1.GateLock) error {
	var err error
	if obj.ResourceVersion == "" {
		if err = r.Create(ctx, obj, client.FieldOwner(v1alpha1.FieldManager)); apierrors.IsNotFound(err) {
			return nil
		}
	} else {
		err = r.Update(ctx, obj, client.FieldOwner(v1alpha1.FieldManager))
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// parts returns the part of each Gate in the GateLock of a namespace. A nil part is removed, and a Gate that is not in the map keeps its
// part. It also returns the Gates of this shard that have a part.
func (r *Reconciler) parts(ctx context.Context, obj *lockv1alpha1.GateLock, now time.Time) (map[string]*lock.Part, []*v1alpha1.Gate, error) {
	namespace := view.LockedNamespace(obj)
	all, err := view.ListGates(ctx, r.Gates.Reader)
	if err != nil {
		return nil, nil, err
	}
	named, read := r.namedIn(ctx, namespace)
	parts, known := map[string]*lock.Part{}, map[string]bool{}
	var gates []*v1alpha1.Gate
	for _, g := range all {
		if !r.Watches(g.Namespace) {
			continue
		}
		name := client.ObjectKeyFromObject(g).String()
		known[name] = true
		refs, has := r.refsIn(g, namespace)
		has = has || named[name] && r.Reaches(namespace, g.Namespace)
		part, stays := r.newPart(g, namespace, refs, now)
		_, was := obj.Spec.Gates[name]
		switch {
		case !has && !stays || !g.DeletionTimestamp.IsZero():
			if was && (read || !g.DeletionTimestamp.IsZero()) {
				parts[name] = nil
				gates = append(gates, g)
			}
		case !stays:
			parts[name] = &part
			gates = append(gates, g)
		}
	}
	for name := range obj.Spec.Gates {
		if known[name] {
			continue
		}
		exists, err := r.Gates.Exists(ctx, view.ParseKey(name))
		if err != nil {
			return nil, nil, err
		}
		if !exists {
			parts[name] = nil
		}
	}
	return parts, gates, nil
}

// namedIn returns the Gates that targets in a namespace refer to by annotation, for the kinds that can be suspended. all is false if some
// targets could not be read.
func (r *Reconciler) namedIn(ctx context.Context, namespace string) (named map[string]bool, all bool) {
	named, all = map[string]bool{}, true
	if namespace == v1alpha1.AnyName { // targets that refer to a Gate are locked by the GateLock of their namespace
		return named, all
	}
	for _, adapter := range target.All() {
		if !target.Suspends(adapter) {
			continue
		}
		found, err := r.Targets.Select(ctx, adapter, namespace, &v1alpha1.TargetReference{Name: v1alpha1.AnyName})
		all = all && (err == nil || errors.Is(err, view.ErrNotInstalled))
		for _, t := range found {
			for _, name := range verdict.NamedBy(&t.Unstructured) {
				named[name] = true
			}
		}
	}
	return named, all
}

// refsIn returns the references of a Gate that lock targets in a namespace, or the references that span namespaces for
// v1alpha1.AnyName. It returns false if the references do not require an entry of the Gate in the GateLock. Only targets that are held
// by suspending them are locked.
func (r *Reconciler) refsIn(g *v1alpha1.Gate, namespace string) ([]v1alpha1.TargetReference, bool) {
	refs := slices.DeleteFunc(slices.Clone(g.Spec.Targets), func(ref v1alpha1.TargetReference) bool {
		a, err := target.For(ref.APIVersion, ref.Kind)
		return err != nil || !target.Suspends(a) || view.NamespaceFor(&ref, g) != namespace ||
			!r.Reaches(g.Namespace, namespace) || !r.Watches(namespace)
	})
	return refs, g.Namespace == namespace || len(refs) > 0
}

// newPart returns the part of a Gate in the GateLock of a namespace. stays is true for a Gate that has not decided yet or is suspended,
// because the part of such a Gate must not change. Gates with mode Lenient or Audit lock nothing. Like open Gates, they have an empty part,
// because targets that name a Gate without a part are locked.
func (r *Reconciler) newPart(g *v1alpha1.Gate, namespace string, refs []v1alpha1.TargetReference, now time.Time) (part lock.Part, stays bool) {
	effect := verdict.Governing("", g, now).Effect
	if effect == verdict.Undecided || effect == verdict.Suspended {
		return lock.Part{}, true
	}
	enforces := g.Spec.Mode != v1alpha1.ModeLenient && !g.Audits()
	part = lock.NewPart(effect == verdict.Closed && enforces, refs...)
	part.Initial = enforces && verdict.AllowsInitial(g)
	for i := range g.Status.Overlays {
		o := &g.Status.Overlays[i]
		if state := gate.LockedState(o, now); state != "" && enforces {
			overlaid, namespaces := r.overlaidIn(g, o, namespace)
			part.AddOverlay(state == v1alpha1.StateClosed, o.Exception == "", overlaid, namespaces, refs)
		}
	}
	return part, false
}

// overlaidIn returns the references of an overlay that may match targets in a namespace, or in any namespace for v1alpha1.AnyName. It
// also returns the namespace that each reference is limited to, empty if only the GateLock limits it.
func (r *Reconciler) overlaidIn(g *v1alpha1.Gate, o *v1alpha1.Overlay, namespace string) (refs []v1alpha1.TargetReference, namespaces []string) {
	for i := range o.Targets {
		ref := o.Targets[i].Reference()
		only := ""
		switch in := view.NamespaceFor(&ref, g); {
		case in == namespace, in == v1alpha1.AnyName && namespace != r.Own:
		case namespace == v1alpha1.AnyName:
			only = in
		default:
			continue
		}
		if a, err := target.For(ref.APIVersion, ref.Kind); err == nil && target.Suspends(a) {
			refs, namespaces = append(refs, ref), append(namespaces, only)
		}
	}
	return refs, namespaces
}
