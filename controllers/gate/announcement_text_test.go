package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestOneTargetPerKindAndNamespaceGetsEvent(t *testing.T) {
	var governed []*target.Object
	add := func(kind, namespace, name string) {
		obj := &target.Object{}
		obj.SetAPIVersion(map[string]string{"Kustomization": "kustomize.toolkit.fluxcd.io/v1", "HelmRelease": "helm.toolkit.fluxcd.io/v2"}[kind])
		obj.SetKind(kind)
		obj.SetNamespace(namespace)
		obj.SetName(name)
		target.Trim(&obj.Unstructured, verdict.Us)
		governed = append(governed, obj)
	}
	for _, namespace := range []string{"b", "a"} {
		for _, kind := range []string{"Kustomization", "HelmRelease"} {
			for _, name := range []string{"y", "x"} {
				add(kind, namespace, name)
			}
		}
	}
	names := func() (names []string) {
		slices.SortFunc(governed, compareTargets)
		for _, t := range (&Impact{Governed: governed}).eventTargets() {
			names = append(names, t.GetNamespace()+" "+t.GetObjectKind().GroupVersionKind().Kind+" "+t.GetName())
		}
		return names
	}
	equal(t, names(), []string{"a HelmRelease x", "a Kustomization x", "b HelmRelease x", "b Kustomization x"})
	for i := range 200 {
		add("Kustomization", fmt.Sprintf("ns-%d", i), "x")
	}
	if n := len(names()); n != events.MaxTargetEvents {
		t.Errorf("%d hear", n)
	}
}

func TestAnnouncementNamesDecidingRule(t *testing.T) {
	for name, tc := range map[string]struct {
		Event gate.Notice
		last  v1alpha1.State
		watch int
		want  string
	}{
		"nothing":             {gate.Notice{Transition: v1alpha1.Transition{State: "closed", Reason: "OutsideOpenPeriods"}}, "opened", 0, "closes at T (in 1h)"},
		"a period":            {gate.Notice{Transition: v1alpha1.Transition{State: "opened", Reason: "OpenPeriod", Period: "nights"}}, "closed", 0, "opens at T (in 1h) by 'nights'"},
		"an event":            {gate.Notice{Transition: v1alpha1.Transition{State: "closed", Reason: "ClosePeriod", Period: "days"}, Event: "Easter"}, "opened", 1, "closes at T (in 1h) by 'days' (Easter)"},
		"a planned request":   {gate.Notice{Transition: v1alpha1.Transition{State: "opened", Reason: "OpenRequested"}}, "closed", 0, "opens at T (in 1h) on request"},
		"what it watches":     {gate.Notice{Transition: v1alpha1.Transition{State: "opened", Reason: "OpenPeriod", Period: "nights"}}, "closed", 1, "opens at T (in 1h) by 'nights' if all its dependencies are ready"},
		"it is so now":        {gate.Notice{Transition: v1alpha1.Transition{State: "closed", Reason: "Default"}}, "closed", 0, "closes again at T (in 1h)"},
		"another time before": {gate.Notice{Transition: v1alpha1.Transition{State: "closed", Reason: "Default"}, Instead: start}, "opened", 0, "closes at T (in 1h), not at 2026-11-23T12:00:00Z as announced"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{DependsOn: make([]v1alpha1.DependencyReference, tc.watch)}}
			g.Status.LastTransition = &v1alpha1.Transition{State: tc.last}
			tc.Event.At = metav1.NewTime(start.Add(time.Hour))
			equal(t, strings.Replace(announcementText(g, tc.Event, start), "2026-11-23T13:00:00Z", "T", 1), tc.want)
		})
	}
}

func TestTimesAreFormattedShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		24 * time.Hour: "24h", 24*time.Hour - time.Second: "24h", 90 * time.Minute: "1h30m", time.Hour + time.Minute + 40*time.Second: "1h2m",
		10 * time.Minute: "10m", time.Minute: "1m", time.Minute - time.Millisecond: "1m", 59*time.Minute + 31*time.Second: "1h", 40 * time.Second: "40s", time.Millisecond: "1s", 720 * time.Hour: "720h",
	} {
		if got := formatDelay(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var many []*target.Object
	for range 9 {
		obj := newKustomization(strings.Repeat("n", 63), strings.Repeat("x", 253))
		many = append(many, obj)
	}
	if text := list(many); len(text) > maxList+20 || !strings.HasSuffix(text, " and 8 more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	var off []v1alpha1.Announcement
	for range 5 {
		off = append(off, v1alpha1.Announcement{At: metav1.NewTime(start), State: v1alpha1.StateOpened})
	}
	equal(t, cancellationText(off), "no longer changes as announced, cancelled: opening at 2026-11-23T12:00:00Z, opening at 2026-11-23T12:00:00Z, opening at 2026-11-23T12:00:00Z and 2 more. ")
}

func TestDocumentedAnnouncementsAreEmitted(t *testing.T) {
	g := &v1alpha1.Gate{}
	day := time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)
	p := Impact{Complete: true}
	for _, name := range []string{"apps", "billing", "cart", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		p.Governed = append(p.Governed, newKustomization("flux-system", name))
	}
	p.Held, p.Outdated = p.Governed, []*target.Object{p.Governed[0], p.Governed[2]}
	notice := func(at time.Time, state v1alpha1.State, by string) gate.Notice {
		return gate.Notice{Transition: v1alpha1.Transition{At: metav1.NewTime(at), State: state, Period: by}}
	}
	end := time.Date(2026, 12, 28, 6, 0, 0, 0, time.UTC)
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "notifications.md"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, regexp.MustCompile("(?m)Gate 'flux-system/releases' [^`\n]*").FindAllString(string(docs), -1), []string{
		"Gate 'flux-system/releases' " + announcementText(g, notice(day, v1alpha1.StateClosed, "freeze"), day.Add(-24*time.Hour)) + p.Describe(g, v1alpha1.StateClosed),
		"Gate 'flux-system/releases' " + announcementText(g, notice(end, v1alpha1.StateOpened, ""), end.Add(-time.Hour)) + p.Describe(g, v1alpha1.StateOpened),
		"Gate 'flux-system/releases' " + cancellationText([]v1alpha1.Announcement{{At: metav1.NewTime(day), State: v1alpha1.StateClosed}}) + "Gate opened by default",
	})
}

func TestStateChangeImpact(t *testing.T) {
	a, b := newKustomization("shop", "a"), newKustomization("shop", "b")
	both := []*target.Object{a, b}
	for name, tc := range map[string]struct {
		impact Impact
		state  v1alpha1.State
		mode   v1alpha1.Mode
		opened bool
		want   string
	}{
		"a close":                         {Impact{Governed: both}, v1alpha1.StateClosed, "", true, ": 2 targets would be held: Kustomization shop/a, Kustomization shop/b"},
		"a close, with mode Audit":        {Impact{Governed: both}, v1alpha1.StateClosed, v1alpha1.ModeAudit, true, ": 2 targets would be held: Kustomization shop/a, Kustomization shop/b. The gate has mode Audit and holds nothing."},
		"a close without targets":         {Impact{}, v1alpha1.StateClosed, "", true, ": nothing would be held"},
		"an opening":                      {Impact{Governed: both, Held: both}, v1alpha1.StateOpened, "", false, ": 2 targets are held"},
		"an opening, nothing waits":       {Impact{Governed: both, Held: both[:1], Complete: true}, v1alpha1.StateOpened, "", false, ": 1 target is held, without pending changes"},
		"an opening, updates wait":        {Impact{Governed: both, Held: both, Outdated: both[:1], Complete: true}, v1alpha1.StateOpened, "", false, ": 2 targets are held, with pending changes for 1: Kustomization shop/a"},
		"an opening, some are unknown":    {Impact{Governed: both, Held: both, Outdated: both[:1]}, v1alpha1.StateOpened, "", false, ": 2 targets are held, with pending changes for at least 1: Kustomization shop/a"},
		"an opening without held targets": {Impact{Governed: both}, v1alpha1.StateOpened, "", false, ": nothing is held"},
		"an opening after the next close": {Impact{Governed: both}, v1alpha1.StateOpened, "", true, ""},
		"an opening, with mode Audit":     {Impact{Governed: both}, v1alpha1.StateOpened, v1alpha1.ModeAudit, false, ". The gate has mode Audit and holds nothing."},
	} {
		g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Mode: tc.mode}}
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[tc.opened]}}
		if got := tc.impact.Describe(g, tc.state); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
