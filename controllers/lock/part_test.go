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
	overlaid := func(state v1alpha1.State, until time.Duration, then v1alpha1.State, targets ...v1alpha1.TargetReference) func(*v1alpha1.Gate) {
		return func(g *v1alpha1.Gate) {
			g.Status.Overlays = []v1alpha1.Overlay{{State: state, Until: &metav1.Time{Time: now.Add(until)}, Next: then, Targets: v1alpha1.NewOverlayTargets(append(targets, v1alpha1.TargetReference{Kind: "Certificate", Name: "*"}))}}
		}
	}
	with := func(part lock.Part, locks bool, namespace string) lock.Part {
		part.AddOverlay(locks, true, refs, []string{namespace}, refs)
		return part
	}
	elsewhere := v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps", Namespace: "infra"}
	const open, shut = v1alpha1.StateOpened, v1alpha1.StateClosed
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
		"closed, opened for some":          {metav1.ConditionFalse, overlaid(open, time.Hour, "", refs...), with(locked, false, ""), false},
		"closed, opened until now":         {metav1.ConditionFalse, overlaid(open, 0, "", refs...), locked, false},
		"closed, opened from now":          {metav1.ConditionFalse, overlaid("", 0, open, refs...), locked, false},
		"open, closed for some":            {metav1.ConditionTrue, overlaid(shut, time.Hour, "", refs...), with(unlocked, true, ""), false},
		"open, closed until now":           {metav1.ConditionTrue, overlaid(shut, 0, "", refs...), with(unlocked, true, ""), false},
		"open, closed from now":            {metav1.ConditionTrue, overlaid("", 0, shut, refs...), with(unlocked, true, ""), false},
		"open, closed later":               {metav1.ConditionTrue, overlaid("", time.Hour, shut, refs...), unlocked, false},
		"closed, opened elsewhere":         {metav1.ConditionFalse, overlaid(open, time.Hour, "", elsewhere), locked, false},
		"closed, lenient, closed for some": {metav1.ConditionFalse, func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeLenient; overlaid(shut, time.Hour, "", refs...)(g) }, unlocked, false},
		"closed, edited":                   {metav1.ConditionFalse, func(g *v1alpha1.Gate) { g.Generation++ }, lock.Part{}, true},
		"closed, suspended":                {metav1.ConditionFalse, func(g *v1alpha1.Gate) { g.Spec.Suspend = true }, lock.Part{}, true},
	} {
		g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "production"}}
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: tc.opened}}
		tc.edit(g)
		if got, stays := (&Reconciler{}).newPart(g, "shop", refs, now); !got.Equal(tc.want) || stays != tc.stays {
			t.Errorf("%s: got %+v, stays is %t", name, got, stays)
		}
	}
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "production"}}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionFalse}}
	overlaid(open, time.Hour, "", refs...)(g)
	if got, _ := (&Reconciler{}).newPart(g, v1alpha1.AnyName, nil, now); !got.Equal(with(lock.NewPart(true), false, "shop")) {
		t.Errorf("in the lock of all namespaces: got %+v", got)
	}
}
