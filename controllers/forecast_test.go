package controllers_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	gatecontroller "github.com/fluxcd/gating-controller/controllers/gate"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// leads returns lead times in hours.
func leads(before ...float64) (leads []v1alpha1.Duration) {
	for _, h := range before {
		leads = append(leads, v1alpha1.Duration{Duration: hours(h)})
	}
	return leads
}

// freeze returns a close period between two times, in hours after start.
func freeze(from, until float64) []v1alpha1.ClosePeriod {
	at := func(h float64) *v1alpha1.DateTime { return v1alpha1.NewDateTime(start.Add(hours(h))) }
	return []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze", From: at(from), Until: at(until)}}}
}

// telling creates a Gate for all Kustomizations that is open except in close periods, and announces these a day and an hour before.
func (w *world) telling(periods []v1alpha1.ClosePeriod, edits ...func(*v1alpha1.GateSpec)) *v1alpha1.Gate {
	w.Helper()
	spec := v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{all()}, ClosePeriods: periods, NotifyBefore: leads(24, 1),
		Interval: v1alpha1.Duration{Duration: hours(1000)},
	}
	for _, edit := range edits {
		edit(&spec)
	}
	return w.GateIn(w.Namespace, "production", spec)
}

// edit changes the spec of a Gate.
func (w *world) edit(g *v1alpha1.Gate, edit func(*v1alpha1.GateSpec)) {
	w.Helper()
	w.Read(g)
	before := g.DeepCopy()
	edit(&g.Spec)
	w.Must(cluster.Client.Patch(w.Context(), g, client.MergeFrom(before)))
}

// expectTold reconciles a Gate some hours after start. It checks the announcements on the Gate, and that its targets have the same.
func (w *world) expectTold(g *v1alpha1.Gate, after float64, want ...string) ctrl.Result {
	w.Helper()
	w.In(hours(after))
	result := w.Reconcile(g)
	var onGate, onTargets []string
	for _, event := range w.Events.Take("") {
		object, said, _ := strings.Cut(strings.ReplaceAll(event, w.Namespace, "NS"), ": ")
		if !strings.Contains(object, "Soon") && !strings.Contains(object, "CalledOff") {
			continue
		}
		if strings.HasPrefix(object, "Normal Gate/production ") {
			onGate = append(onGate, said)
		} else {
			onTargets = append(onTargets, strings.Replace(said, "Gate 'NS/production' ", "Gate ", 1))
		}
	}
	if !slices.Equal(onGate, want) || !slices.Equal(onTargets, want) {
		w.Errorf("after %gh\ngot  %s\nand  %s\nwant %s", after, strings.Join(onGate, "\n     "), strings.Join(onTargets, "\n     "), strings.Join(want, "\n     "))
	}
	return result
}

const closesSoon = "Gate closes at 2026-11-24T18:00:00Z (in 24h) by 'freeze': 1 target would be held: Kustomization NS/apps"

// Nothing is announced before it is in the status, and nothing that is in the status is announced again after a crash.
func TestAnnouncementIsWrittenWithStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.NewKustomization("apps", nil)
	g := w.telling(freeze(30, 32))
	next := func(result ctrl.Result, want float64) {
		t.Helper()
		if result.RequeueAfter != hours(want) {
			t.Errorf("requeue after %s, want %s", result.RequeueAfter, hours(want))
		}
	}
	next(w.expectTold(g, 0), 6)
	w.In(hours(6))
	w.Writes.Before = func(string) error { return errBroken }
	if _, err := w.Try(g); err == nil {
		t.Fatal("no error although nothing could be written")
	}
	expectNone(t, w.Events.Take("Soon"))
	w.Writes.Before = nil
	w.ResetState()
	next(w.expectTold(g, 6, closesSoon), 2)
	version := g.ResourceVersion
	w.ResetState()
	if w.expectTold(g, 6); g.ResourceVersion != version {
		t.Error("it was written again")
	}

	// A refused request, an announcement and a requested reconciliation share one write.
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, "soon")
	w.Annotate(g, meta.ReconcileRequestAnnotation, "now")
	w.Writes.Take("")
	next(w.expectTold(g, 8, "Gate opens again at 2026-11-24T20:00:00Z (in 24h)"), 21)
	equal(t, w.Writes.Take(""), []string{"patch-status Gate/production"})
	if len(g.Status.Memory.Announced) != 2 || len(g.Status.History) == 0 || g.Status.History[0].Refused == "" || g.Status.LastHandledReconcileAt != "now" {
		t.Errorf("the status lacks a part: %+v", g.Status)
	}

	w.State.Background = gatecontroller.NewBackground() // it is never started, so its work stays queued
	w.expectTold(g, 29)
	if closing := g.Status.Memory.Announced[0]; closing.Before.Duration != time.Hour {
		t.Errorf("the status has %+v", closing)
	}
	w.ResetState()
	w.expectTold(g, 29.5)
	w.expectTold(g, 30)
	w.expectTold(g, 31, "Gate opens at 2026-11-24T20:00:00Z (in 1h): 1 target is held")
	w.edit(g, func(s *v1alpha1.GateSpec) { s.ClosePeriods = freeze(30, 100) })
	w.expectTold(g, 31.5, "Gate no longer changes as announced, cancelled: opening at 2026-11-24T20:00:00Z. "+
		"Gate closed by close period 'freeze', scheduled for opening at 2026-11-27T16:00:00Z")
	w.expectTold(g, 40)
	expectNone(t, g.Status.Memory.Announced)
}

// fetched creates a GitRepository with a revision, and a Kustomization that follows it and has applied another one.
func (w *world) fetched(name, revision, applied string) {
	w.Helper()
	source := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", w.Key(name))
	source.Object["spec"] = map[string]any{"interval": "1h", "url": "https://example.com/x"}
	w.Create(source)
	before := source.DeepCopy()
	source.Object["status"] = map[string]any{"artifact": map[string]any{
		"revision": revision, "lastUpdateTime": "2026-11-20T12:00:00Z", "path": "x", "url": "http://example.com/x", "digest": "sha256:" + strings.Repeat("0", 64),
	}}
	w.Must(cluster.Client.Status().Patch(w.Context(), source, client.MergeFrom(before)))
	w.PatchAsFlux(w.NewKustomization(name, nil), `{"spec":{"sourceRef":{"name":"`+name+`"}}}`)
	w.applied(name, applied)
}

func TestOpeningAnnouncementListsWaitingTargets(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})
	f.looks()
	f.fetched("same", "main@sha1:1", "main@sha1:1")
	f.fetched("new", "main@sha1:2", "main@sha1:1")
	g := f.telling(freeze(0, 40), func(s *v1alpha1.GateSpec) { s.Targets = append(s.Targets, allGatedSources) })
	f.push("b")
	f.looks(g)
	f.isAt("a", "Approved False GateClosed")
	expect := func(after float64, want string) {
		t.Helper()
		f.In(hours(after))
		f.Reconcile(g)
		got := f.Events.Take("Normal Gate/production GateOpensSoon: ")
		if len(got) != 1 || !strings.HasSuffix(strings.ReplaceAll(got[0], f.Namespace, "NS"), want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	const waiting = "GatedSource NS/apps, Kustomization NS/new"
	expect(16, "(in 24h): 3 targets are held, with pending changes for 2: "+waiting)
	f.NewKustomization("sourceless", nil)
	f.edit(g, func(s *v1alpha1.GateSpec) { s.NotifyBefore = leads(22) })
	f.In(hours(17.5))
	f.Reconcile(g)
	expect(18, "(in 22h): 4 targets are held, with pending changes for at least 2: "+waiting)
}

// announcementThroughTheCaches is a case of TestThroughTheCaches.
func announcementThroughTheCaches(t *testing.T, w *world) {
	w.NewKustomizations(3)
	now := time.Now()
	w.GateIn(w.Namespace, "production", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{all()}, NotifyBefore: []v1alpha1.Duration{{Duration: time.Minute}},
		ClosePeriods: []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze", From: v1alpha1.NewDateTime(now.Add(63 * time.Second)), Until: v1alpha1.NewDateTime(now.Add(time.Hour))}}},
	})
	var said []string
	soon(t, "the Gate and a target hear", func() bool {
		said = append(said, w.Events.Take("GateClosesSoon")...)
		return len(said) == 2
	})
	due := now.Add(63 * time.Second).Truncate(time.Second).Add(-time.Minute)
	if early := time.Until(due); early > 0 {
		t.Errorf("it was told %s early", early)
	}
	want := regexp.MustCompile(`GateClosesSoon: Gate closes at \S+ \(in (1m|[345]\ds)\) by 'freeze': 3 targets would be held: Kustomization NS/app-00, Kustomization NS/app-01, Kustomization NS/app-02$`)
	if got := strings.ReplaceAll(said[0], w.Namespace, "NS"); !want.MatchString(got) { // a busy machine may be some seconds late
		t.Errorf("got %q", got)
	}
}
