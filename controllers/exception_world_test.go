package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"
	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/exception"
)

// reporter returns a reconciler of exceptions with the client and the clock of the world.
func (w *world) reporter() *exception.Reconciler {
	return &exception.Reconciler{
		Client: w.Client, EventRecorder: w.Events, APIReader: cluster.Client, Calendars: w.State.Calendars, Clock: w.FakeClock, ServerTime: w.ServerTime, Metrics: runtimectrl.Metrics{},
		Stamped: func(context.Context) (bool, error) { return !w.Unstamped, nil },
	}
}

// at returns a time after start in the type of specs.
func at(after time.Duration) metav1.Time { return metav1.NewTime(start.Add(after)) }

// always returns a period that covers every instant.
func always() []v1alpha1.Period {
	midnight := "00:00"
	return []v1alpha1.Period{{Name: "always", Start: &midnight, End: &midnight}}
}

// openingIt, closingIt, shuttingIt and replacingIt set the effect of an exception on the Gate. Only closingIt can never open it: shuttingIt
// could open it in 2099.
func openingIt(e *v1alpha1.GateException)   { e.Spec.OpenPeriods = always() }
func closingIt(e *v1alpha1.GateException)   { e.Spec.ClosePeriods = always() }
func replacingIt(e *v1alpha1.GateException) { openingIt(e); e.Spec.Default = v1alpha1.StateClosed }
func shuttingIt(e *v1alpha1.GateException) {
	replacingIt(e)
	from := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	e.Spec.OpenPeriods = []v1alpha1.Period{{Name: "later", From: v1alpha1.NewDateTime(from), Until: v1alpha1.NewDateTime(from.Add(hour))}}
}

// exception creates an exception of the Gate production that is valid between two times after start. does sets its effect.
func (w *world) exception(name string, does func(*v1alpha1.GateException), from, until time.Duration, changes ...func(*v1alpha1.GateException)) *v1alpha1.GateException {
	w.Helper()
	e := &v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: "production"}, TimeZone: "UTC", ValidFrom: at(from), ValidUntil: at(until),
		},
	}
	does(e)
	for _, change := range changes {
		change(e)
	}
	w.Must(cluster.Client.Create(w.Context(), e))
	return e
}

// tryException reconciles an exception once. Then it reads the exception, if it still exists.
func (w *world) tryException(e *v1alpha1.GateException) (ctrl.Result, error) {
	w.Helper()
	result, err := w.reporter().Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(e)})
	return result, errors.Join(err, client.IgnoreNotFound(w.TryRead(e)))
}

func (w *world) reportOn(e *v1alpha1.GateException) ctrl.Result {
	w.Helper()
	result, err := w.tryException(e)
	w.Must(err)
	return result
}

func (w *world) editException(e *v1alpha1.GateException, change func(*v1alpha1.GateException)) {
	w.Helper()
	w.Edit(e, func() { change(e) })
}

// stamped sets the annotations that the API server stamps with config/policies. Each line of approvals has a generation and a user, such as
// "1 bob".
func (w *world) stamped(e *v1alpha1.GateException, authors, approvals string) {
	w.Helper()
	w.editException(e, func(e *v1alpha1.GateException) {
		e.Annotations = map[string]string{v1alpha1.AuthorsAnnotation: authors, v1alpha1.ApproveRequestedByAnnotation: stampsOf(e, approvals)}
	})
}

func stampsOf(e *v1alpha1.GateException, approvals string) string {
	var lines []string
	for _, line := range strings.Split(approvals, "\n") {
		if number, by, ok := strings.Cut(line, " "); ok {
			line = fmt.Sprintf("generation=%s,uid=%s %s", number, e.UID, by)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// asks sets the annotation that requests an approval.
func (w *world) asks(e *v1alpha1.GateException, value string) {
	w.Helper()
	w.editException(e, func(e *v1alpha1.GateException) {
		if e.Annotations == nil {
			e.Annotations = map[string]string{}
		}
		e.Annotations[v1alpha1.ApproveRequestedAtAnnotation] = value
	})
}

// saysException checks the conditions of an exception as "type status reason".
func (w *world) saysException(e *v1alpha1.GateException, want ...string) {
	w.Helper()
	var got []string
	for _, name := range []string{v1alpha1.ActiveCondition, "Ready", "Stalled"} {
		if c := conditions.Get(e, name); c != nil {
			got = append(got, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("%s: got %q, want %q", e.Name, got, want)
	}
}

// withoutGates is a cache without Gates, as if they belonged to another shard.
type withoutGates struct{ client.Client }

// Get implements client.Client.
func (c withoutGates) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*v1alpha1.Gate); ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "gates"}, key.Name)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

// behind is a cache that has an older version of an exception or a Gate.
type behind struct {
	client.Client
	stale client.Object
}

// Get implements client.Client.
func (c behind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	switch stale := c.stale.(type) {
	case *v1alpha1.GateException:
		if e, ok := obj.(*v1alpha1.GateException); ok {
			stale.DeepCopyInto(e)
			return nil
		}
	case *v1alpha1.Gate:
		if g, ok := obj.(*v1alpha1.Gate); ok {
			stale.DeepCopyInto(g)
			return nil
		}
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func requestFor(obj client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}

// gone returns whether an object no longer exists.
func (w *world) gone(obj client.Object) bool {
	w.Helper()
	err := cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
	if !apierrors.IsNotFound(err) {
		w.Must(err)
	}
	return err != nil
}
