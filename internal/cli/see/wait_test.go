package see

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
)

// A suspended Gate that was open still releases its targets, so it is neither open nor closed.
func TestStateToWaitFor(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	decided := func(opened metav1.ConditionStatus, edits ...func(*v1alpha1.Gate)) *v1alpha1.Gate {
		g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Status: v1alpha1.GateStatus{
			ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: opened, Reason: v1alpha1.OpenPeriodReason}},
		}}
		for _, edit := range edits {
			edit(g)
		}
		return g
	}
	suspended := func(g *v1alpha1.Gate) { g.Spec.Suspend = true }
	edited := func(g *v1alpha1.Gate) { g.Generation = 2 }
	invalid := func(g *v1alpha1.Gate) { g.Status.Conditions[0].Reason = v1alpha1.InvalidSpecReason }
	due := func(g *v1alpha1.Gate) {
		g.Status.NextTransition = &v1alpha1.Transition{At: metav1.NewTime(now), State: v1alpha1.StateClosed}
	}
	for name, tc := range map[string]struct {
		gate         *v1alpha1.Gate
		open, closed bool
	}{
		"open":                 {decided(metav1.ConditionTrue), true, false},
		"closed":               {decided(metav1.ConditionFalse), false, true},
		"suspended while open": {decided(metav1.ConditionTrue, suspended), false, false},
		"suspended and closed": {decided(metav1.ConditionFalse, suspended), false, true},
		"edited":               {decided(metav1.ConditionFalse, edited), false, false},
		"invalid, but open":    {decided(metav1.ConditionTrue, invalid), false, false},
		"a close that is due":  {decided(metav1.ConditionTrue, due), false, true},
		"before a decision":    {&v1alpha1.Gate{}, false, false},
	} {
		if open, closed := hasState(tc.gate, "open", now), hasState(tc.gate, "closed", now); open != tc.open || closed != tc.closed {
			t.Errorf("%s: open %t, closed %t", name, open, closed)
		}
	}
}

// A pipeline waits for hours, in which the API server may restart.
func TestTransientErrorsOfWait(t *testing.T) {
	gates := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "gates"}
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{apierrors.NewServiceUnavailable("starting"), true},
		{apierrors.NewTooManyRequests("busy", 1), true},
		{fmt.Errorf("no cluster: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), true},
		{fmt.Errorf("no cluster: %w", context.DeadlineExceeded), true},
		{fmt.Errorf("no cluster: %w", io.EOF), true},
		{apierrors.NewForbidden(gates, "production", nil), false},
		{kube.NotFoundError("there is no gate"), false},
		{errors.New("you are not authenticated: log in again"), false},
	} {
		if got := isTransient(tc.err); got != tc.want {
			t.Errorf("%v: %t", tc.err, got)
		}
	}
}
