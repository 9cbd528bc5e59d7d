package controllers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// logging is a test whose context has a logger.
type logging struct {
	testing.TB
	logger logr.Logger
}

func (l logging) Context() context.Context { return ctrl.LoggerInto(l.TB.Context(), l.logger) }

// logs returns a world whose log lines are collected, one text per line.
func logs(t *testing.T) (*world, *[]string) {
	t.Helper()
	w, lines := newWorld(t), &[]string{}
	w.TB = logging{t, funcr.New(func(_, line string) { *lines = append(*lines, line) }, funcr.Options{})}
	return w, lines
}

// request asks for an action at a time in the name of somebody.
func (w *world) request(g *v1alpha1.Gate, action string, at time.Time, by, reason string) {
	w.Helper()
	w.Edit(g, func() {
		if g.Annotations == nil {
			g.Annotations = map[string]string{}
		}
		g.Annotations[action+".gate.fluxcd.io/requestedAt"] = at.Format(time.RFC3339)
		g.Annotations[action+".gate.fluxcd.io/requestedBy"] = by
		g.Annotations[action+".gate.fluxcd.io/reason"] = reason
	})
}

func TestStatusEventsAndLogSayWhoOpenedWhenAndWhy(t *testing.T) {
	w, lines := logs(t)
	g := w.ClosedGate("production")
	w.reconcile(g)
	w.request(g, "open", start, "alice", "hotfix 1234")
	w.events.take("")
	w.reconcile(g)

	if last := g.LatestRequest(); last == nil || last.RequestedBy != "alice" || last.Message != "hotfix 1234" || !last.RequestedAt.Time.Equal(start) {
		t.Errorf("lastRequest is %+v", last)
	}
	want := "Normal Gate/production RequestAccepted: Gate open requested at 2026-11-23T12:00:00Z by alice: hotfix 1234\n" +
		"Normal Gate/production OpenRequested: Gate open requested at 2026-11-23T12:00:00Z by alice: hotfix 1234"
	if got := strings.Join(w.events.take(""), "\n"); got != want {
		t.Errorf("events\ngot  %s\nwant %s", got, want)
	}
	line := strings.Join(*lines, "\n")
	for _, part := range []string{`"msg"="Gate open requested at 2026-11-23T12:00:00Z by alice: hotfix 1234"`, `"state"="opened"`, `"requestedAt"="2026-11-23T12:00:00Z"`, `"requestedBy"="alice"`, `"requestMessage"="hotfix 1234"`} {
		if !strings.Contains(line, part) {
			t.Errorf("no %s in the log:\n%s", part, line)
		}
	}
}

func TestAPlannedReleaseIsThatOfWhoPlannedIt(t *testing.T) {
	w, lines := logs(t)
	g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Window: duration(time.Hour)})
	w.request(g, "open", start.Add(hours(24)), "alice", "release 7")
	w.reconcile(g)
	w.request(g, "close", start, "bob", "incident")
	w.reconcile(g)
	w.in(hours(24))
	*lines = nil
	w.events.take("")
	w.reconcile(g)
	if got := strings.Join(w.events.take("Gate/"), "\n"); !strings.HasSuffix(got, ", open requested at 2026-11-24T12:00:00Z by alice: release 7") {
		t.Errorf("events %s", got)
	}
	if line := strings.Join(*lines, "\n"); !strings.Contains(line, `"requestedBy"="alice"`) || strings.Contains(line, "bob") {
		t.Errorf("log %s", line)
	}
}

func TestATransitionThatNobodyRequestedNamesNobody(t *testing.T) {
	w, lines := logs(t)
	g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Window: duration(time.Hour)})
	w.request(g, "open", start, "alice", "hotfix")
	w.reconcile(g)
	w.in(hours(1))
	*lines = nil
	w.events.take("")
	w.reconcile(g)
	want := "Normal Gate/production Default: Gate closed by default"
	if got := strings.Join(w.events.take(""), "\n"); got != want {
		t.Errorf("events %s", got)
	}
	if line := strings.Join(*lines, "\n"); !strings.Contains(line, `"state"="closed"`) || strings.Contains(line, "alice") {
		t.Errorf("log %s", line)
	}
}
