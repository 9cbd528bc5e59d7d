package checker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func minute(n int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(n) * time.Minute)) }

func span(from, until int) v1alpha1.Period {
	a, b := minute(from), minute(until)
	return v1alpha1.Period{Name: "span", From: v1alpha1.NewDateTime(a.Time), Until: v1alpha1.NewDateTime(b.Time)}
}

func TestCheckerFollowsDecisionTable(t *testing.T) {
	closed, opened := v1alpha1.GateSpec{Default: v1alpha1.StateClosed}, v1alpha1.GateSpec{Default: v1alpha1.StateOpened}
	with := func(spec v1alpha1.GateSpec, change func(*v1alpha1.GateSpec)) v1alpha1.GateSpec {
		change(&spec)
		return spec
	}
	frozen := with(opened, func(s *v1alpha1.GateSpec) {
		s.ClosePeriods = []v1alpha1.ClosePeriod{{Period: span(-10, 10), Override: v1alpha1.OverrideDeny}}
	})
	hour := with(closed, func(s *v1alpha1.GateSpec) { s.Window = &v1alpha1.Duration{Duration: time.Hour} })
	open := func(at int) Request { return Request{Action: v1alpha1.RequestOpen, At: minute(at).Time} }
	shut := func(at int) Request { return Request{Action: v1alpha1.RequestClose, At: minute(at).Time} }
	seen := func(r Request, at int) Request { r.AcceptedAt = minute(at).Time; return r }
	excepted := func(rest v1alpha1.State, open, close []v1alpha1.Period) []v1alpha1.GateException {
		return []v1alpha1.GateException{{Spec: v1alpha1.GateExceptionSpec{
			Default: rest, ValidFrom: minute(-10), ValidUntil: minute(10), OpenPeriods: open, ClosePeriods: close,
		}}}
	}
	inside, outside := []v1alpha1.Period{span(-5, 5)}, []v1alpha1.Period{span(5, 6)}
	for name, c := range map[string]struct {
		gate gate
		want string
	}{
		"only a default":                                     {gate{Gate: v1alpha1.Gate{Spec: closed}}, "closed Default"},
		"in a window":                                        {gate{Gate: v1alpha1.Gate{Spec: with(closed, func(s *v1alpha1.GateSpec) { s.OpenPeriods = []v1alpha1.Period{span(0, 1)} })}}, "opened OpenPeriod"},
		"at the end of a window":                             {gate{Gate: v1alpha1.Gate{Spec: with(closed, func(s *v1alpha1.GateSpec) { s.OpenPeriods = []v1alpha1.Period{span(-1, 0)} })}}, "closed OutsideOpenPeriods"},
		"open was requested":                                 {gate{Gate: v1alpha1.Gate{Spec: hour}, requests: []Request{open(-59)}}, "opened OpenRequested"},
		"the window of the request has ended":                {gate{Gate: v1alpha1.Gate{Spec: hour}, requests: []Request{open(-60)}}, "closed Default"},
		"close wins on a tie":                                {gate{Gate: v1alpha1.Gate{Spec: opened}, requests: []Request{shut(-1), open(-1)}}, "closed CloseRequested"},
		"a planned request has not begun":                    {gate{Gate: v1alpha1.Gate{Spec: closed}, requests: []Request{open(1)}}, "closed Default"},
		"a hard freeze":                                      {gate{Gate: v1alpha1.Gate{Spec: frozen}, requests: []Request{open(-1)}}, "closed ClosePeriod"},
		"a request that ended does not return":               {gate{Gate: v1alpha1.Gate{Spec: closed}, requests: []Request{open(-9), {Action: v1alpha1.RequestClose, At: minute(-2).Time, Window: time.Minute}}}, "closed Default"},
		"a short close does not end a long one":              {gate{Gate: v1alpha1.Gate{Spec: opened}, requests: []Request{shut(-9), {Action: v1alpha1.RequestClose, At: minute(-5).Time, Window: time.Minute}}}, "closed CloseRequested"},
		"an open ends all closes":                            {gate{Gate: v1alpha1.Gate{Spec: opened}, requests: []Request{shut(-9), shut(-8), open(-7)}}, "opened OpenRequested"},
		"a close that claims an earlier time than the open":  {gate{Gate: v1alpha1.Gate{Spec: closed}, requests: []Request{seen(open(-9), -9), seen(shut(-10), -8)}}, "closed CloseRequested"},
		"an open that claims an earlier time than the close": {gate{Gate: v1alpha1.Gate{Spec: closed}, requests: []Request{seen(shut(-9), -9), seen(open(-10), -8)}}, "closed CloseRequested"},
		"an open request planned before a close request":     {gate{Gate: v1alpha1.Gate{Spec: closed}, requests: []Request{seen(open(-1), -9), seen(shut(-5), -5)}}, "closed CloseRequested"},
		"an open request planned after a close request":      {gate{Gate: v1alpha1.Gate{Spec: closed}, requests: []Request{seen(open(-1), -4), seen(shut(-5), -5)}}, "opened OpenRequested"},
		"both observed at once, a minute apart":              {gate{Gate: v1alpha1.Gate{Spec: closed}, requests: []Request{seen(open(-4), -1), seen(shut(-5), -1)}}, "closed CloseRequested"},
		"both observed at once, two minutes apart":           {gate{Gate: v1alpha1.Gate{Spec: closed}, requests: []Request{seen(open(-3), -1), seen(shut(-5), -1)}}, "opened OpenRequested"},
		"an exception opens":                                 {gate{Gate: v1alpha1.Gate{Spec: closed}, exceptions: excepted("", inside, outside)}, "opened Exception"},
		"an exception closes and opens":                      {gate{Gate: v1alpha1.Gate{Spec: opened}, exceptions: excepted(v1alpha1.StateOpened, inside, inside)}, "closed Exception"},
		"an exception has a default":                         {gate{Gate: v1alpha1.Gate{Spec: opened}, exceptions: excepted(v1alpha1.StateClosed, outside, nil)}, "closed Exception"},
		"an exception closes and another opens":              {gate{Gate: v1alpha1.Gate{Spec: opened}, exceptions: append(excepted("", inside, nil), excepted("", nil, inside)...)}, "closed Exception"},
		"an exception without an effect":                     {gate{Gate: v1alpha1.Gate{Spec: opened}, exceptions: excepted("", nil, outside)}, "opened Default"},
	} {
		t.Run(name, func(t *testing.T) {
			state, reason := c.gate.decide(noon)
			if got := fmt.Sprint(state, " ", reason); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func kustomization(version string, suspend any, manager ...string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"kind": "Kustomization", "spec": map[string]any{"interval": "1h"}}}
	obj.SetUID("k")
	obj.SetResourceVersion(version)
	if suspend != nil {
		obj.Object["spec"].(map[string]any)["suspend"] = suspend //nolint:forcetypeassert // set above
	}
	var entries []metav1.ManagedFieldsEntry
	for _, m := range manager {
		entries = append(entries, metav1.ManagedFieldsEntry{Manager: m, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:suspend":{}}}`)})
	}
	obj.SetManagedFields(entries)
	return obj
}

// reported returns a Kustomization with a status of Flux and one of our conditions, unless that is empty.
func reported(version, ready, approved string) *unstructured.Unstructured {
	obj := kustomization(version, nil)
	conditions := []any{map[string]any{"type": "Ready", "status": ready}}
	if approved != "" {
		conditions = append(conditions, map[string]any{"type": "Approved", "status": approved})
	}
	obj.Object["status"] = map[string]any{"lastAppliedRevision": "main@sha1:1", "conditions": conditions}
	return obj
}

func TestBrokenPromiseIsFound(t *testing.T) {
	removed := reported("2", "True", "True")
	unstructured.RemoveNestedField(removed.Object, "status", "lastAppliedRevision")
	approved := kustomization("2", nil)
	approved.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Approved", "status": "True"}}}
	named := func(version, by string) *unstructured.Unstructured {
		obj := kustomization(version, nil)
		obj.SetAnnotations(map[string]string{suspendedByAnnotation: by})
		return obj
	}
	for name, c := range map[string]struct {
		before, after *unstructured.Unstructured
		byOthers      bool
		want          string
	}{
		"a hold":    {before: kustomization("1", nil), after: kustomization("2", true, controller)},
		"a release": {before: kustomization("1", true, controller), after: kustomization("2", nil)},
		"a release of a target that flux suspends, too":         {before: kustomization("1", true, controller, "flux"), after: kustomization("2", true, "flux")},
		"another client resumes its own target":                 {before: kustomization("1", true, "flux"), after: kustomization("2", nil), byOthers: true},
		"the controller resumes a target of another client":     {before: kustomization("1", true, "flux"), after: kustomization("2", nil), want: "resumed what"},
		"the controller resumes a shared target":                {before: kustomization("1", true, controller, "flux"), after: kustomization("2", nil), want: "resumed what"},
		"the controller holds a target of another client":       {before: kustomization("1", true, "flux"), after: kustomization("2", true, controller, "flux"), want: "held what"},
		"the controller takes over a shared target":             {before: kustomization("1", true, controller, "flux"), after: kustomization("2", true, controller), want: "made the owners"},
		"the controller names Gates for Flux Operator":          {before: named("1", "gate shop/a"), after: named("2", "gates shop/a, shop/b")},
		"the controller replaces the name of a user":            {before: named("1", "jane"), after: named("2", "gate shop/a"), want: "not its own"},
		"the controller writes a condition":                     {before: reported("1", "True", ""), after: reported("2", "True", "False")},
		"the controller writes the first condition":             {before: kustomization("1", nil), after: approved},
		"Flux writes its status":                                {before: reported("1", "True", ""), after: reported("2", "False", ""), byOthers: true},
		"the controller changes a condition of Flux":            {before: reported("1", "True", ""), after: reported("2", "Unknown", "True"), want: "not its own"},
		"the controller removes a status field of Flux":         {before: reported("1", "True", ""), after: removed, want: "not its own"},
		"the controller changes a spec field of another client": {before: kustomization("1", nil), after: &unstructured.Unstructured{Object: map[string]any{"kind": "Kustomization", "metadata": map[string]any{"uid": "k", "resourceVersion": "2"}}}, want: "not its own"},
	} {
		t.Run(name, func(t *testing.T) {
			log := NewLog()
			h := NewHistory(log)
			h.Saw(c.before, false, noon)
			h.Saw(c.after, false, noon)
			if c.byOthers {
				log.Wrote(c.after, noon)
			}
			got := strings.Join(h.Review(noon), "\n")
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestGateReportsClosedBeforeHolding(t *testing.T) {
	versionOfGate := func(version, opened string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"kind": "Gate", "spec": map[string]any{"default": "opened", "targets": []any{map[string]any{"kind": "Kustomization", "name": "*"}}},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Opened", "status": opened}}},
		}}
		obj.SetNamespace("ns")
		obj.SetName("g")
		obj.SetUID("g")
		obj.SetResourceVersion(version)
		return obj
	}
	held := func(version string, by string) *unstructured.Unstructured {
		obj := kustomization(version, true, controller)
		obj.SetNamespace("ns")
		obj.SetAnnotations(map[string]string{heldByAnnotation: by})
		return obj
	}
	free := func(version string) *unstructured.Unstructured {
		obj := kustomization(version, nil)
		obj.SetNamespace("ns")
		return obj
	}
	closesAt := func(g *unstructured.Unstructured, at time.Time) *unstructured.Unstructured {
		next := map[string]any{"state": "closed", "reason": "ClosePeriod", "at": at.UTC().Format(time.RFC3339)}
		if err := unstructured.SetNestedMap(g.Object, next, "status", "nextTransition"); err != nil {
			t.Fatal(err)
		}
		return g
	}
	for name, c := range map[string]struct {
		versions []*unstructured.Unstructured
		want     string
	}{
		"the status comes first":                          {[]*unstructured.Unstructured{versionOfGate("1", "True"), free("2"), versionOfGate("3", "False"), held("4", "ns/g")}, ""},
		"the hold comes first":                            {[]*unstructured.Unstructured{versionOfGate("1", "True"), free("2"), held("3", "ns/g"), versionOfGate("4", "False")}, "before its status"},
		"the gate has just opened":                        {[]*unstructured.Unstructured{versionOfGate("1", "False"), free("2"), versionOfGate("3", "True"), held("4", "ns/g")}, ""},
		"the gate opened a while ago":                     {[]*unstructured.Unstructured{versionOfGate("1", "False"), free("2"), versionOfGate("3", "True"), held("later", "ns/g")}, "before its status"},
		"the gate opens, then the target is released":     {[]*unstructured.Unstructured{versionOfGate("1", "False"), held("2", "ns/g"), versionOfGate("3", "True"), free("4")}, ""},
		"the gate is due to close":                        {[]*unstructured.Unstructured{closesAt(versionOfGate("1", "True"), noon), free("2"), held("3", "ns/g"), versionOfGate("4", "False")}, ""},
		"the gate closes later":                           {[]*unstructured.Unstructured{closesAt(versionOfGate("1", "True"), noon.Add(time.Second)), free("2"), held("3", "ns/g"), versionOfGate("4", "False")}, "before its status"},
		"the target is released, and the gate is deleted": {[]*unstructured.Unstructured{versionOfGate("1", "False"), held("2", "ns/g"), free("9")}, ""},
		"the target is released, and the gate is closed":  {[]*unstructured.Unstructured{versionOfGate("1", "False"), held("2", "ns/g"), free("3")}, "which is closed"},
	} {
		t.Run(name, func(t *testing.T) {
			log := NewLog()
			h := NewHistory(log)
			for _, obj := range c.versions {
				if obj.GetResourceVersion() == "9" { // a user has deleted the Gate by force before that
					log.Deleted(versionOfGate("1", "False"), noon)
				}
				at := noon
				if obj.GetResourceVersion() == "later" {
					obj.SetResourceVersion("8")
					at = noon.Add(settled)
				}
				h.Saw(obj, false, at)
			}
			if got := strings.Join(h.Review(noon), "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTargetOfClosedGateMustBeHeld(t *testing.T) {
	g := v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}}}}
	g.Name, g.UID = "g", types.UID("g")
	log := NewLog()
	check := func(target *unstructured.Unstructured) string {
		c := newCheck(World{Gates: []v1alpha1.Gate{g}}, log, NewHistory(log), noon)
		c.target(target)
		return strings.Join(c.wrong, "\n")
	}
	if got := check(kustomization("1", nil)); !strings.Contains(got, "it is not held") {
		t.Errorf("got %q", got)
	}
	if got := check(kustomization("1", true, "flux")); got != "" {
		t.Errorf("a target suspended by another client need not be held: %q", got)
	}
	if got := check(kustomization("1", true, controller)); !strings.Contains(got, "its annotation names no gate") {
		t.Errorf("got %q", got)
	}
}

func TestRespectedResumeIsNotReverted(t *testing.T) {
	gate := func(version string, generation int64) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"kind": "Gate", "metadata": map[string]any{"name": "g", "namespace": "ns", "uid": "g", "resourceVersion": version, "generation": generation},
			"spec": map[string]any{"default": "closed", "mode": "Lenient", "targets": []any{map[string]any{"kind": "Kustomization", "name": "*"}}},
			"status": map[string]any{
				"observedGeneration": generation, "conditions": []any{map[string]any{"type": "Opened", "status": "False"}},
				"lastTransition": map[string]any{"state": "closed", "at": noon.UTC().Format(time.RFC3339)},
			},
		}}
		return obj
	}
	target := func(version string, held time.Duration, suspend any, manager ...string) *unstructured.Unstructured {
		obj := kustomization(version, suspend, manager...)
		obj.SetNamespace("ns")
		_ = unstructured.SetNestedSlice(obj.Object, []any{map[string]any{
			"type": "Approved", "status": "False", "lastTransitionTime": noon.Add(held).UTC().Format(time.RFC3339),
		}}, "status", "conditions")
		obj.SetAnnotations(map[string]string{heldByAnnotation: "ns/g"})
		return obj
	}
	for name, c := range map[string]struct {
		meanwhile *unstructured.Unstructured
		// held is the time of the hold in the target's condition, relative to the close of the Gate.
		held time.Duration
		want string
	}{
		"the target does not report the hold yet": {held: -time.Second},
		"nothing happened meanwhile":              {want: "it is held again"},
		"the spec changed meanwhile":              {meanwhile: gate("4", 2)},
		"the status was written again":            {meanwhile: gate("4", 1), want: "it is held again"},
	} {
		t.Run(name, func(t *testing.T) {
			log := NewLog()
			h := NewHistory(log)
			resumed := target("3", c.held, nil)
			log.Wrote(resumed, noon)
			for i, obj := range []*unstructured.Unstructured{gate("1", 1), target("2", c.held, true, controller), resumed, c.meanwhile, target("5", c.held, true, controller)} {
				if obj != nil {
					h.Saw(obj, false, noon.Add(time.Duration(i-2)*time.Second))
				}
			}
			if got := strings.Join(h.Review(noon), "\n"); strings.Contains(got, "it is held again") != (c.want != "") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestEarlyRequestEndsOppositeOne(t *testing.T) {
	requestAt := func(action v1alpha1.RequestAction, at int, window time.Duration) Request {
		return Request{Action: action, At: minute(at).Time, Window: window}
	}
	for name, c := range map[string]struct {
		before Request
		want   bool
	}{
		"the opposite was in force":       {requestAt(v1alpha1.RequestOpen, -9, 0), true},
		"the opposite ended at that time": {requestAt(v1alpha1.RequestOpen, -9, 8*time.Minute), true},
		"the opposite had ended":          {requestAt(v1alpha1.RequestOpen, -9, 7*time.Minute), false},
		"a request for the same action":   {requestAt(v1alpha1.RequestClose, -9, 0), false},
		"the opposite is planned for now": {requestAt(v1alpha1.RequestOpen, 0, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			last := requestAt(v1alpha1.RequestClose, -1, 0)
			g := gate{Gate: v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}}, requests: []Request{c.before, last}}
			state := g.at(noon)
			if got := g.endedEarly(state, last); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestReleaseByClosedGateIsFound(t *testing.T) {
	gate := func(version, name, opened string, change ...func(spec, status map[string]any)) *unstructured.Unstructured {
		spec := map[string]any{"default": "closed", "targets": []any{map[string]any{"kind": "Kustomization", "name": "*"}}}
		status := map[string]any{"observedGeneration": int64(1), "conditions": []any{map[string]any{"type": "Opened", "status": opened}}}
		for _, c := range change {
			c(spec, status)
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "Gate", "spec": spec, "status": status,
			"metadata": map[string]any{"name": name, "namespace": "ns", "uid": name, "resourceVersion": version, "generation": int64(1)},
		}}
	}
	named := func(obj *unstructured.Unstructured, gates string) *unstructured.Unstructured {
		obj.SetNamespace("ns")
		obj.SetAnnotations(map[string]string{gatesAnnotation: gates})
		return obj
	}
	held := kustomization("3", true, controller)
	held.SetNamespace("ns")
	held.SetAnnotations(map[string]string{heldByAnnotation: "ns/g"})
	free := kustomization("5", nil)
	free.SetNamespace("ns")
	opens := gate("4", "g", "True")
	for name, c := range map[string]struct {
		other *unstructured.Unstructured
		// closed is how many seconds before the release the other Gate reported that it is closed.
		closed int
		also   []*unstructured.Unstructured
		// added is true if another client wrote the target a second before the release.
		added, disturbed, want bool
	}{
		"the other gate is closed":                                {other: gate("2", "h", "False"), closed: 30, want: true},
		"the target was just added to it":                         {other: gate("2", "h", "False"), closed: 30, added: true, want: true},
		"the target was just added to it, and replicas were down": {other: gate("2", "h", "False"), closed: 30, added: true, disturbed: true},
		"the other gate closes at that time":                      {other: gate("2", "h", "False"), closed: 5, added: true},
		"the other gate has just reported that it is closed":      {other: gate("2", "h", "False"), closed: 1},
		"the other gate is open":                                  {other: gate("2", "h", "True"), closed: 30},
		"the other gate has not observed its spec":                {other: gate("2", "h", "False", func(_, status map[string]any) { status["observedGeneration"] = int64(0) }), closed: 30},
		"the other gate is suspended":                             {other: gate("2", "h", "False", func(spec, _ map[string]any) { spec["suspend"] = true }), closed: 30},
		"the other gate does not govern the target":               {other: gate("2", "h", "False", func(spec, _ map[string]any) { spec["targets"] = []any{} }), closed: 30},
		"the target names the other gate":                         {other: gate("2", "h", "False", func(spec, _ map[string]any) { spec["targets"] = []any{} }), closed: 30, also: []*unstructured.Unstructured{named(held.DeepCopy(), "h"), named(free.DeepCopy(), "h")}, want: true},
		"the other gate is due to open now": {other: gate("2", "h", "False", func(_, status map[string]any) {
			status["nextTransition"] = map[string]any{"at": "2026-11-22T12:00:00Z", "state": "opened"}
		}), closed: 30},
		"the other gate opens just before":   {other: gate("2", "h", "False"), closed: 30, also: []*unstructured.Unstructured{held, gate("4", "h", "True"), free}},
		"another client suspends the target": {other: gate("2", "h", "False"), closed: 30, also: []*unstructured.Unstructured{held, kustomization("5", true, "flux")}},
	} {
		t.Run(name, func(t *testing.T) {
			log := NewLog()
			h := NewHistory(log)
			h.Saw(gate("1", "g", "False"), false, noon.Add(-time.Minute))
			h.Saw(c.other, false, noon.Add(-time.Duration(c.closed)*time.Second))
			if c.also == nil {
				c.also = []*unstructured.Unstructured{held, free}
			}
			h.Saw(c.also[0], false, noon.Add(-time.Minute))
			if c.added {
				log.Wrote(c.also[0], noon.Add(-time.Second))
			}
			if c.disturbed {
				log.Disturbed(noon.Add(-25 * time.Second))
				log.Disturbed(noon.Add(-10 * time.Second))
			}
			h.Saw(opens, false, noon)
			for _, obj := range c.also[1:] {
				h.Saw(obj, false, noon)
			}
			if got := strings.Join(h.Review(noon), "\n"); strings.Contains(got, "it was released") != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
