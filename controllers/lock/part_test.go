package lock

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
)

func TestGateEntryInLock(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	refs := []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}}
	locked, unlocked := lock.NewPart(true, refs...), lock.NewPart(false)
	for name, tc := range map[string]struct {
		opened metav1.ConditionStatus
		edit   func(*v1alpha1.Gate)
		want   lock.Part
		stays  bool
	}{
		"closed":                {metav1.ConditionFalse, func(*v1alpha1.Gate) {}, locked, false},
		"open":                  {metav1.ConditionTrue, func(*v1alpha1.Gate) {}, unlocked, false},
		"closed, lenient":       {metav1.ConditionFalse, func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeLenient }, unlocked, false},
		"closed, audit":         {metav1.ConditionFalse, func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeAudit }, unlocked, false},
		"closed, being deleted": {metav1.ConditionFalse, func(g *v1alpha1.Gate) { g.DeletionTimestamp = &metav1.Time{Time: now} }, unlocked, false},
		"open, due to close": {metav1.ConditionTrue, func(g *v1alpha1.Gate) {
			g.Status.NextTransition = &v1alpha1.Transition{At: metav1.NewTime(now), State: v1alpha1.StateClosed}
		}, locked, false},
		"closed, edited":    {metav1.ConditionFalse, func(g *v1alpha1.Gate) { g.Generation++ }, lock.Part{}, true},
		"closed, suspended": {metav1.ConditionFalse, func(g *v1alpha1.Gate) { g.Spec.Suspend = true }, lock.Part{}, true},
	} {
		g := &v1alpha1.Gate{}
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: tc.opened}}
		tc.edit(g)
		if got, stays := newPart(g, refs, now); !got.Equal(tc.want) || stays != tc.stays {
			t.Errorf("%s: got %+v, stays is %t", name, got, stays)
		}
	}
}
