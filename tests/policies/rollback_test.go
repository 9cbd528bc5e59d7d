package policies

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
)

const (
	rollbackAt    = v1alpha1.RollbackRequestedAtAnnotation
	rollbackBy    = v1alpha1.RollbackRequestedByAnnotation
	rollbackWhy   = v1alpha1.RollbackReasonAnnotation
	rollbackGates = v1alpha1.RollbackGatesAnnotation
)

// frozen returns a GatedSource without approvals that was promoted to commits a and b, and that the named Gates hold now.
func (w *world) frozen(gates ...string) *v1alpha1.GatedSource {
	w.Helper()
	w.gated()
	w.pushed(commit("b"))
	w.isPinned("b")
	g := &v1alpha1.GatedSource{}
	g.Name, g.Namespace = "apps", w.Namespace
	for _, name := range gates {
		w.ClosedGate(name, v1alpha1.TargetReference{Kind: v1alpha1.GatedSourceKind, Name: "apps"})
	}
	w.until("the gates hold it", func() (bool, any) {
		w.Read(g)
		return len(g.Status.HeldBy) == len(gates) && len(g.Status.Promotions) == 2, g.Status
	})
	w.until("gate-rollback-verb is in force", func() (bool, any) {
		out, err := admin.kubectl(w.Context(), w.Namespace, "annotate gtsrc apps --dry-run=server "+rollbackAt+"=x")
		return err != nil && strings.Contains(out+err.Error(), "may not roll back"), out
	})
	w.until("gate-rollback-stamp is in force", func() (bool, any) {
		out, err := admin.kubectl(w.Context(), w.Namespace, "annotate gtsrc apps --dry-run=server -o=yaml "+rollbackBy+"=x")
		return err == nil && !strings.Contains(out, rollbackBy), out
	})
	return g
}

// rollback returns the command that requests a rollback to a revision.
func rollback(g *v1alpha1.GatedSource, revision string, more ...string) []string {
	return append([]string{"annotate", "--overwrite", "gtsrc", "apps", rollbackAt + "=" + promotion.FormatRollback(g, revision, time.Now())}, more...)
}

func TestRollbackNeedsVerbOpenOnEachClosedGate(t *testing.T) {
	w := newWorld(t)
	g := w.frozen("production", "freeze")
	mallory := w.as("mallory", "gate-viewer")
	w.mayOn("mallory", "patch get", "gatedsources.gating.toolkit.fluxcd.io")
	const needs = "user mallory may not roll back gated source "
	for _, only := range []string{"", "production"} {
		if only != "" {
			defer w.bind("mallory", false, "open", []string{only}, "gates.gating.toolkit.fluxcd.io")()
		}
		w.refused(mallory, needs+w.Namespace+"/apps: it needs the verb open", rollback(g, commit("a"))...)
		w.refused(mallory, needs+w.Namespace+"/apps: it needs the verb open", rollback(g, commit("a"), rollbackBy+"=alice", rollbackGates+"="+w.Namespace+"/production")...)
		w.refused(mallory, needs+w.Namespace+"/apps: it needs the verb open", "annotate", "gtsrc", "apps", rollbackWhy+"=crashes")
	}
	defer w.bind("mallory", false, "open", []string{"freeze"}, "gates.gating.toolkit.fluxcd.io")()
	w.refused(mallory, "may not change annotations other than those of approvals and rollbacks", "annotate", "gtsrc", "apps", "a=b")
	w.allowed(mallory, rollback(g, commit("a"), rollbackBy+"=alice", rollbackWhy+"=crashes", rollbackGates+"=*")...)
	w.isPinned("a")
	w.until("the rollback is recorded", func() (bool, any) {
		w.Read(g)
		p := g.Status.Promotions[0]
		return p.Reason == v1alpha1.RolledBackReason && p.RequestedBy == "mallory" && p.Message == "crashes", p
	})
	w.is("the gates", g.Status.Rollback.Gates, w.Namespace+"/freeze,"+w.Namespace+"/production")
	olga := w.as("olga", opener)
	w.mayOn("olga", "patch get", "gatedsources.gating.toolkit.fluxcd.io")
	w.allowed(olga, "annotate", "--overwrite", "gtsrc", "apps", rollbackGates+"=*", rollbackBy+"=alice") // has no effect
	w.Read(g)
	w.is("the stamps", []string{g.Annotations[rollbackBy], g.Annotations[rollbackGates]}, []string{"mallory", w.Namespace + "/freeze," + w.Namespace + "/production"})
	w.allowed(olga, rollback(g, commit("b"))...)
	w.Read(g)
	w.is("the requester and the reason", []string{g.Annotations[rollbackBy], g.Annotations[rollbackWhy]}, []string{"olga", ""})
	w.isPinned("b")
}

func TestAttacksOnRollback(t *testing.T) {
	w := newWorld(t)
	g := w.frozen("production")
	both := w.as("both", opener, sourceEditor, viewer)
	w.pushed(commit("c"))
	w.until("another revision waits", func() (bool, any) {
		w.Read(g)
		return g.Status.Pending != nil && g.Status.Pending.Revision == commit("c"), g.Status.Pending
	})
	value := promotion.FormatRollback(g, commit("a"), time.Now())
	as := func(value string) []string { return []string{"annotate", "gtsrc", "apps", rollbackAt + "=" + value} }
	const form = "must be TIME,uid=UID,revision=REVISION"
	for _, a := range []struct {
		because string
		args    []string
	}{
		{"the revision is not in status.promotions", as(strings.Replace(value, commit("a"), commit("c"), 1))},
		{"the revision is not in status.promotions", as(value + ",revision=" + commit("b"))},
		{"it names the uid of another object", as(strings.Replace(value, string(g.UID), "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55", 1))},
		{form, as("NOW")},
		{form, as("")},
		{form, as(strings.Replace(value, "uid=", "round=0,uid=", 1))},
		{"must be requested manually, with kubectl gate rollback, not by a manifest",
			[]string{"apply", "--server-side", "-f", gatedFile("apps", "", map[string]string{rollbackAt: value})}},
		{"only the gating-controller may write it", []string{"patch", "gtsrc", "apps", "--subresource=status", "--type=merge", "-p", `{"status":{"heldBy":null}}`}},
	} {
		who := both
		if strings.Contains(a.because, "gating-controller") {
			who = admin
		}
		w.refused(who, a.because, a.args...)
	}
	w.Must(w.Client.Create(w.Context(), func() *v1alpha1.GatedSource {
		copied := &v1alpha1.GatedSource{Spec: *g.Spec.DeepCopy()}
		copied.Name, copied.Namespace = "copied", w.Namespace
		copied.Annotations = map[string]string{rollbackAt: value, rollbackBy: "alice", rollbackGates: "*", "team": "shop"}
		return copied
	}()))
	copied := &v1alpha1.GatedSource{}
	copied.Name, copied.Namespace = "copied", w.Namespace
	w.Read(copied)
	w.is("the annotations of a new GatedSource", copied.Annotations, map[string]string{"team": "shop"})
	w.isPinned("b")
}

// While no Gate is closed, a rollback needs the same verb as any other choice of a revision.
func TestRollbackWithOpenGatesNeedsVerbApprove(t *testing.T) {
	w := newWorld(t)
	g := w.frozen()
	olga, edith := w.as("olga", opener, sourceEditor, viewer), w.as("edith", sourceEditor, sourceApprover)
	w.refused(olga, "no gate is closed, so it needs the verb approve", rollback(g, commit("a"))...)
	w.allowed(edith, rollback(g, commit("a"))...)
	w.isPinned("a")
	w.pushed(commit("c"))
	w.isPinned("c")
}

// The controller refuses a rollback for which the verb was not checked on each closed Gate.
func TestRollbackDoesNotCoverGateClosingLater(t *testing.T) {
	w := newWorld(t)
	g := w.frozen("production")
	olga := w.as("olga", opener, sourceEditor, viewer)
	start := w.stopController()
	w.ClosedGate("freeze", v1alpha1.TargetReference{Kind: v1alpha1.GatedSourceKind, Name: "apps"})
	w.allowed(olga, rollback(g, commit("a"))...)
	start()
	w.until("the rollback is refused", func() (bool, any) {
		w.Read(g)
		r := g.Status.Rollback
		return r != nil && strings.Contains(r.Refused, "gate '"+w.Namespace+"/freeze' holds it as well, and is not in "+rollbackGates), r
	})
	w.isPinned("b")
}
