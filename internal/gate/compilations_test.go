package gate_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// A spec that changed without a new generation shows that the cached compilation decides.
func TestSpecIsCompiledOncePerInputRevision(t *testing.T) {
	exception := &v1alpha1.GateException{}
	exception.Name, exception.UID, exception.Generation = "freeze", "e1", 1
	calendars := timetable.Calendars{}
	cases := map[string]struct {
		change func(*v1alpha1.Gate, *v1alpha1.GateException, *timetable.Calendars, *gate.Compilations)
		isOld  bool
	}{
		"nothing changed": {func(*v1alpha1.Gate, *v1alpha1.GateException, *timetable.Calendars, *gate.Compilations) {}, true},
		"a new generation": {func(g *v1alpha1.Gate, _ *v1alpha1.GateException, _ *timetable.Calendars, _ *gate.Compilations) {
			g.Generation++
		}, false},
		"a new exception": {func(_ *v1alpha1.Gate, e *v1alpha1.GateException, _ *timetable.Calendars, _ *gate.Compilations) {
			e.UID = "e2"
		}, false},
		"an edited exception": {func(_ *v1alpha1.Gate, e *v1alpha1.GateException, _ *timetable.Calendars, _ *gate.Compilations) {
			e.Generation++
		}, false},
		"other calendars": {func(_ *v1alpha1.Gate, _ *v1alpha1.GateException, c *timetable.Calendars, _ *gate.Compilations) {
			*c = timetable.Calendars{}
		}, false},
		"another Gate": {func(g *v1alpha1.Gate, _ *v1alpha1.GateException, _ *timetable.Calendars, _ *gate.Compilations) {
			g.UID = types.UID("other")
		}, false},
		"the Gate was evicted": {func(g *v1alpha1.Gate, _ *v1alpha1.GateException, _ *timetable.Calendars, c *gate.Compilations) {
			c.Forget(g.UID)
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, g, e, files := &gate.Compilations{}, closed(), exception.DeepCopy(), calendars
			other := e.DeepCopy()
			other.Name, other.UID = "other", "e0"
			g.UID, g.Generation = "g", 1
			if d := c.Snapshot(g, files, e, other).Decide(noon); d.State != isClosed {
				t.Fatalf("got %s", d.State)
			}
			g.Spec.Default = v1alpha1.StateOpened
			tc.change(g, e, &files, c)
			if d := c.Snapshot(g, files, other, e).Decide(noon); (d.State == isClosed) != tc.isOld {
				t.Errorf("got %s", d.State)
			}
		})
	}
}

func TestExpiredExceptionsAreNotCompiled(t *testing.T) {
	g := production(closed())
	var over []*v1alpha1.GateException
	for i := range 1000 {
		e := exception(opensIn(midday))
		e.Name = fmt.Sprintf("old-%d", i)
		e.Spec.ValidFrom, e.Spec.ValidUntil = *instant("2026-01-01T00:00:00Z"), *instant("2026-01-02T00:00:00Z")
		over = append(over, e)
	}
	decide := func() { gate.NewSnapshot(g, nil, over...).Decide(noon) }
	if n := testing.AllocsPerRun(10, decide); n > 10_000 { // a closure and a key for each
		t.Errorf("%g allocations", n)
	}
}
