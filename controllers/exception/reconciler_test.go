package exception

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/calendars"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/controllers/view"
)

const (
	hour     = time.Hour
	inForce  = "Active True InForce, Ready True Succeeded"
	notFound = "Active False GateNotFound, Ready False GateNotFound"
)

var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// cluster is an API server in memory, with a reconciler of exceptions and a clock.
type cluster struct {
	*testing.T
	client.WithWatch
	*Reconciler
	clock *clocktesting.FakePassiveClock
	// beforeDelete is called before a deletion, and hidden makes the cache of the reconciler lack all Gates.
	beforeDelete func()
	hidden       bool
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, clock: clocktesting.NewFakePassiveClock(start)}
	c.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Gate{}, &v1alpha1.GateException{}).
		WithIndex(&v1alpha1.GateException{}, view.GateRefField, func(obj client.Object) []string {
			return []string{obj.(*v1alpha1.GateException).Spec.GateRef.Name} //nolint:forcetypeassert // of the index
		}).Build()
	cached := interceptor.NewClient(c.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, isGate := obj.(*v1alpha1.Gate); isGate && c.hidden {
				return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("gates").GroupResource(), key.Name)
			}
			return api.Get(ctx, key, obj, opts...)
		},
		Delete: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if c.beforeDelete != nil {
				c.beforeDelete()
			}
			return api.Delete(ctx, obj, opts...)
		},
	})
	c.Reconciler = &Reconciler{
		Client: cached, APIReader: c.WithWatch, EventRecorder: record.NewFakeRecorder(100), Calendars: &calendars.Reader{}, Clock: c.clock,
		Stamped: func(context.Context) (bool, error) { return true, nil },
	}
	return c
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// gate creates a closed Gate.
func (c *cluster) gate(name string) *v1alpha1.Gate {
	c.Helper()
	g := &v1alpha1.Gate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Finalizers: []string{v1alpha1.GateFinalizer}},
		Spec:       v1alpha1.GateSpec{Default: v1alpha1.StateClosed},
	}
	c.must(c.Create(c.Context(), g))
	return g
}

// exception creates an exception that opens a Gate between two times after start.
func (c *cluster) exception(name, gate string, from, until time.Duration, ttl *v1alpha1.Duration) *v1alpha1.GateException {
	c.Helper()
	midnight := "00:00"
	e := &v1alpha1.GateException{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1}, Spec: v1alpha1.GateExceptionSpec{
		GateRef: v1alpha1.GateReference{Name: gate}, TimeZone: "UTC", TTLAfterExpired: ttl,
		ValidFrom: metav1.NewTime(start.Add(from)), ValidUntil: metav1.NewTime(start.Add(until)),
		OpenPeriods: []v1alpha1.Period{{Name: "always", Start: &midnight, End: &midnight}},
	}}
	c.must(c.Create(c.Context(), e))
	return e
}

// look reconciles an exception at a time after start, and reads it. It returns the delay of the next reconciliation.
func (c *cluster) look(e *v1alpha1.GateException, at time.Duration) time.Duration {
	c.Helper()
	c.clock.SetTime(start.Add(at))
	key := client.ObjectKeyFromObject(e)
	result, err := c.Reconcile(c.Context(), ctrl.Request{NamespacedName: key})
	c.must(errors.Join(err, client.IgnoreNotFound(c.Get(c.Context(), key, e))))
	return result.RequeueAfter
}

func (c *cluster) gone(e *v1alpha1.GateException) bool {
	c.Helper()
	err := c.Get(c.Context(), client.ObjectKeyFromObject(e), &v1alpha1.GateException{})
	c.must(client.IgnoreNotFound(err))
	return err != nil
}

func (c *cluster) expect(e *v1alpha1.GateException, want string) {
	c.Helper()
	var got []string
	for _, is := range e.Status.Conditions {
		got = append(got, fmt.Sprintf("%s %s %s", is.Type, is.Status, is.Reason))
	}
	slices.Sort(got)
	if strings.Join(got, ", ") != want {
		c.Errorf("%s: got %q, want %q", e.Name, got, want)
	}
}

func TestExpiredExceptionIsKeptWithoutTTL(t *testing.T) {
	c := newCluster(t)
	c.gate("production")
	kept := c.exception("kept", "production", 0, hour, nil)
	brief := c.exception("brief", "production", hour, 2*hour, &v1alpha1.Duration{Duration: 5 * time.Minute})
	c.look(kept, 0)
	c.look(brief, 0)
	if left := c.look(kept, 2*hour); left != 10*time.Minute { // it is reconciled for a day, because the clock may be wrong
		t.Errorf("the expired exception is requeued after %s", left)
	}
	c.look(kept, hour/2)
	c.expect(kept, inForce)
	c.look(kept, 2*hour)
	if left := c.look(brief, 2*hour); left != 5*time.Minute {
		t.Errorf("it will be deleted in %s", left)
	}
	if c.look(brief, 2*hour+5*time.Minute-time.Second); brief.DeletionTimestamp != nil {
		t.Error("deleted too early")
	}
	c.look(brief, 2*hour+5*time.Minute)
	c.look(brief, 2*hour+5*time.Minute)
	if left := c.look(kept, 1000*hour); left != 0 {
		t.Errorf("the expired exception is requeued after %s", left)
	}
	if !c.gone(brief) || c.gone(kept) {
		t.Errorf("deleted is the exception with a TTL: %t, without: %t", c.gone(brief), c.gone(kept))
	}
}

func TestConcurrentlyEditedExceptionIsNotDeleted(t *testing.T) {
	c := newCluster(t)
	c.gate("production")
	e := c.exception("brief", "production", 0, hour, &v1alpha1.Duration{})
	c.look(e, hour)
	c.beforeDelete = func() {
		edited := &v1alpha1.GateException{}
		c.must(c.Get(t.Context(), client.ObjectKeyFromObject(e), edited))
		edited.Generation, edited.Spec.ValidUntil = 2, metav1.NewTime(start.Add(2*hour))
		c.must(c.Update(c.Context(), edited))
	}
	if left := c.look(e, hour); left != ownwrites.StaleRetry || e.DeletionTimestamp != nil {
		t.Errorf("requeued after %s, deleted is %t", left, e.DeletionTimestamp != nil)
	}
	c.look(e, hour)
	c.expect(e, inForce)
}

func TestExceptionWithoutGateIsDeletedImmediately(t *testing.T) {
	c := newCluster(t)
	for name, leave := range map[string]func(*v1alpha1.Gate) error{
		"gone": func(g *v1alpha1.Gate) error {
			g.Finalizers = nil
			return errors.Join(c.Update(t.Context(), g), c.Delete(t.Context(), g))
		},
		"suspended":      func(g *v1alpha1.Gate) error { g.Spec.Suspend = true; return c.Update(t.Context(), g) },
		"under-deletion": func(g *v1alpha1.Gate) error { return c.Delete(t.Context(), g) },
		"still-there":    nil,
	} {
		g, e := c.gate(name), c.exception(name, name, 0, hour, nil)
		c.look(e, 0)
		c.expect(e, inForce)
		g.Status.Exceptions = []v1alpha1.ExceptionRecord{{Name: name, Reason: v1alpha1.InForceReason}}
		c.must(c.WithWatch.Status().Update(t.Context(), g))
		if leave != nil {
			c.must(leave(g))
		}
		c.must(c.Delete(t.Context(), e))
		if c.look(e, 0); c.gone(e) != (leave != nil) {
			t.Errorf("the Gate is %s, and the exception is deleted: %t", name, c.gone(e))
		}
	}
}

// The cache of another shard does not have the Gate.
func TestShardReconcilesExceptionsOfItsGatesAndOfNoGate(t *testing.T) {
	c := newCluster(t)
	g, e := c.gate("production"), c.exception("hotfix", "production", 0, hour, nil)
	c.hidden = true
	if c.look(e, 0); len(e.Status.Conditions)+len(e.Finalizers) > 0 {
		t.Errorf("the other shard wrote %+v", e)
	}
	c.hidden = false
	c.look(e, 0)
	c.expect(e, inForce)
	g.Finalizers = nil
	c.must(errors.Join(c.Update(t.Context(), g), c.Delete(t.Context(), g)))
	c.hidden = true
	c.look(e, 0)
	c.expect(e, notFound)
}

func TestInvalidExceptionIsStalledUntilFixed(t *testing.T) {
	c := newCluster(t)
	c.gate("production")
	e := c.exception("typo", "production", 0, hour, nil)
	fixed := e.Spec.OpenPeriods
	never := "0 0 31 4-6/2 *"
	e.Spec.OpenPeriods = []v1alpha1.Period{{Name: "never", Schedule: &never, Duration: &v1alpha1.Duration{Duration: hour}}}
	c.must(c.Update(t.Context(), e))
	c.look(e, 0)
	c.expect(e, "Active True InvalidSpec, Ready False InvalidSpec, Stalled True InvalidSpec")
	if got := conditions.GetMessage(e, "Ready"); !strings.Contains(got, "Periods[0].schedule: Invalid value: ") {
		t.Errorf("the message is %q", got)
	}
	e.Spec.OpenPeriods = fixed
	c.must(c.Update(t.Context(), e))
	c.look(e, 0)
	c.expect(e, inForce)
}
