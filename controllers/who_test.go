package controllers_test

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

// logging is a testing.TB whose context has a logger.
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

// request requests an action at a time in the name of a user.
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

func TestStatusEventsAndLogNameRequesterTimeAndReason(t *testing.T) {
	w, lines := logs(t)
	g := w.ClosedGate("production")
	w.Reconcile(g)
	w.request(g, "open", start, "alice", "hotfix 1234")
	w.Events.Take("")
	w.Reconcile(g)

	if last := g.LatestRequest(); last == nil || last.RequestedBy != "alice" || last.Message != "hotfix 1234" || !last.RequestedAt.Time.Equal(start) {
		t.Errorf("lastRequest is %+v", last)
	}
	want := "Normal Gate/production RequestAccepted: Gate open requested at 2026-11-23T12:00:00Z by alice: hotfix 1234\n" +
		"Normal Gate/production OpenRequested: Gate open requested at 2026-11-23T12:00:00Z by alice: hotfix 1234"
	if got := strings.Join(w.Events.Take(""), "\n"); got != want {
		t.Errorf("events\ngot  %s\nwant %s", got, want)
	}
	line := strings.Join(*lines, "\n")
	for _, part := range []string{`"msg"="Gate open requested at 2026-11-23T12:00:00Z by alice: hotfix 1234"`, `"state"="opened"`, `"requestedAt"="2026-11-23T12:00:00Z"`, `"requestedBy"="alice"`, `"requestMessage"="hotfix 1234"`} {
		if !strings.Contains(line, part) {
			t.Errorf("no %s in the log:\n%s", part, line)
		}
	}
}
