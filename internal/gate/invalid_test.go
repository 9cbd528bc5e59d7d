package gate_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// invalid is an edit after which a spec does not compile.
func invalid(s *v1alpha1.GateSpec) {
	s.OpenPeriods = []v1alpha1.Period{cron("a", "@every 1h", time.Hour)}
}

// was gives a Gate the last state, and the next transition if at is not empty.
func was(g *v1alpha1.Gate, state v1alpha1.State, at string, next v1alpha1.State) *v1alpha1.Gate {
	status := metav1.ConditionFalse
	if state == isOpened {
		status = metav1.ConditionTrue
	}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: status, Reason: "Default"}}
	if at != "" {
		g.Status.NextTransition = &v1alpha1.Transition{At: *instant(at), State: next, Reason: "Default"}
	}
	return g
}

func TestInvalidSpecFailsClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		gate    *v1alpha1.Gate
		state   v1alpha1.State
		message string
		next    string
	}{
		"never valid": {closed(invalid), isClosed, "Gate stays closed", ""},
		"never valid, although the default is opened": {
			opened(func(s *v1alpha1.GateSpec) { s.TimeZone = "Nowhere" }), isClosed, "Gate stays closed", ""},
		"closed stays closed": {was(closed(invalid), isClosed, "", ""), isClosed, "Gate stays closed", ""},
		"opened stays opened": {was(closed(invalid), isOpened, "", ""), isOpened, "Gate stays opened", ""},
		"opened stays opened until it is due to close": {
			was(closed(invalid), isOpened, "2026-11-23T12:00:01Z", isClosed), isOpened, "until it is due to close", "2026-11-23T12:00:01Z"},
		"opened closes exactly when it is due": {
			was(closed(invalid), isOpened, "2026-11-23T12:00:00Z", isClosed), isClosed, "Gate closed", ""},
		"opened closes although the controller was away when it was due": {
			was(closed(invalid), isOpened, "2026-11-22T12:00:00Z", isClosed), isClosed, "Gate closed", ""},
		"opened stays opened when it was due to open": {
			was(closed(invalid), isOpened, "2026-11-23T12:00:00Z", isOpened), isOpened, "Gate stays opened", ""},
		"closed does not open although it was due to": {
			was(closed(invalid), isClosed, "2026-11-23T12:00:00Z", isOpened), isClosed, "Gate stays closed", ""},
		"closed does not open on request": {
			accepted(t, was(closed(invalid), isClosed, "", ""), open("2026-11-23T12:00:00Z")), isClosed, "Gate stays closed", ""},
		"never valid does not open on request": {
			accepted(t, closed(invalid), open("2026-11-23T12:00:00Z")), isClosed, "Gate stays closed", ""},
		"opened closes on request": {
			accepted(t, was(closed(invalid), isOpened, "", ""), shut("2026-11-23T12:00:00Z")), isClosed, "Gate closed", ""},
		"opened by request closes on a newer request": {
			accepted(t, was(closed(invalid, window(time.Hour)), isOpened, "2026-11-23T12:30:00Z", isClosed), open("2026-11-23T11:30:00Z"), shut("2026-11-23T11:45:00Z")),
			isClosed, "Gate closed", ""},
		"a planned close closes then": {
			accepted(t, was(closed(invalid), isOpened, "", ""), shut("2026-11-23T13:00:00Z").seen("2026-11-23T12:00:00Z")),
			isOpened, "until it is due to close", "2026-11-23T13:00:00Z"},
		"the earlier of a due and of a requested close counts": {
			accepted(t, was(closed(invalid), isOpened, "2026-11-23T12:30:00Z", isClosed), shut("2026-11-23T13:00:00Z").seen("2026-11-23T12:00:00Z")),
			isOpened, "until it is due to close", "2026-11-23T12:30:00Z"},
		"a close request from before the open request is not a reason to close": {
			accepted(t, was(closed(invalid), isOpened, "", ""), shut("2026-11-23T10:00:00Z"), open("2026-11-23T11:00:00Z")), isOpened, "Gate stays opened", ""},
		"a close request that is over is not a reason to close": {
			accepted(t, was(closed(invalid, window(time.Hour)), isOpened, "", ""), shut("2026-11-23T10:00:00Z")), isOpened, "Gate stays opened", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := gate.Decide(tc.gate, noon)
			if d.State != tc.state || d.Reason != v1alpha1.InvalidSpecReason || len(d.Errors) == 0 {
				t.Errorf("got %s, %s with %d errors; want %s", d.State, d.Reason, len(d.Errors), tc.state)
			}
			if !strings.HasPrefix(d.Message, "Gate ") || !strings.Contains(d.Message, tc.message) || !strings.Contains(d.Message, d.Errors[0].Field) {
				t.Errorf("message %q lacks %q or %q", d.Message, tc.message, d.Errors[0].Field)
			}
			if got := nextOf(d); got.at != tc.next || tc.next != "" && (got.state != isClosed || stamp(d.Recheck) != tc.next) {
				t.Errorf("got next %v and recheck %s, want %q", got, d.Recheck, tc.next)
			}
		})
	}
}

func TestInvalidDurationFailsClosed(t *testing.T) {
	for spec, path := range map[string]string{
		`{"default":"opened","window":"1y"}`: "spec.window",
		`{"default":"opened","closePeriods":[{"name":"a","schedule":"0 0 * * *","duration":"1d12h"}]}`:        "spec.closePeriods[0].duration",
		`{"default":"opened","release":{"waves":[{"name":"a","matchLabels":{"a":"b"},"soak":5}]}}`:            "spec.release.waves[0].soak",
		`{"default":"opened","window":{"hours":1},"interval":true,"certificates":{"safetyMargin":"10 days"}}`: "spec.window",
	} {
		g := &v1alpha1.Gate{}
		if err := json.Unmarshal([]byte(spec), &g.Spec); err != nil {
			t.Errorf("%s cannot be decoded, so it would stop the informer: %v", spec, err)
			continue
		}
		if d := gate.Decide(g, noon); d.State != isClosed || d.Reason != v1alpha1.InvalidSpecReason || len(d.Errors) != 1 || d.Errors[0].Field != path {
			t.Errorf("%s is %s, %s: %v; want an error at %s", spec, d.State, d.Reason, d.Errors, path)
		}
		g = accepted(t, was(g, isOpened, "", ""), shut("2026-11-23T12:00:00Z"))
		if d := gate.Decide(g, noon); d.State != isClosed {
			t.Errorf("%s is %s after a close request", spec, d.State)
		}
	}
}

func TestInvalidSpecKeepsReportedRequest(t *testing.T) {
	g := was(closed(invalid), isOpened, "2026-11-23T12:30:00Z", isClosed)
	g.Status.RequestedAt, g.Status.ResetToDefaultAt = instant("2026-11-23T11:30:00Z"), instant("2026-11-23T12:30:00Z")
	d := gate.Decide(g, noon)
	if d.RequestedAt != g.Status.RequestedAt || d.ResetToDefaultAt != g.Status.ResetToDefaultAt {
		t.Errorf("got %v, %v", d.RequestedAt, d.ResetToDefaultAt)
	}
}

func TestFixedSpecDecidesAgain(t *testing.T) {
	g := accepted(t, was(closed(invalid), isClosed, "", ""), open("2026-11-23T12:00:00Z"))
	if d := gate.Decide(g, noon); d.State != isClosed {
		t.Fatalf("invalid: %s", d.State)
	}
	g.Spec.OpenPeriods = nil
	if d := gate.Decide(g, noon); d.State != isOpened || len(d.Errors) > 0 {
		t.Errorf("repaired: %s, %v", d.State, d.Errors)
	}
}

func TestInvalidSpecIsStalledUntilFixed(t *testing.T) {
	schedule := "0 0 31 4-6/2 *"
	g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{{
		Period: v1alpha1.Period{Name: "never", Schedule: &schedule, Duration: &v1alpha1.Duration{Duration: time.Hour}},
	}}}}
	g.Generation = 1
	g.Status = gate.NewSnapshot(g, nil).Resolve(gate.Observed{}, noon).Status(nil)
	want := map[string]metav1.ConditionStatus{"Stalled": "True", "Ready": "False", v1alpha1.OpenedCondition: "False"}
	for name, status := range want {
		c := apimeta.FindStatusCondition(g.Status.Conditions, name)
		if c == nil || c.Status != status || c.Reason != v1alpha1.InvalidSpecReason || !strings.Contains(c.Message, "spec.closePeriods[0].schedule") {
			t.Errorf("%s is %+v", name, c)
		}
	}
	if len(g.Status.Conditions) != len(want) || g.Status.ObservedGeneration != 1 {
		t.Errorf("generation %d, conditions %+v", g.Status.ObservedGeneration, g.Status.Conditions)
	}
	g.Generation, g.Spec.ClosePeriods = 2, nil
	g.Status = gate.NewSnapshot(g, nil).Resolve(gate.Observed{}, noon).Status(nil)
	if c := apimeta.FindStatusCondition(g.Status.Conditions, "Stalled"); c != nil || g.Status.ObservedGeneration != 2 {
		t.Errorf("the spec is fixed, but Stalled is %+v", c)
	}
}
