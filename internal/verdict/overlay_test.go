package verdict_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// overlaid adds an overlay for the Kustomization apps, which lasts some time after noon.
func overlaid(exception string, state v1alpha1.State, after time.Duration, then v1alpha1.State) gateOption {
	return func(g *v1alpha1.Gate) {
		since := metav1.NewTime(noon.Add(-time.Minute))
		g.Status.Overlays = append(g.Status.Overlays, v1alpha1.Overlay{
			Exception: exception, State: state, Since: &since, Until: &metav1.Time{Time: noon.Add(after)}, Next: then,
			Targets: []v1alpha1.OverlayTarget{{Kind: "Kustomization", Name: "apps"}},
		})
	}
}

func TestOverlaysOfTarget(t *testing.T) {
	const open, shut, same = v1alpha1.StateOpened, v1alpha1.StateClosed, v1alpha1.State("")
	hour := time.Hour
	for name, test := range map[string]struct {
		gate      *v1alpha1.Gate
		now, then verdict.Effect // at noon, and an hour later
	}{
		"without overlays":                       {closed("a"), verdict.Closed, verdict.Closed},
		"opened":                                 {closed("a", overlaid("x", open, 2*hour, same)), verdict.Open, verdict.Open},
		"opened, then like the closed gate":      {closed("a", overlaid("x", open, hour, same)), verdict.Open, verdict.Closed},
		"opened, then closed":                    {opened("a", overlaid("x", open, hour, shut)), verdict.Open, verdict.Closed},
		"opened, then like the open gate":        {opened("a", overlaid("x", open, hour, same)), verdict.Open, verdict.Undecided},
		"opened, and the gate closes":            {opened("a", next(hour, shut), overlaid("x", open, 2*hour, same)), verdict.Open, verdict.Undecided},
		"opened, and both end":                   {opened("a", next(hour, shut), overlaid("x", open, hour, same)), verdict.Open, verdict.Closed},
		"closed":                                 {opened("a", overlaid("x", shut, 2*hour, same)), verdict.Closed, verdict.Closed},
		"like the open gate, then closed":        {opened("a", overlaid("x", same, hour, shut)), verdict.Open, verdict.Closed},
		"like the closed gate, then opened":      {closed("a", overlaid("x", same, hour, open)), verdict.Closed, verdict.Closed},
		"opened and closed":                      {closed("a", overlaid("x", open, 2*hour, same), overlaid("y", shut, 2*hour, same)), verdict.Closed, verdict.Closed},
		"closed and opened":                      {closed("a", overlaid("x", shut, 2*hour, same), overlaid("y", open, 2*hour, same)), verdict.Closed, verdict.Closed},
		"opened twice":                           {closed("a", overlaid("x", open, hour, same), overlaid("y", open, 2*hour, same)), verdict.Open, verdict.Undecided},
		"opened, and another one closes":         {closed("a", overlaid("x", open, 2*hour, same), overlaid("y", same, hour, shut)), verdict.Open, verdict.Closed},
		"the gate is suspended":                  {closed("a", suspended, overlaid("x", open, 2*hour, same)), verdict.Suspended, verdict.Suspended},
		"the spec was edited":                    {closed("a", edited, overlaid("x", open, 2*hour, same)), verdict.Undecided, verdict.Undecided},
		"a close of the open gate was requested": {opened("a", askedToClose, overlaid("x", open, 2*hour, same)), verdict.Undecided, verdict.Undecided},
		"the gate was never decided":             {closed("a", untold, overlaid("x", open, 2*hour, same)), verdict.Undecided, verdict.Undecided},
		"the gate is deleted":                    {closed("a", deleted, overlaid("x", shut, 2*hour, same)), verdict.Open, verdict.Open},
	} {
		for at, want := range map[time.Time]verdict.Effect{noon: test.now, noon.Add(hour): test.then} {
			if got := verdict.Governing("", verdict.Scope{}.ForTarget(test.gate, &kustomization("apps").Unstructured), at).Effect; got != want {
				t.Errorf("%s: got effect %d at %s, want %d", name, got, at.Format("15:04"), want)
			}
		}
		if other := (verdict.Scope{}).ForTarget(test.gate, &kustomization("other").Unstructured); other != test.gate {
			t.Errorf("%s: an overlay changes the gate for a target that it does not match", name)
		}
	}
}

func TestOverlayExplainsItself(t *testing.T) {
	g := opened("a", overlaid("x", v1alpha1.StateClosed, time.Hour, ""))
	v := verdict.Judge(verdict.Observed{}, []verdict.Gate{verdict.Governing("shop/a", verdict.Scope{}.ForTarget(g, &kustomization("apps").Unstructured), noon)})
	const want = "Held by gate 'shop/a' until 2026-11-24T13:00:00Z: exception 'x'."
	if got := verdict.Explain(v.Holders, noon); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, state := range []v1alpha1.State{v1alpha1.StateOpened, v1alpha1.StateClosed} {
		g.Spec.Release = &v1alpha1.ReleasePolicy{}
		g.Status.Overlays[0].State = state
		if is := (verdict.Scope{}).ForTarget(g, &kustomization("apps").Unstructured); is.Spec.Release != nil || g.Spec.Release == nil {
			t.Errorf("a target that an overlay has %s takes part in the release of the others", state)
		}
	}
}
