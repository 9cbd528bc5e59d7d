package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	sourceEditor   = "gated-source-editor"
	sourceApprover = "gated-source-approver"
	reason         = v1alpha1.ApproveReasonAnnotation
)

func commit(letter string) string { return "main@sha1:" + strings.Repeat(letter, 40) }

// pushed sets the revision of the Git repository apps as source-controller does.
func (w *world) pushed(revision string) {
	w.Helper()
	source := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", w.Key("apps"))
	if w.TryRead(source) != nil {
		source.Object["spec"] = map[string]any{"url": "https://git.example.com/apps", "interval": "1m", "ref": map[string]any{"branch": "main"}}
		w.Create(source)
	}
	before := source.DeepCopy()
	source.Object["status"] = map[string]any{"observedGeneration": source.GetGeneration(), "artifact": map[string]any{
		"revision": revision, "digest": "sha256:" + strings.Repeat("0", 64), "path": "p", "url": "http://source/p", "lastUpdateTime": "2026-11-23T12:00:00Z",
	}}
	w.Must(w.Client.Status().Patch(w.Context(), source, client.MergeFrom(before)))
}

// following creates a GatedSource that needs two approvals, and waits until it has observed some commits.
func (w *world) following(letters ...string) *v1alpha1.GatedSource {
	w.Helper()
	w.pushed(commit(letters[0]))
	g := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}, Approvals: &v1alpha1.ApprovalRule{Required: 2},
	}}
	w.Create(g)
	for _, letter := range letters {
		w.pushed(commit(letter))
		w.until("the status has commit "+letter, func() (bool, any) {
			w.Read(g)
			return g.Status.Latest != nil && g.Status.Latest.Revision == commit(letter), g.Status.Latest
		})
	}
	return g
}

// approves waits until a GatedSource has some approvals in its status, each as a letter and a name.
func (w *world) approves(g *v1alpha1.GatedSource, want ...string) {
	w.Helper()
	w.until(fmt.Sprintf("the status has the approvals %q", want), func() (bool, any) {
		w.Read(g)
		var got []string
		for _, a := range g.Status.Approvals {
			got = append(got, a.Revision[len(a.Revision)-1:]+" "+a.ApprovedBy)
		}
		return slices.Equal(got, want), got
	})
}

func (w *world) promoted(g *v1alpha1.GatedSource, letter string) {
	w.Helper()
	w.until("the pin is at "+letter, func() (bool, any) {
		w.Read(g)
		return g.Status.Pinned != nil && g.Status.Pinned.Revision == commit(letter), g.Status.Pinned
	})
}

// onlyAlice checks that only alice's approvals are recorded.
func (w *world) onlyAlice(g *v1alpha1.GatedSource) {
	w.Helper()
	w.until("only alice's approvals are recorded", func() (bool, any) {
		w.Read(g)
		other := func(a v1alpha1.RevisionApproval) bool { return a.ApprovedBy != "alice" || a.Revision != commit("a") }
		return !slices.ContainsFunc(g.Status.Approvals, other), g.Status.Approvals
	})
}

// approve returns the command that approves a revision in the current round of g.
func (w *world) approve(g *v1alpha1.GatedSource, revision string, more ...string) []string {
	w.Helper()
	w.Read(g)
	return approveAs(promotion.FormatApproval(g, revision, time.Now()), more...)
}

func approveAs(value string, more ...string) []string {
	return append([]string{"annotate", "gtsrc", "apps", approveAt + "=" + value}, more...)
}

func TestRevisionApprovalHasNameOfApprover(t *testing.T) {
	w := newWorld(t)
	alice, bob := w.as("alice", sourceApprover), w.as("bob", sourceApprover)
	g := w.following("a", "b")
	w.allowed(alice, w.approve(g, commit("a"), reason+"=seen in staging")...)
	w.approves(g, "a alice")
	if got := g.Status.Approvals[0].Message; got != "seen in staging" || g.Annotations[approveAt]+g.Annotations[reason] != "" {
		t.Errorf("the reason is %q, the annotations are %v", got, g.Annotations)
	}
	w.allowed(alice, w.approve(g, commit("a"))...)
	w.allowed(bob, w.approve(g, commit("b"))...)
	w.approves(g, "a alice", "b bob")
	w.allowed(alice, "annotate", "--overwrite", "gtsrc", "apps", v1alpha1.ApproveRequestedByAnnotation+"=") // as Flux removes it
	w.allowed(bob, w.approve(g, commit("a"))...)
	w.promoted(g, "a")
	w.approves(g)
	p := g.Status.Promotions[0]
	if len(p.Approvals) != 2 || p.Approvals[0].ApprovedBy != "alice" || p.Approvals[1].ApprovedBy != "bob" {
		t.Errorf("promoted by %+v", p.Approvals)
	}
	w.allowed(bob, w.approve(g, commit("b"))...) // in the next round, approvals of the previous one do not count
	w.approves(g, "b bob")
	w.allowed(alice, w.approve(g, commit("b"))...)
	w.promoted(g, "b")
	for _, p := range []*person{alice, bob} {
		w.allowed(p, w.approve(g, commit("a"))...)
	}
	w.promoted(g, "a")
	comma := "fix,revision=x@sha1:" + strings.Repeat("c", 40)
	w.pushed(comma)
	w.until("the status has the branch with a comma", func() (bool, any) {
		w.Read(g)
		return g.Status.Latest.Revision == comma, g.Status.Latest
	})
	w.allowed(alice, w.approve(g, comma)...)
	w.until("the approval is recorded", func() (bool, any) {
		w.Read(g)
		return len(g.Status.Approvals) == 1 && g.Status.Approvals[0].Revision == comma, g.Status.Approvals
	})
}

func TestAttacksOnRevision(t *testing.T) {
	w := newWorld(t)
	people := map[string]*person{
		"edith": w.as("edith", sourceEditor, viewer), "alice": w.as("alice", sourceApprover), "vera": w.as("vera", viewer), "both": w.as("both", sourceEditor, sourceApprover),
		"clara": w.clusterAdmin(),
	}
	g := w.following("a", "b")
	by := v1alpha1.ApproveRequestedByAnnotation
	line := func(revision, who string) string {
		return fmt.Sprintf("round=0,uid=%s,revision=%s %s", g.UID, revision, who)
	}
	merge := func(patch string) []string { return []string{"patch", "gtsrc", "apps", "--type=merge", "-p", patch} }
	value := promotion.FormatApproval(g, commit("a"), time.Now())
	without := func(text, with string) []string { return approveAs(strings.Replace(value, text, with, 1)) }
	file := gatedFile("apps", `{"approvals":{"required":2}}`, map[string]string{approveAt: value})
	approved := gatedFile("born", `{"approvals":{"required":1}}`, map[string]string{approveAt: value})
	pinned := gatedFile("pinned", `{"revision":"`+commit("a")+`"}`, nil)
	for lines, who := range map[string]string{
		line(commit("a"), "bob"): "clara", line(commit("a"), "alice") + "\n" + line(commit("a"), "bob"): "alice",
		strings.Replace(line(commit("a"), "alice"), "round=0", "round=1", 1): "alice", strings.Replace(line(commit("a"), "alice"), string(g.UID), "other", 1): "alice",
		line(commit("c"), "alice"): "alice", // never observed
	} {
		_, _ = people[who].kubectl(w.Context(), w.Namespace, "annotate", "--overwrite", "gtsrc", "apps", by+"="+lines)
		w.Read(g)
		for _, forged := range []string{" bob", commit("c"), "round=1", "uid=other"} {
			if strings.Contains(g.Annotations[by], forged) {
				t.Errorf("%q by %s results in %q", lines, who, g.Annotations[by])
			}
		}
		w.onlyAlice(g)
	}
	const needs, form = "needs the verb approve", "it must be TIME,round=NUMBER,uid=UID,revision=REVISION"
	for _, a := range []struct {
		who, because string
		args         []string
	}{
		{"edith", needs, w.approve(g, commit("a"))},
		{"vera", "cannot patch resource", w.approve(g, commit("a"))},
		{"alice", "the source has not had the revision", w.approve(g, commit("c"))},
		{"alice", "the source has not had the revision", w.approve(g, "main")},
		{"alice", form, approveAs("")},
		{"alice", form, approveAs(commit("a"))},
		{"alice", form, approveAs(value[strings.Index(value, ",")+1:])},
		{"alice", "it names another round than the current one, 0", without("round=0", "round=7")},
		{"alice", "it names the uid of another object", without(string(g.UID), "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55")},
		{"alice", form, without("round=0,uid="+string(g.UID), "uid="+string(g.UID)+",round=0")},
		{"alice", form, without("round=0", "round=0,round=0")},
		{"alice", "the source has not had the revision", approveAs(value + ",x=y")},
		{"alice", "the source has not had the revision", approveAs(value + ",revision=" + commit("b"))},
		{"alice", form, approveAs(value + "\n" + line(commit("a"), "bob"))},
		{"both", "by a manifest", merge(`{"metadata":{"annotations":{"` + approveAt + `":"` + value + `"}},"spec":{"approvals":{"required":1}}}`)},
		{"both", "by a manifest", []string{"apply", "-f", file}},
		{"both", "by a manifest", []string{"apply", "--server-side", "--force-conflicts", "-f", file}},
		{"both", "while creating it", []string{"create", "-f", approved}},
		{"edith", needs, merge(`{"spec":{"revision":"` + commit("a") + `"}}`)},
		{"edith", needs, []string{"create", "-f", pinned}},
		{"edith", needs, merge(`{"spec":{"approvals":{"required":1}}}`)},
		{"edith", needs, merge(`{"spec":{"approvals":null}}`)},
		{"edith", needs, merge(`{"spec":{"sourceRef":{"name":"else"}}}`)},
		{"alice", "may not change spec of gated source", merge(`{"spec":{"deletionPolicy":"Delete"}}`)},
		{"alice", "may not change annotations other than those of approvals and rollbacks", []string{"annotate", "gtsrc", "apps", v1alpha1.GatesAnnotation + "=none"}},
		{"alice", "may not change labels", []string{"label", "gtsrc", "apps", "a=b"}},
		{"alice", "may not change ownerReferences", merge(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`)},
		{"clara", "only the gating-controller may write it", append(merge(`{"status":{"round":7}}`), "--subresource=status")},
	} {
		w.refused(people[a.who], a.because, a.args...)
	}
	if w.onlyAlice(g); g.Status.Pinned != nil || g.Status.Round != 0 {
		t.Errorf("the pin has moved: %+v", g.Status)
	}
	w.allowed(people["alice"], w.approve(g, commit("a"))...)
	for _, who := range []string{"edith", "both", "clara"} { // an approval that the controller may not have handled stays
		w.allowed(people[who], "annotate", "gtsrc", "apps", by+"-")
		if w.Read(g); !strings.Contains(g.Annotations[by], line(commit("a"), "alice")) {
			t.Errorf("%s has removed the approval: %v", who, g.Annotations)
		}
	}
	w.allowed(people["both"], merge(`{"spec":{"revision":"`+commit("b")+`"}}`)...)
	w.promoted(g, "b")
	out, err := people["alice"].kubectl(w.Context(), w.Namespace, w.approve(g, commit("a"))...)
	if err == nil || !strings.Contains(out+err.Error(), "takes no approvals") {
		t.Errorf("%s, %v", out, err)
	}
}

// During a freeze, the fields that select the Gates determine the next revision.
func TestEditorCannotRemoveGatedSourceFromGates(t *testing.T) {
	w := newWorld(t)
	edith, both := w.as("edith", sourceEditor, viewer), w.as("both", sourceEditor, sourceApprover)
	w.allowed(edith, "create", "-f", strings.Replace(gatedFile("apps", "", map[string]string{v1alpha1.GatesAnnotation: "production"}), `"metadata":{`, `"metadata":{"labels":{"tier":"production"},`, 1))
	for what, changes := range map[string][][]string{
		"metadata.labels": {{"label", "gtsrc", "apps", "tier-"}, {"label", "--overwrite", "gtsrc", "apps", "tier=staging"}, {"label", "gtsrc", "apps", "team=shop"}},
		"the annotation " + v1alpha1.GatesAnnotation: {
			{"annotate", "gtsrc", "apps", v1alpha1.GatesAnnotation + "-"}, {"annotate", "--overwrite", "gtsrc", "apps", v1alpha1.GatesAnnotation + "=other"},
			{"patch", "gtsrc", "apps", "--type=merge", "-p", `{"metadata":{"annotations":null}}`},
		},
	} {
		for _, args := range changes {
			w.refused(edith, "may not choose a revision of gated source "+w.Namespace+"/apps by "+what+": it needs the verb approve", args...)
			w.allowed(both, append(args, "--dry-run=server")...)
		}
	}
}

func TestEditorMayChangeFieldsWithoutRevision(t *testing.T) {
	w := newWorld(t)
	edith := w.as("edith", sourceEditor, viewer)
	manifest := gatedFile("apps", "", nil)
	w.allowed(edith, "create", "-f", manifest)
	w.allowed(edith, "patch", "gtsrc", "apps", "--type=merge", "-p", `{"spec":{"deletionPolicy":"Delete"}}`)
	w.allowed(edith, "annotate", "gtsrc", "apps", "team=shop")
	// Created again without its labels, the GatedSource would no longer match the Gates that keep it from pinning its first revision.
	w.refused(edith, "may not delete gated source "+w.Namespace+"/apps: it needs the verb approve", "delete", "gtsrc", "apps")
	w.refused(edith, "it needs the verb approve", "replace", "--force", "-f", manifest)
	// The garbage collector deletes objects that have lost their owner.
	owned := strings.Replace(gatedFile("owned", "", nil), `"metadata":{`, `"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}],`, 1)
	w.refused(edith, "by metadata.ownerReferences: it needs the verb approve", "create", "-f", owned)
}
