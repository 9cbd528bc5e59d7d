package gate

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/internal/queue"
)

func TestOnlyClosingTransitionIsUrgent(t *testing.T) {
	edge := start
	transition := func(state v1alpha1.State, after time.Duration) *v1alpha1.Transition {
		return &v1alpha1.Transition{State: state, At: metav1.NewTime(edge.Add(after))}
	}
	overlay := func(state v1alpha1.State, after time.Duration, then v1alpha1.State) *v1alpha1.Overlay {
		return &v1alpha1.Overlay{State: state, Until: &metav1.Time{Time: edge.Add(after)}, Next: then}
	}
	for name, tc := range map[string]struct {
		next    *v1alpha1.Transition
		overlay *v1alpha1.Overlay
		behind  time.Duration
		want    queue.Class
	}{
		"it closes":                                   {transition(v1alpha1.StateClosed, 0), nil, 0, queue.Hold},
		"it closes by the API server's clock":         {transition(v1alpha1.StateClosed, time.Minute), nil, time.Minute, queue.Hold},
		"it closes, the API server's clock is behind": {transition(v1alpha1.StateClosed, 0), nil, -time.Minute, queue.Hold},
		"it opens":                   {transition(v1alpha1.StateOpened, 0), nil, 0, queue.Change},
		"it closes later":            {transition(v1alpha1.StateClosed, time.Second), nil, 0, queue.Change},
		"no transition is scheduled": {nil, nil, 0, queue.Change},
		"an overlay closes":          {nil, overlay("", 0, v1alpha1.StateClosed), 0, queue.Hold},
		"an overlay stops opening":   {nil, overlay(v1alpha1.StateOpened, 0, ""), 0, queue.Hold},
		"an overlay opens":           {nil, overlay("", 0, v1alpha1.StateOpened), 0, queue.Change},
		"an overlay closes later":    {nil, overlay("", time.Second, v1alpha1.StateClosed), 0, queue.Change},
	} {
		g := &v1alpha1.Gate{}
		if g.Status.NextTransition = tc.next; tc.overlay != nil {
			g.Status.Overlays = []v1alpha1.Overlay{*tc.overlay}
		}
		if got := classAt(g, edge, tc.behind); got != tc.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// prioritized records the Gates that are prioritized.
type prioritized struct {
	enqueue.Enqueuer
	gates []string
}

func (p *prioritized) PrioritizeGate(key types.NamespacedName, class queue.Class) {
	p.gates = append(p.gates, fmt.Sprint(key.Name, " ", class == queue.Hold))
}

// The API server may take seconds for a write, during which the next transition may become due.
func TestTransitionDelayCountsFromWrite(t *testing.T) {
	clock, queues := clocktesting.NewFakePassiveClock(start), &prioritized{}
	r := &Reconciler{Clock: clock, State: &State{}, Queues: queues, Decider: &Decider{}}
	g := newGate(v1alpha1.GateSpec{})
	g.Status.NextTransition = &v1alpha1.Transition{State: v1alpha1.StateClosed, At: metav1.NewTime(start.Add(time.Second))}
	r.State.add(g, start)
	edges := []time.Time{g.Status.NextTransition.At.Time, {}}
	for passed, want := range map[time.Duration]time.Duration{0: time.Second, 200 * time.Millisecond: 800 * time.Millisecond, 2 * time.Second: time.Millisecond} {
		clock.SetTime(start.Add(passed))
		if got := r.requeueAfter(g, edges); got != want {
			t.Errorf("%s after the decision, it is requeued after %s, want %s", passed, got, want)
		}
	}
	equal(t, queues.gates, []string{"production true", "production true", "production true"})
}

// policies is a reader of admission policies and their bindings.
type policies struct {
	client.Reader
	binding admissionv1.ValidatingAdmissionPolicyBindingSpec
	err     error
}

func (p policies) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if binding, ok := obj.(*admissionv1.ValidatingAdmissionPolicyBinding); ok {
		binding.Spec = p.binding
	}
	return p.err
}

func TestIdentitiesAreStampedByBoundPolicy(t *testing.T) {
	resource := schema.GroupResource{Resource: "validatingadmissionpolicies"}
	bound := func(policy string, actions ...admissionv1.ValidationAction) policies {
		return policies{binding: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy, ValidationActions: actions}}
	}
	for name, tc := range map[string]struct {
		reader policies
		want   bool
		err    bool
	}{
		"bound":                     {bound(ExceptionStamp, admissionv1.Audit, admissionv1.Deny), true, false},
		"only audited":              {bound(ExceptionStamp, admissionv1.Audit), false, false},
		"bound to another policy":   {bound(ApprovalPolicy, admissionv1.Deny), false, false},
		"missing":                   {policies{err: apierrors.NewNotFound(resource, "")}, false, false},
		"the controller may not":    {policies{err: apierrors.NewForbidden(resource, "", nil)}, false, false},
		"the API server is unready": {policies{err: apierrors.NewServiceUnavailable("starting")}, false, true},
	} {
		if got, err := StampedBy(tc.reader, ExceptionStamp)(t.Context()); got != tc.want || (err != nil) != tc.err {
			t.Errorf("%s: got %t, %v", name, got, err)
		}
	}
}
