package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

func watching(refs ...v1alpha1.DependencyReference) func(*v1alpha1.GateSpec) {
	return func(s *v1alpha1.GateSpec) { s.DependsOn = refs }
}

// staging and canary are dependencies of a Gate.
func staging(readyExpr ...string) v1alpha1.DependencyReference {
	return v1alpha1.DependencyReference{Kind: "Kustomization", Name: "staging", ReadyExpr: strings.Join(readyExpr, "")}
}

func canary() v1alpha1.DependencyReference {
	return v1alpha1.DependencyReference{Kind: "HelmRelease", Name: "canary", Namespace: "flagger"}
}

// seen notes what an object is that a Gate follows: ready if there is no message.
func seen(g *v1alpha1.Gate, ref v1alpha1.DependencyReference, message string) *v1alpha1.Gate {
	g.Status.Dependencies = append(g.Status.Dependencies, gate.RecordDependency(g, &ref, message == "", message, noon))
	return g
}

const noSuchFile = "BuildFailed: no such file"

// follows has a Gate follow staging, which is noSuchFile.
func follows(g *v1alpha1.Gate) *v1alpha1.Gate {
	g.Namespace, g.Spec.DependsOn = "flux-system", []v1alpha1.DependencyReference{staging()}
	return seen(g, staging(), noSuchFile)
}

func TestDependencyInDecisionTable(t *testing.T) {
	const because = "Kustomization 'flux-system/staging' is not ready: BuildFailed: no such file"
	day := windows(weekly("days", "08:00", "16:00"))
	both := closePeriods(closing(dated("soft", "2026-11-23T10:00:00Z", "2026-11-23T14:00:00Z"), "Allow"),
		closing(dated("hard", "2026-11-23T11:00:00Z", "2026-11-23T13:00:00Z"), "Deny"))
	for name, tc := range map[string]struct {
		gate                     *v1alpha1.Gate
		reason, message, recheck string
	}{
		"after a close request": {
			accepted(t, opened(window(time.Hour)), shut("2026-11-23T11:30:00Z")), "CloseRequested", "Gate close requested at 2026-11-23T11:30:00Z, " + because, "2026-11-23T12:30:00Z"},
		"after a hard freeze": {
			opened(freeze("Deny")), "ClosePeriod", "Gate closed by close period 'freeze', " + because, "2026-11-23T13:00:00Z"},
		"after a hard freeze in a soft one": {
			opened(both), "ClosePeriod", "Gate closed by close period 'hard', " + because, "2026-11-23T13:00:00Z"},
		"before an open request": {
			accepted(t, closed(window(time.Hour)), open("2026-11-23T11:30:00Z")), "DependencyNotReady", "Gate closed, " + because, "2026-11-23T12:30:00Z"},
		"before a soft freeze": {
			opened(freeze("Allow")), "DependencyNotReady", "Gate closed, " + because, "2026-11-23T13:00:00Z"},
		"before notBefore": {
			opened(between("2026-12-01T00:00:00Z", "")), "DependencyNotReady", "Gate closed, " + because, "2026-12-01T00:00:00Z"},
		"before notAfter": {
			opened(between("", "2026-11-01T00:00:00Z")), "DependencyNotReady", "Gate closed, " + because, ""},
		"before a window": {
			closed(day), "DependencyNotReady", "Gate closed, " + because, "2026-11-23T16:00:00Z"},
		"before the time outside the openPeriods": {
			closed(windows(weekly("nights", "22:00", "05:00"))), "DependencyNotReady", "Gate closed, " + because, "2026-11-23T22:00:00Z"},
		"before the time outside the close periods": {
			opened(closePeriods(closing(cron("friday", "0 0 * * FRI", 24*time.Hour), ""))), "DependencyNotReady", "Gate closed, " + because, "2026-11-27T00:00:00Z"},
		"before the default opened": {opened(), "DependencyNotReady", "Gate closed, " + because, ""},
		"before the default closed": {closed(), "DependencyNotReady", "Gate closed, " + because, ""},
		"before a hard freeze that is to come": {
			opened(closePeriods(closing(dated("later", "2026-11-23T15:00:00Z", "2026-11-23T16:00:00Z"), "Deny"))),
			"DependencyNotReady", "Gate closed, " + because, "2026-11-23T15:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			d := gate.Decide(follows(tc.gate), noon)
			if d.State != isClosed || d.Reason != tc.reason || d.Message != tc.message {
				t.Errorf("got  %s, %s: %s\nwant %s: %s", d.State, d.Reason, d.Message, tc.reason, tc.message)
			}
			if d.Next != nil {
				t.Errorf("nobody knows when it will be ready, got next %v", nextOf(d))
			}
			recheck := ""
			if !d.Recheck.IsZero() {
				recheck = stamp(d.Recheck)
			}
			if recheck != tc.recheck {
				t.Errorf("got recheck %q, want %q", recheck, tc.recheck)
			}
			if (d.Request != nil) != (tc.reason == "CloseRequested") {
				t.Errorf("got request %v", d.Request)
			}
		})
	}
}

func TestPeriodThatDoesNotDecideIsNotNamed(t *testing.T) {
	for mode, want := range map[v1alpha1.Override]string{"Allow": "", "Deny": "freeze"} {
		if d := gate.Decide(follows(opened(freeze(mode))), noon); d.By != want {
			t.Errorf("%s: by %q because of %s, want %q", mode, d.By, d.Reason, want)
		}
	}
}

func TestDependencyBeforeException(t *testing.T) {
	e := exception(opensIn(weekly("all-day", "00:00", "24:00")), valid("2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z"))
	g := production(closed())
	if d := gate.Decide(g, noon, e); d.State != isOpened || d.Reason != "Exception" {
		t.Fatalf("without a watch: %s, %s", d.State, d.Reason)
	}
	d := gate.Decide(follows(g), noon, e)
	if d.State != isClosed || d.Reason != "DependencyNotReady" || !strings.HasSuffix(d.Message, "is in force until 2026-11-24T00:00:00Z") {
		t.Errorf("got %s, %s: %s", d.State, d.Reason, d.Message)
	}
}

func TestRequestContinuesWhenDependencyIsReadyAgain(t *testing.T) {
	g := follows(accepted(t, closed(window(time.Hour)), open("2026-11-23T11:30:00Z")))
	if d := gate.Decide(g, noon); d.State != isClosed || d.RequestedAt == nil || stamp(d.ResetToDefaultAt.Time) != "2026-11-23T12:30:00Z" {
		t.Errorf("not ready: %s, request of %v until %v", d.State, d.RequestedAt, d.ResetToDefaultAt)
	}
	g.Status.Dependencies = nil
	seen(g, staging(), "")
	d := gate.Decide(g, noon)
	if d.State != isOpened || d.Reason != "OpenRequested" || nextOf(d).at != "2026-11-23T12:30:00Z" || d.Request == nil {
		t.Errorf("ready: %s, %s until %v by %v", d.State, d.Reason, nextOf(d), d.Request)
	}
}

func TestAllDependenciesMustBeReady(t *testing.T) {
	follow := func(refs ...v1alpha1.DependencyReference) *v1alpha1.Gate {
		return production(opened(watching(refs...)))
	}
	elsewhere := v1alpha1.DependencyReference{Kind: "Kustomization", Name: "staging", Namespace: "elsewhere"}
	grouped := staging()
	grouped.APIVersion = "example.org/v1"
	newer := staging()
	newer.APIVersion = "example.org/v2"
	for name, tc := range map[string]struct {
		gate    *v1alpha1.Gate
		message string
	}{
		"all are ready": {seen(seen(follow(staging(), canary()), staging(), ""), canary(), ""), ""},
		"nobody has looked yet": {
			follow(staging()), "Gate closed, Kustomization 'flux-system/staging' is not ready: has not been checked yet"},
		"nobody has looked at the second": {
			seen(follow(staging(), canary()), staging(), ""), "Gate closed, HelmRelease 'flagger/canary' is not ready: has not been checked yet"},
		"the second is not ready": {
			seen(seen(follow(staging(), canary()), staging(), ""), canary(), "does not exist"), "Gate closed, HelmRelease 'flagger/canary' is not ready: does not exist"},
		"neither is ready": {
			seen(seen(follow(canary(), staging()), staging(), noSuchFile), canary(), "does not exist"),
			"Gate closed, HelmRelease 'flagger/canary' is not ready: does not exist (and 1 more)"},
		"one of the same name elsewhere is": {
			seen(follow(staging()), elsewhere, ""), "Gate closed, Kustomization 'flux-system/staging' is not ready: has not been checked yet"},
		"one of the same name of another group is": {
			seen(follow(staging()), grouped, ""), "Gate closed, Kustomization 'flux-system/staging' is not ready: has not been checked yet"},
		"it was seen in another version":      {seen(follow(newer), grouped, ""), ""},
		"one that is followed no more is not": {seen(seen(follow(staging()), canary(), noSuchFile), staging(), ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := gate.Decide(tc.gate, noon)
			if tc.message == "" && d.State != isOpened {
				t.Errorf("closed: %s", d.Message)
			}
			if tc.message != "" && (d.State != isClosed || d.Message != tc.message) {
				t.Errorf("got  %s: %s\nwant %s", d.State, d.Message, tc.message)
			}
		})
	}
}

func TestDependencyOfInvalidGate(t *testing.T) {
	noCEL := watching(staging("dep.status ="))
	for name, tc := range map[string]struct {
		gate    *v1alpha1.Gate
		state   v1alpha1.State
		message string
	}{
		"that is not ready closes": {
			seen(production(was(closed(invalid, watching(staging())), isOpened, "", "")), staging(), noSuchFile), isClosed,
			"Gate closed, Kustomization 'flux-system/staging' is not ready: BuildFailed: no such file, its spec is invalid: spec.openPeriods[0]"},
		"that is ready opens nothing": {
			seen(production(was(closed(invalid, watching(staging())), isClosed, "", "")), staging(), ""), isClosed, "Gate stays closed"},
		"that is ready leaves it open": {
			seen(production(was(closed(invalid, watching(staging())), isOpened, "", "")), staging(), ""), isOpened, "Gate stays opened"},
		"that nobody has looked at leaves it open": {
			production(was(closed(invalid, watching(staging())), isOpened, "", "")), isOpened, "Gate stays opened"},
		"whose expression is what is invalid leaves it open": {
			seen(production(was(closed(noCEL), isOpened, "", "")), staging(), "readyExpr: Syntax error"), isOpened, "Gate stays opened"},
		"whose expression is what is invalid opens nothing": {
			seen(production(opened(noCEL)), staging(), ""), isClosed, "Gate stays closed"},
	} {
		t.Run(name, func(t *testing.T) {
			d := gate.Decide(tc.gate, noon)
			if d.State != tc.state || d.Reason != v1alpha1.InvalidSpecReason || !strings.HasPrefix(d.Message, tc.message) {
				t.Errorf("got %s, %s: %s", d.State, d.Reason, d.Message)
			}
		})
	}
}

func TestSinceIsWhenReadyLastChanged(t *testing.T) {
	g, ref := production(opened(watching(staging()))), staging()
	for _, step := range []struct {
		at, message, since string
	}{
		{"2026-11-23T12:00:00Z", "", "2026-11-23T12:00:00Z"},
		{"2026-11-23T12:01:00Z", "", "2026-11-23T12:00:00Z"},
		{"2026-11-23T12:02:00Z", noSuchFile, "2026-11-23T12:02:00Z"},
		{"2026-11-23T12:03:00Z", "does not exist", "2026-11-23T12:02:00Z"},
		{"2026-11-23T12:04:00Z", "", "2026-11-23T12:04:00Z"},
	} {
		got := gate.RecordDependency(g, &ref, step.message == "", step.message, utc(step.at))
		if stamp(got.Since.Time) != step.since || got.Ready != (step.message == "") || got.Message != step.message {
			t.Errorf("at %s: got %+v, want since %s", step.at, got, step.since)
		}
		g.Status.Dependencies = []v1alpha1.DependencyStatus{got}
	}
}

func TestDependencyMessageIsOneBoundedLine(t *testing.T) {
	ref := staging()
	got := gate.RecordDependency(closed(), &ref, false, "Failed: a\nGate opened\x00"+strings.Repeat("é", 300), noon)
	if len(got.Message) > 256 || strings.ContainsAny(got.Message, "\n\x00") || !strings.HasPrefix(got.Message, "Failed: a Gate opened") {
		t.Errorf("%d bytes: %q", len(got.Message), got.Message)
	}
}
