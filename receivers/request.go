package receivers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

var (
	// errNoGate is returned for a Gate that does not exist or is being deleted.
	errNoGate = errors.New(msgNoGate)
	// errUnavailable is returned if the request cannot be written now and the sender should retry: after a timeout, if the clocks differ, or
	// if the Gate is suspended.
	errUnavailable = errors.New(msgUnavailable)
)

// gateRequest is a request on a Gate.
type gateRequest struct {
	action     v1alpha1.RequestAction
	by, reason string
	window     *v1alpha1.Duration
	// targets limit the request, nil for the whole Gate.
	targets []v1alpha1.RequestTarget
	// delivery identifies the webhook, empty if the webhook may be repeated.
	delivery string
	// repeats is a delivery that must not have been recorded already, empty if there is none.
	repeats string
}

// Gates writes requests on Gates.
type Gates struct {
	// Client reads from the API server and writes to it. Its rate limit is separate from the rate limit of holds, so that senders cannot
	// delay a hold.
	client.Client
	// Events emits events about webhooks that are refused because a user has closed the Gate, or because the record of webhooks cannot be
	// read. Nil disables these events.
	Events record.EventRecorder

	// writing serializes requests on one Gate, to avoid conflicts.
	writing gateMutexes
}

// NewGates returns Gates that use a client without a cache.
func NewGates(c client.Client) *Gates {
	return &Gates{Client: c, writing: gateMutexes{gates: map[types.NamespacedName]*gateMutex{}}}
}

// request writes a request into the annotations of a Gate. It retries until the context ends, as long as a retry may help. If it returns
// no error, the request is stored, and lacks is the number of missing approvals.
func (g *Gates) request(ctx context.Context, key types.NamespacedName, a gateRequest, now time.Time) (lacks int, err error) {
	done, err := g.writing.take(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errUnavailable, err)
	}
	defer done()
	perhaps := "" // the request that may have been written although the response was lost
	err = until(ctx, func() (time.Duration, error) {
		t, err := g.try(ctx, key, a, now, perhaps)
		lacks = t.lacks
		switch {
		case err == nil || perhaps != "" && errors.Is(err, errReplayed):
			return 0, nil
		case !t.again:
			return 0, err
		case apierrors.IsConflict(err):
			return conflictInterval, err
		case t.wrote != "":
			perhaps = t.wrote
		}
		return retryInterval, err
	})
	return lacks, err
}

// tried is the result of one attempt to write a request.
type tried struct {
	// wrote is the value of the request, empty if none was written.
	wrote string
	// again is true if a retry may help.
	again bool
	// lacks is the number of missing approvals, according to the Gate that was read.
	lacks int
}

// try attempts once to write a request. perhaps is the request of an earlier attempt whose response was lost, empty if there is none.
func (g *Gates) try(ctx context.Context, key types.NamespacedName, a gateRequest, now time.Time, perhaps string) (t tried, err error) {
	obj := &v1alpha1.Gate{}
	if err := g.Get(ctx, key, obj); err != nil {
		if apierrors.IsNotFound(err) {
			return t, fmt.Errorf("gate '%s' %w", key, errNoGate)
		}
		return tried{again: transient(err)}, err
	}
	if !obj.DeletionTimestamp.IsZero() {
		return t, fmt.Errorf(msgDeleting, key, errNoGate)
	}
	if a.action == v1alpha1.RequestOpen {
		t.lacks = obj.RequiredApprovals()
	}
	if perhaps != "" && ledger.Requested(obj, a.action) == perhaps {
		return t, nil
	}
	before := obj.DeepCopy()
	if err := write(obj, a, now); err != nil {
		if errors.Is(err, ledger.ErrClosedByPeople) || errors.Is(err, errUnreadable) {
			g.refuse(obj, a, err)
			return t, fmt.Errorf(msgStaysClosed, key, err)
		}
		if errors.Is(err, ledger.ErrAhead) {
			err = fmt.Errorf(msgClocksDiffer, errUnavailable, key, err)
		}
		t.again = errors.Is(err, ledger.ErrUnhandled)
		if t.again && obj.Spec.Suspend { // the request will not be handled soon
			return tried{}, fmt.Errorf(msgGateSuspended, errUnavailable, key, err)
		}
		return t, err
	}
	err = g.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.FieldManager))
	t.wrote, t.again = ledger.Requested(obj, a.action), transient(err)
	return t, err
}

// refuse emits an event about a request that is refused before it is written.
func (g *Gates) refuse(obj *v1alpha1.Gate, a gateRequest, cause error) {
	if g.Events == nil {
		return
	}
	prefix := v1alpha1.GroupVersion.Group + "/"
	g.Events.AnnotatedEventf(obj, map[string]string{
		prefix + "gate": client.ObjectKeyFromObject(obj).String(), prefix + "action": string(a.action),
		prefix + "reason": v1alpha1.RequestRefusedReason, prefix + "requestedBy": a.by, prefix + "message": a.reason,
	}, corev1.EventTypeWarning, v1alpha1.RequestRefusedReason, msgRefused, a.action, a.by, cause)
}

// retried calls a function until it succeeds, returns a Refused, or the context ends.
func retried[T any](ctx context.Context, f func() (T, error)) (value T, err error) {
	err = until(ctx, func() (time.Duration, error) {
		var err error
		if value, err = f(); errors.As(err, new(*Refused)) {
			return 0, err
		}
		return retryInterval, err
	})
	return value, err
}

// until calls try until it succeeds, a retry cannot help, or the context ends. again is the delay before the next call, zero if a retry
// cannot help.
func until(ctx context.Context, try func() (again time.Duration, err error)) error {
	var again time.Duration
	var err error
	delay := wait.DelayFunc(func() time.Duration { return again })
	if over := delay.Until(ctx, true, true, func(context.Context) (bool, error) {
		again, err = try()
		return err == nil || again == 0, nil
	}); over != nil {
		return fmt.Errorf("%w: %w", errUnavailable, err)
	}
	return err
}

// transient returns whether a retry may resolve an error.
func transient(err error) bool {
	return !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsUnauthorized(err) &&
		!apierrors.IsBadRequest(err) && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err)
}

// write writes a request and the record of its webhook into the annotations of a Gate object.
func write(obj *v1alpha1.Gate, a gateRequest, now time.Time) error {
	deliveries, err := recordDelivery(obj, a, now)
	if err != nil {
		return err
	}
	if err := ledger.WriteRequest(obj, ledger.Request{Action: a.action, Window: a.window, Targets: a.targets, By: a.by, Reason: a.reason}, now); err != nil {
		return err
	}
	if deliveries != "" {
		obj.Annotations[v1alpha1.DeliveriesAnnotation] = deliveries
	}
	return nil
}

// cut shortens a text from a payload for an annotation and the log. The result is one line without control characters.
func cut(reason string) string {
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(reason, "")))
}
