package check_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/applier"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func with(kind string, status metav1.ConditionStatus, reason, message string) v1alpha1.Gate {
	g := gate("production")
	g.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: message}}
	return g
}

func TestGateThatDiffersFromItsSpecIsFound(t *testing.T) {
	suspended, newer := gate("production"), gate("production")
	suspended.Spec.Suspend, newer.Generation = true, 2
	for name, tc := range map[string]struct {
		gate v1alpha1.Gate
		want []string
	}{
		"a gate that is ready":       {with("Ready", metav1.ConditionTrue, "Succeeded", "ok"), nil},
		"one that is not":            {with("Ready", metav1.ConditionFalse, "TargetsFailed", "1 failed"), []string{"error Gate flux-system/production: it is not ready: 1 failed"}},
		"one with an invalid spec":   {with("Stalled", metav1.ConditionTrue, "InvalidSpec", "never fires"), []string{"error Gate flux-system/production: it is stalled: never fires"}},
		"one that is suspended":      {suspended, []string{"warning Gate flux-system/production: it is suspended"}},
		"one that is not reconciled": {newer, []string{"warning Gate flux-system/production: the controller has not reconciled generation 2"}},
		"one whose time is not said": {with("Ready", metav1.ConditionFalse, v1alpha1.TimeUnknownReason, "no time"), nil},
	} {
		t.Run(name, func(t *testing.T) { finds(t, check.Gates([]v1alpha1.Gate{tc.gate}), tc.want...) })
	}
}

func TestAmbiguousScheduleIsFound(t *testing.T) {
	cron := func(schedule string) []v1alpha1.Period {
		return []v1alpha1.Period{{Name: "sundays", Schedule: &schedule, Duration: &v1alpha1.Duration{Duration: time.Hour}}}
	}
	clear, misread := gate("clear"), gate("misread")
	clear.Spec.OpenPeriods, misread.Spec.OpenPeriods = cron("0 2 * * SUN"), cron("0 2 1-7 * SUN")
	exception := func(name string, until time.Time) *v1alpha1.GateException {
		return &v1alpha1.GateException{
			ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name},
			Spec:       v1alpha1.GateExceptionSpec{OpenPeriods: misread.Spec.OpenPeriods, ValidUntil: metav1.NewTime(until)},
		}
	}
	finds(t, check.Schedules([]v1alpha1.Gate{clear, daily(gate("weekly"), "10:00", "12:00"), misread}, []*v1alpha1.GateException{exception("hotfix", noon.Add(time.Hour)), exception("over", noon)}, noon),
		"warning Gate flux-system/misread: open period 'sundays': '0 2 1-7 * SUN' starts on each day whose day of month is 1-7 OR whose day of week is SUN",
		"warning GateException flux-system/hotfix: open period 'sundays': '0 2 1-7 * SUN' starts on each day")
}

func TestGateMatchingNothingIsFound(t *testing.T) {
	none, some, unnamed, unknown := gate("none", "apps"), gate("some", "apps"), gate("unnamed"), gate("unknown", "apps")
	none.Status.Targets, unnamed.Status.Targets = &v1alpha1.TargetStatus{}, &v1alpha1.TargetStatus{}
	some.Status.Targets = &v1alpha1.TargetStatus{TargetCounts: v1alpha1.TargetCounts{Total: 1}}
	suspended := gate("suspended", "apps")
	suspended.Status.Targets, suspended.Spec.Suspend = &v1alpha1.TargetStatus{}, true
	finds(t, check.Targets([]v1alpha1.Gate{none, some, unnamed, unknown, suspended}), "warning Gate flux-system/none: none of its targets exists")
}

// There is no finding for Gates whose current spec the controller has counted.
func TestSelectorMatchingMoreThanCountedIsFound(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range 40 {
		objects = append(objects, kustomization(t, fmt.Sprintf("apps-%d", i), "}"))
	}
	wide := func(name string, change func(*v1alpha1.Gate)) v1alpha1.Gate {
		g := gate(name, v1alpha1.AnyName)
		g.Generation, g.Status.ObservedGeneration, g.Status.Targets = 2, 2, &v1alpha1.TargetStatus{TargetCounts: v1alpha1.TargetCounts{Total: 12}}
		change(&g)
		return g
	}
	finds(t, check.Selectors([]v1alpha1.Gate{
		wide("counted", func(*v1alpha1.Gate) {}),
		wide("edited", func(g *v1alpha1.Gate) { g.Generation = 3 }),
		wide("suspended", func(g *v1alpha1.Gate) { g.Spec.Suspend = true }),
		wide("new", func(g *v1alpha1.Gate) { g.Status = v1alpha1.GateStatus{} }),
		wide("grown", func(g *v1alpha1.Gate) { g.Generation, g.Status.Targets.Total = 3, 20 }),
	}, objects, verdict.Scope{}),
		"warning Gate flux-system/edited: spec.targets[0] selects 40 objects, and the gate governs 40 targets instead of 12",
		"warning Gate flux-system/suspended: spec.targets[0] selects 40 objects", "warning Gate flux-system/new: spec.targets[0] selects 40 objects, and the gate governs 40 targets instead of 0")
}

func TestGateHoldingOwnSourceIsFound(t *testing.T) {
	labels := map[string]string{"kustomize.toolkit.fluxcd.io/name": "gates", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	source := v1alpha1.TargetReference{Kind: "GitRepository", Name: "repo", Namespace: "sources"}
	known := applier.Objects{
		{Kind: "Kustomization", Namespace: "flux-system", Name: "gates"}: kustomization(t, "gates", ", labels: {tier: platform}}\nspec: {sourceRef: {kind: GitRepository, name: repo, namespace: sources}}"),
	}
	for name, tc := range map[string]struct {
		labels  map[string]string
		targets []v1alpha1.TargetReference
		known   applier.Objects
		want    []string
	}{
		"another Kustomization":          {labels, gate("", "apps").Spec.Targets, known, nil},
		"the Kustomization":              {labels, gate("", "gates").Spec.Targets, known, []string{"error Gate flux-system/production: it holds its own source Kustomization flux-system/gates"}},
		"all of them":                    {labels, gate("", "*").Spec.Targets, known, []string{"error Gate flux-system/production: it holds its own source Kustomization flux-system/gates"}},
		"all, which nobody could read":   {labels, gate("", "*").Spec.Targets, nil, []string{"error Gate flux-system/production: it holds its own source Kustomization flux-system/gates"}},
		"those with its label":           {labels, []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*", MatchLabels: map[string]string{"tier": "platform"}}}, known, []string{"error Gate flux-system/production: it holds its own source"}},
		"those with another label":       {labels, []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*", MatchLabels: map[string]string{"tier": "apps"}}}, known, nil},
		"the repository":                 {labels, []v1alpha1.TargetReference{source}, known, []string{"error Gate flux-system/production: it holds its own source GitRepository sources/repo"}},
		"a Gate that no Flux applies":    {nil, gate("", "gates").Spec.Targets, known, nil},
		"a Gate of another installation": {map[string]string{"kustomize.toolkit.fluxcd.io/name": "gates", "kustomize.toolkit.fluxcd.io/namespace": "elsewhere"}, gate("", "gates").Spec.Targets, known, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := gate("production")
			g.Labels, g.Spec.Targets = tc.labels, tc.targets
			finds(t, check.OwnSource([]v1alpha1.Gate{g}, tc.known, nil, verdict.Scope{}), tc.want...)
		})
	}
	bootstrap := applier.Objects{{Kind: "Kustomization", Namespace: "flux-system", Name: "flux-system"}: kustomization(t, "flux-system", ", labels: {freeze: exempt}}")}
	all, exempted := gate("production", "*"), gate("production", "*")
	exempted.Spec.Targets[0].MatchExpressions = []v1alpha1.LabelSelectorRequirement{{Key: "freeze", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"exempt"}}}
	finds(t, check.OwnSource([]v1alpha1.Gate{all}, bootstrap, nil, verdict.Scope{}), "warning Gate flux-system/production: it holds Kustomization flux-system/flux-system, from which Flux applies this cluster")
	finds(t, check.OwnSource([]v1alpha1.Gate{exempted}, bootstrap, nil, verdict.Scope{}))
	finds(t, check.OwnSource([]v1alpha1.Gate{gate("production", "gates")}, known, applier.Appliers(labels), verdict.Scope{}),
		"error Gate flux-system/production: it holds Kustomization flux-system/gates, which installs the controller")
}

// ownNamespace permits no references to other namespaces.
var ownNamespace = verdict.Scope{Reaches: check.Reach([]check.Controller{{}})}

func TestSourceOutOfReachIsNotHeld(t *testing.T) {
	g := gate("production")
	g.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "gates", "kustomize.toolkit.fluxcd.io/namespace": "elsewhere"}
	g.Spec.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*", Namespace: "*"}}
	gates, bootstrap := []v1alpha1.Gate{g}, applier.Objects{{Kind: "Kustomization", Namespace: "infra", Name: "infra"}: object(t, "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: infra, name: infra}}")}
	installs := applier.Appliers(g.Labels)
	finds(t, check.OwnSource(gates, bootstrap, installs, verdict.Scope{}), "error Gate flux-system/production: it holds its own source", "error Gate flux-system/production: it holds Kustomization elsewhere/gates", "warning Gate flux-system/production: it holds Kustomization infra/infra")
	finds(t, check.OwnSource(gates, bootstrap, installs, ownNamespace))
}

func TestFlagsOfControllersDetermineReach(t *testing.T) {
	var all []check.Controller
	for _, tc := range []struct {
		args string
		want bool
	}{{"", false}, {"--no-cross-namespace-refs", false}, {"--no-cross-namespace-refs=true", false}, {"--no-cross-namespace-refs=false", true}, {"--no-cross-namespace-refs=0, --no-cross-namespace-refs=true", false}} {
		c := check.ControllerOf(object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: a, name: b}, spec: {template: {spec: {containers: [{image: gating-controller, args: ["+tc.args+"]}]}}}}"))
		reach := check.Reach([]check.Controller{c})
		if all = append(all, c); reach("a", "b") != tc.want || !reach("a", "a") {
			t.Errorf("%s: reaches %t", tc.args, reach("a", "b"))
		}
	}
	if !check.Reach(all)("a", "b") || check.Reach(nil) != nil {
		t.Error("of several, one that allows it is enough, and of none nothing is known")
	}
}

func TestSourceDefaultsToNamespaceOfApplier(t *testing.T) {
	g := gate("production")
	g.Labels = map[string]string{"helm.toolkit.fluxcd.io/name": "gates", "helm.toolkit.fluxcd.io/namespace": "team"}
	g.Spec.Targets = []v1alpha1.TargetReference{{Kind: "OCIRepository", Name: "charts", Namespace: "team"}}
	release := object(t, "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: team, name: gates}, spec: {chartRef: {kind: OCIRepository, name: charts}}}")
	known := applier.Objects{{Kind: "HelmRelease", Namespace: "team", Name: "gates"}: release}
	finds(t, check.OwnSource([]v1alpha1.Gate{g}, known, nil, verdict.Scope{}), "error Gate flux-system/production: it holds its own source OCIRepository team/charts")
}

func TestSkewIsLowerBound(t *testing.T) {
	for _, tc := range []struct{ before, after, want time.Duration }{
		{0, 0, 0}, {999 * time.Millisecond, time.Second, 0}, {-time.Second, 0, 0}, {-time.Minute, time.Minute, 0},
		{3 * time.Second, 4 * time.Second, 2 * time.Second}, {-4 * time.Second, -3 * time.Second, -3 * time.Second},
	} {
		if got := (check.ServerTime{Before: noon.Add(tc.before), Reported: noon, After: noon.Add(tc.after)}).Skew(); got != tc.want {
			t.Errorf("from %s until %s: %s, want %s", tc.before, tc.after, got, tc.want)
		}
	}
}

func TestConflictingGatesAreFound(t *testing.T) {
	apps, web := kustomization(t, "apps", "}"), kustomization(t, "web", ", annotations: {gating.toolkit.fluxcd.io/gates: nights}}")
	mornings, nights := daily(gate("mornings", "apps"), "06:00", "09:00"), daily(gate("nights", "apps"), "22:00", "05:00")
	early, byHand := daily(gate("early", "apps"), "04:00", "05:00"), gate("by-hand", "apps")
	trial := daily(gate("mornings", "apps"), "06:00", "09:00")
	trial.Spec.Mode = v1alpha1.ModeAudit
	elsewhere := daily(gate("mornings", "apps"), "06:00", "09:00")
	elsewhere.Namespace, elsewhere.Spec.Targets[0].Namespace = "elsewhere", "flux-system"
	frozen := daily(gate("frozen", "apps"), "06:00", "09:00")
	from, until := metav1.NewTime(noon.AddDate(0, 0, -1)), metav1.NewTime(noon.AddDate(0, 0, 40))
	frozen.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}}}
	invalid := daily(gate("invalid", "apps"), "06:00", "09:00")
	invalid.Spec.TimeZone = "Mars"
	extends := &v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "extra"},
		Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: "mornings"}, ValidFrom: from, ValidUntil: until,
			OpenPeriods: []v1alpha1.Period{{Name: "all", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}},
		},
	}
	both := "error Gate flux-system/mornings: it and Gate flux-system/nights govern Kustomization flux-system/"
	for name, tc := range map[string]struct {
		gates      []v1alpha1.Gate
		exceptions []*v1alpha1.GateException
		objects    []*unstructured.Unstructured
		want       []string
	}{
		"never open together": {[]v1alpha1.Gate{nights, mornings}, nil, []*unstructured.Unstructured{apps}, []string{both + "apps, and are never open at the same time"}},
		"one has mode Audit": {[]v1alpha1.Gate{nights, trial}, nil, []*unstructured.Unstructured{apps}, []string{strings.Replace(both, "error", "warning", 1) +
			"apps, and are never open at the same time in the next 30 days: the object stays held once none of them has mode Audit"}},
		"open together for an hour":                 {[]v1alpha1.Gate{nights, early}, nil, []*unstructured.Unstructured{apps}, nil},
		"together by an exception":                  {[]v1alpha1.Gate{nights, mornings}, []*v1alpha1.GateException{extends}, []*unstructured.Unstructured{apps}, nil},
		"one opens by hand":                         {[]v1alpha1.Gate{nights, byHand}, nil, []*unstructured.Unstructured{apps}, nil},
		"one is frozen for longer":                  {[]v1alpha1.Gate{nights, frozen}, nil, []*unstructured.Unstructured{apps}, nil},
		"one is invalid":                            {[]v1alpha1.Gate{nights, invalid}, nil, []*unstructured.Unstructured{apps}, nil},
		"no object in common":                       {[]v1alpha1.Gate{nights, mornings}, nil, []*unstructured.Unstructured{web}, nil},
		"an object that names one itself":           {[]v1alpha1.Gate{daily(gate("nights"), "22:00", "05:00"), daily(gate("mornings", "web"), "06:00", "09:00")}, nil, []*unstructured.Unstructured{web}, []string{both + "web"}},
		"several objects are one finding":           {[]v1alpha1.Gate{nights, daily(gate("mornings", "*"), "06:00", "09:00")}, nil, []*unstructured.Unstructured{web, apps}, []string{both + "apps, Kustomization flux-system/web"}},
		"one does not reach it":                     {[]v1alpha1.Gate{nights, elsewhere}, nil, []*unstructured.Unstructured{apps}, nil},
		"windows that touch are not open at a time": {[]v1alpha1.Gate{nights, daily(gate("mornings", "apps"), "05:00", "06:00")}, nil, []*unstructured.Unstructured{apps}, []string{both + "apps"}},
	} {
		t.Run(name, func(t *testing.T) {
			finds(t, check.Conflicts(tc.gates, check.Inputs{Exceptions: tc.exceptions}, tc.objects, ownNamespace, noon), tc.want...)
		})
	}
}

func TestClockSkewIsFound(t *testing.T) {
	differ := with(v1alpha1.OpenedCondition, metav1.ConditionFalse, "OutsideOpenPeriods", "Gate closed, the clocks of the controller and of the API server differ")
	for name, tc := range map[string]struct {
		before, after time.Duration
		gates         []v1alpha1.Gate
		want          []string
	}{
		"the same time":                     {0, 0, nil, nil},
		"within the second that is cut off": {999 * time.Millisecond, time.Second, nil, nil},
		"a slow answer":                     {-5 * time.Second, time.Second, nil, nil},
		"ahead":                             {time.Minute, time.Minute, nil, []string{"warning clocks: the clock of this machine is 59s ahead of"}},
		"behind":                            {-time.Minute, -time.Minute, nil, []string{"warning clocks: the clock of this machine is 1m0s behind"}},
		"that of a controller":              {0, 0, []v1alpha1.Gate{differ}, []string{"warning Gate flux-system/production: the clocks of the controller and of the API server differ: it opens only when both clocks have reached the time"}},
		"nobody says what time it is":       {0, 0, []v1alpha1.Gate{with("Ready", metav1.ConditionFalse, v1alpha1.TimeUnknownReason, "")}, []string{"error Gate flux-system/production: it stays closed, because the API server"}},
	} {
		t.Run(name, func(t *testing.T) {
			finds(t, check.Clocks(check.ServerTime{Before: noon.Add(tc.before), Reported: noon, After: noon.Add(tc.after)}, tc.gates), tc.want...)
		})
	}
	finds(t, check.Clocks(check.ServerTime{Before: noon, After: noon}, nil), "warning clocks: the API server does not return its time")
}

func TestGateWithModeAuditIsReportedWithItsTargets(t *testing.T) {
	enforcing, untold := gate("enforcing", "apps"), gate("untold", "apps")
	closed, opened := gate("closed", "apps"), gate("opened", "apps")
	opened.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionTrue}}
	for _, g := range []*v1alpha1.Gate{&closed, &opened, &untold} {
		g.Spec.Mode = v1alpha1.ModeAudit
	}
	closed.Status.Targets = &v1alpha1.TargetStatus{TargetCounts: v1alpha1.TargetCounts{Total: 14, WouldHold: 12}}
	opened.Status.Targets = &v1alpha1.TargetStatus{TargetCounts: v1alpha1.TargetCounts{Total: 14}}
	found := check.Audits([]v1alpha1.Gate{enforcing, closed, opened, untold})
	finds(t, found,
		"note Gate flux-system/closed: it has mode Audit and holds nothing; it would hold 12 of its 14 targets",
		"note Gate flux-system/opened: it has mode Audit and holds nothing; it is open, so it would hold none of its 14 targets",
		"note Gate flux-system/untold: it has mode Audit and holds nothing")
	if want := `to enforce: kubectl -n flux-system patch gate/closed --type=merge -p '{"spec":{"mode":"Enforce"}}'`; found[0].Action != want {
		t.Errorf("got %s", found[0].Action)
	}
}
