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

// pushed has the Git repository apps be at a revision, as source-controller says it.
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

// following creates a GatedSource that needs two approvals, and waits until it has seen some commits.
func (w *world) following(letters ...string) *v1alpha1.GatedSource {
	w.Helper()
	w.pushed(commit(letters[0]))
	g := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}, Approvals: &v1alpha1.ApprovalRule{Required: 2},
	}}
	w.Create(g)
	for _, letter := range letters {
		w.pushed(commit(letter))
		w.Eventually("it has seen "+letter, func() error {
			if w.Read(g); g.Status.Latest == nil || g.Status.Latest.Revision != commit(letter) {
				return fmt.Errorf("the latest is %+v", g.Status.Latest)
			}
			return nil
		})
	}
	return g
}

// approves waits until a GatedSource has some approvals in its status, each as a letter and a name.
func (w *world) approves(g *v1alpha1.GatedSource, want ...string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("it has the approvals %q", want), func() error {
		w.Read(g)
		var got []string
		for _, a := range g.Status.Approvals {
			got = append(got, a.Revision[len(a.Revision)-1:]+" "+a.ApprovedBy)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
}

func (w *world) promoted(g *v1alpha1.GatedSource, letter string) {
	w.Helper()
	w.Eventually("it is at "+letter, func() error {
		if w.Read(g); g.Status.Pinned == nil || g.Status.Pinned.Revision != commit(letter) {
			return fmt.Errorf("it is at %+v", g.Status.Pinned)
		}
		return nil
	})
}

// onlyAlice checks that nobody but alice has approved anything.
func (w *world) onlyAlice(g *v1alpha1.GatedSource) {
	w.Helper()
	w.Eventually("there are no approvals but of alice", func() error {
		if w.Read(g); slices.ContainsFunc(g.Status.Approvals, func(a v1alpha1.RevisionApproval) bool { return a.ApprovedBy != "alice" || a.Revision != commit("a") }) {
			return fmt.Errorf("there are %+v", g.Status.Approvals)
		}
		return nil
	})
}

// approve returns the command that approves a revision as g is now.
func (w *world) approve(g *v1alpha1.GatedSource, revision string, more ...string) []string {
	w.Helper()
	w.Read(g)
	return approveAs(promotion.FormatApproval(g, revision, time.Now()), more...)
}

func approveAs(value string, more ...string) []string {
	return append([]string{"annotate", "gtsrc", "apps", approveAt + "=" + value}, more...)
}

func TestAnApprovalOfARevisionHasTheNameOfWhoGaveIt(t *testing.T) {
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
	w.allowed(alice, "annotate", "--overwrite", "gtsrc", "apps", v1alpha1.ApproveRequestedByAnnotation+"=") // as Flux takes it away
	w.allowed(bob, w.approve(g, commit("a"))...)
	w.promoted(g, "a")
	w.approves(g)
	p := g.Status.Promotions[0]
	if len(p.Approvals) != 2 || p.Approvals[0].ApprovedBy != "alice" || p.Approvals[1].ApprovedBy != "bob" {
		t.Errorf("promoted by %+v", p.Approvals)
	}
	w.allowed(bob, w.approve(g, commit("b"))...) // in the next round nothing of the last one counts
	w.approves(g, "b bob")
	w.allowed(alice, w.approve(g, commit("b"))...)
	w.promoted(g, "b")
	for _, p := range []*person{alice, bob} {
		w.allowed(p, w.approve(g, commit("a"))...)
	}
	w.promoted(g, "a")
	comma := "fix,revision=x@sha1:" + strings.Repeat("c", 40)
	w.pushed(comma)
	w.Eventually("it has seen a branch with a comma", func() error {
		if w.Read(g); g.Status.Latest.Revision != comma {
			return fmt.Errorf("the latest is %s", g.Status.Latest.Revision)
		}
		return nil
	})
	w.allowed(alice, w.approve(g, comma)...)
	w.Eventually("it is approved", func() error {
		if w.Read(g); len(g.Status.Approvals) != 1 || g.Status.Approvals[0].Revision != comma {
			return fmt.Errorf("it has %+v", g.Status.Approvals)
		}
		return nil
	})
}

// attackOnSource is one that must be refused.
type attackOnSource struct {
	who, because string
	args         []string
}

func TestAttacksOnARevision(t *testing.T) {
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
	manifest := w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GatedSource","metadata":{"name":"apps","annotations":{"` + approveAt + `":"` + value +
		`"}},"spec":{"sourceRef":{"kind":"GitRepository","name":"apps"},"approvals":{"required":2}}}`)
	born := w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GatedSource","metadata":{"name":"born","annotations":{"` + approveAt + `":"` + value +
		`"}},"spec":{"sourceRef":{"kind":"GitRepository","name":"apps"},"approvals":{"required":1}}}`)
	pinned := w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GatedSource","metadata":{"name":"pinned"},"spec":{"sourceRef":{"kind":"GitRepository","name":"apps"},"revision":"` + commit("a") + `"}}`)
	for name, forged := range map[string]struct{ who, lines string }{
		"somebody approves in another name": {"alice", line(commit("a"), "bob")},
		"an admin approves in another name": {"clara", line(commit("a"), "bob")},
		"two approve at once":               {"alice", line(commit("a"), "alice") + "\n" + line(commit("a"), "bob")},
		"an approval of the next round":     {"alice", strings.Replace(line(commit("a"), "alice"), "round=0", "round=1", 1)},
		"an approval of another object":     {"alice", strings.Replace(line(commit("a"), "alice"), string(g.UID), "other", 1)},
		"a line of what was never seen":     {"alice", line(commit("c"), "alice")},
	} {
		out, err := people[forged.who].kubectl(w.Context(), w.Namespace, "annotate", "--overwrite", "gtsrc", "apps", by+"="+forged.lines)
		if w.Read(g); strings.Contains(g.Annotations[by], " bob") || strings.Contains(g.Annotations[by], commit("c")) || strings.Contains(g.Annotations[by], "round=1") || strings.Contains(g.Annotations[by], "uid=other") {
			t.Errorf("%s: %q, %s, %v", name, g.Annotations[by], out, err)
		}
		w.onlyAlice(g)
	}
	const needs, form = "needs the verb approve", "it must be TIME,round=NUMBER,uid=UID,revision=REVISION"
	for name, a := range map[string]attackOnSource{
		"who may only edit approves":             {"edith", needs, w.approve(g, commit("a"))},
		"who may only see approves":              {"vera", "cannot patch resource", w.approve(g, commit("a"))},
		"an approval of what was never seen":     {"alice", "the source has not had the revision", w.approve(g, commit("c"))},
		"an approval of a branch":                {"alice", "the source has not had the revision", w.approve(g, "main")},
		"an approval of nothing":                 {"alice", form, approveAs("")},
		"an approval of a revision alone":        {"alice", form, approveAs(commit("a"))},
		"an approval without a time":             {"alice", form, approveAs(value[strings.Index(value, ",")+1:])},
		"an approval of another round":           {"alice", "it names another round than the present one, 0", without("round=0", "round=7")},
		"an approval of another object":          {"alice", "it names the uid of another object", without(string(g.UID), "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55")},
		"an approval in another order":           {"alice", form, without("round=0,uid="+string(g.UID), "uid="+string(g.UID)+",round=0")},
		"an approval of two rounds":              {"alice", form, without("round=0", "round=0,round=0")},
		"an approval with more behind it":        {"alice", "the source has not had the revision", approveAs(value + ",x=y")},
		"an approval of two revisions":           {"alice", "the source has not had the revision", approveAs(value + ",revision=" + commit("b"))},
		"an approval with a new line":            {"alice", form, approveAs(value + "\n" + line(commit("a"), "bob"))},
		"an approval together with the spec":     {"both", "by a manifest", merge(`{"metadata":{"annotations":{"` + approveAt + `":"` + value + `"}},"spec":{"approvals":{"required":1}}}`)},
		"an approval by a manifest":              {"both", "by a manifest", []string{"apply", "-f", manifest}},
		"an approval by server-side apply":       {"both", "by a manifest", []string{"apply", "--server-side", "--force-conflicts", "-f", manifest}},
		"an approval of what does not exist yet": {"both", "while creating it", []string{"create", "-f", born}},
		"who may only edit pins a revision":      {"edith", needs, merge(`{"spec":{"revision":"` + commit("a") + `"}}`)},
		"who may only edit creates it pinned":    {"edith", needs, []string{"create", "-f", pinned}},
		"who may only edit asks for fewer":       {"edith", needs, merge(`{"spec":{"approvals":{"required":1}}}`)},
		"who may only edit asks for none":        {"edith", needs, merge(`{"spec":{"approvals":null}}`)},
		"who may only edit follows another one":  {"edith", needs, merge(`{"spec":{"sourceRef":{"name":"else"}}}`)},
		"who may only approve edits":             {"alice", "may not change spec of gated source", merge(`{"spec":{"deletionPolicy":"Delete"}}`)},
		"who may only approve leaves the gates":  {"alice", "may not change annotations other than those of approvals", []string{"annotate", "gtsrc", "apps", v1alpha1.GatesAnnotation + "=none"}},
		"who may only approve moves the labels":  {"alice", "may not change labels", []string{"label", "gtsrc", "apps", "a=b"}},
		"who may only approve owns it":           {"alice", "may not change ownerReferences", merge(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`)},
		"an admin writes the status":             {"clara", "only the gating-controller writes it", append(merge(`{"status":{"round":7}}`), "--subresource=status")},
	} {
		t.Run(name, func(t *testing.T) {
			on := w.on(t)
			out, err := people[a.who].kubectl(on.Context(), on.Namespace, a.args...)
			if err == nil || !strings.Contains(out+err.Error(), a.because) {
				t.Errorf("want %q: %s, %v", a.because, out, err)
			}
		})
	}
	if w.onlyAlice(g); g.Status.Pinned != nil || g.Status.Round != 0 {
		t.Errorf("it has moved: %+v", g.Status)
	}
	w.allowed(people["alice"], w.approve(g, commit("a"))...)
	for _, who := range []string{"edith", "both", "clara"} { // nobody takes away what the controller may not have seen yet
		w.allowed(people[who], "annotate", "gtsrc", "apps", by+"-")
		if w.Read(g); !strings.Contains(g.Annotations[by], line(commit("a"), "alice")) {
			t.Errorf("%s has taken the approval away: %v", who, g.Annotations)
		}
	}
	w.allowed(people["both"], merge(`{"spec":{"revision":"`+commit("b")+`"}}`)...)
	w.promoted(g, "b")
	out, err := people["alice"].kubectl(w.Context(), w.Namespace, w.approve(g, commit("a"))...)
	if err == nil || !strings.Contains(out+err.Error(), "takes no approvals") {
		t.Errorf("%s, %v", out, err)
	}
}

// During a freeze, what selects the Gates decides on the next revision.
func TestWhoMayEditTakesNoGatedSourceOutOfItsGates(t *testing.T) {
	w := newWorld(t)
	edith, both := w.as("edith", sourceEditor, viewer), w.as("both", sourceEditor, sourceApprover)
	w.allowed(edith, "create", "-f", w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GatedSource","metadata":{"name":"apps","labels":{"tier":"production"},`+
		`"annotations":{"`+v1alpha1.GatesAnnotation+`":"production"}},"spec":{"sourceRef":{"kind":"GitRepository","name":"apps"}}}`))
	for what, changes := range map[string][][]string{
		"metadata.labels": {{"label", "gtsrc", "apps", "tier-"}, {"label", "--overwrite", "gtsrc", "apps", "tier=staging"}, {"label", "gtsrc", "apps", "team=shop"}},
		"the annotation " + v1alpha1.GatesAnnotation: {
			{"annotate", "gtsrc", "apps", v1alpha1.GatesAnnotation + "-"}, {"annotate", "--overwrite", "gtsrc", "apps", v1alpha1.GatesAnnotation + "=other"},
			{"patch", "gtsrc", "apps", "--type=merge", "-p", `{"metadata":{"annotations":null}}`},
		},
	} {
		for _, args := range changes {
			out, err := edith.kubectl(w.Context(), w.Namespace, args...)
			if want := "may not choose a revision of gated source " + w.Namespace + "/apps by " + what + ": it needs the verb approve"; err == nil || !strings.Contains(out+err.Error(), want) {
				t.Errorf("%q: want %q: %s, %v", args, want, out, err)
			}
			w.allowed(both, append(args, "--dry-run=server")...)
		}
	}
}

func TestWhoMayEditCreatesAndChangesWhatChoosesNoRevision(t *testing.T) {
	w := newWorld(t)
	edith := w.as("edith", sourceEditor, viewer)
	manifest := w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GatedSource","metadata":{"name":"apps"},"spec":{"sourceRef":{"kind":"GitRepository","name":"apps"}}}`)
	w.allowed(edith, "create", "-f", manifest)
	w.allowed(edith, "patch", "gtsrc", "apps", "--type=merge", "-p", `{"spec":{"deletionPolicy":"Delete"}}`)
	w.allowed(edith, "annotate", "gtsrc", "apps", "team=shop")
	// Created again without its labels, it would leave the Gates that keep it from pinning its first revision.
	w.refuses(edith, "may not delete gated source "+w.Namespace+"/apps: it needs the verb approve", "delete", "gtsrc", "apps")
	w.refuses(edith, "it needs the verb approve", "replace", "--force", "-f", manifest)
	// The garbage collector deletes what has lost its owner.
	owned := w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GatedSource","metadata":{"name":"owned","ownerReferences":[` +
		`{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}]},"spec":{"sourceRef":{"kind":"GitRepository","name":"apps"}}}`)
	w.refuses(edith, "by metadata.ownerReferences: it needs the verb approve", "create", "-f", owned)
}
