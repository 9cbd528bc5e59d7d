package promotion_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
)

// whenOpen and whenApproved are numbers of required approvals.
const whenOpen, whenApproved = 0, 1

func TestGatedSourceIsAtPermittedRevision(t *testing.T) {
	a, b, c := commit("a"), commit("b"), commit("c")
	for name, tc := range map[string]struct {
		world *world
		want  string
	}{
		"the newest at once while its gates are open": {newWorld(whenOpen, a).settles().fetched(), a + " Approved=True/UpToDate Ready=True/Succeeded"},
		"nothing while a gate is closed":              {newWorld(whenOpen, a).closed().settles(), "nothing Approved=False/GateClosed Ready=False/GateClosed"},
		"nothing before a gate has decided": {func() *world {
			w := newWorld(whenOpen, a)
			w.in.Gates = promotion.Gates{}
			return w.settles()
		}(), "nothing Approved=False/GateClosed Ready=False/GateClosed"},
		"the one before while a gate is closed": {newWorld(whenOpen, a).settles().fetched().closed().arrives(b).settles(), a + " Approved=False/GateClosed Ready=True/Succeeded"},
		"the newest of several when it opens": {newWorld(whenOpen, a).settles().closed().arrives(b).settles().arrives(c).settles().open().settles().fetched(),
			c + " Approved=True/UpToDate Ready=True/Succeeded"},
		"nothing without an approval": {newWorld(whenApproved, a).settles(), "nothing Approved=False/WaitingApproval Ready=False/WaitingApproval"},
		"what was approved":           {newWorld(whenApproved, a).settles().approves("alice", a).settles().fetched(), a + " Approved=True/UpToDate Ready=True/Succeeded"},
		"what was approved, and not what came since": {newWorld(whenApproved, a).settles().arrives(b).approves("alice", a).settles().fetched(),
			a + " Approved=False/WaitingApproval Ready=True/Succeeded"},
		"what was approved once its gates open": {newWorld(whenApproved, a).settles().approves("alice", a).closed().settles().arrives(b).settles().open().settles().fetched(),
			a + " Approved=False/WaitingApproval Ready=True/Succeeded"},
		"what was approved last": {newWorld(whenApproved, a).settles().arrives(b).settles().closed().approves("alice", a).approves("bob", b).settles().open().settles().fetched(),
			b + " Approved=True/UpToDate Ready=True/Succeeded"},
		"what was approved once more": {newWorld(whenApproved, a).settles().arrives(b).closed().settles().approves("alice", a).settles().approves("alice", b).settles().approves("alice", a).settles().open().settles().fetched(),
			a + " Approved=False/WaitingApproval Ready=True/Succeeded"},
		"an older one after a roll back, although others arrive": {
			newWorld(whenApproved, a).settles().approves("alice", a).settles().arrives(b).settles().approves("alice", b).settles().approves("alice", a).settles().fetched().arrives(c).settles(),
			a + " Approved=False/WaitingApproval Ready=True/Succeeded"},
		"nothing that was never seen": {newWorld(whenApproved, a).settles().approves("alice", c).settles(), "nothing Approved=False/WaitingApproval Ready=False/WaitingApproval"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.world.is(); got != tc.want {
				t.Errorf("got  %s\nwant %s\n%s\n%s", got, tc.want, tc.world.message("Approved"), tc.world.message("Ready"))
			}
		})
	}
}

func TestSuspendedGatedSourceKeepsItsPin(t *testing.T) {
	a, b := commit("a"), commit("b")
	w := newWorld(whenOpen, a).settles().fetched()
	before := w.is()
	w.g.Spec.Suspend = true
	w.g.Generation++
	if w.arrives(b).settles(); w.is() != before || w.g.Status.ObservedGeneration != w.g.Generation {
		t.Errorf("got %s at generation %d, want %s at %d", w.is(), w.g.Status.ObservedGeneration, before, w.g.Generation)
	}
	w.g.Spec.Suspend = false
	if got, want := w.settles().fetched().is(), b+" Approved=True/UpToDate Ready=True/Succeeded"; got != want {
		t.Errorf("after suspend: got %s, want %s", got, want)
	}
}

func TestGatedSourceCreatedSuspendedPinsNothing(t *testing.T) {
	w := newWorld(whenOpen, commit("a"))
	w.g.Spec.Suspend = true
	if w.settles(); w.g.Status.Pinned != nil || !strings.Contains(w.message("Ready"), "GatedSource is suspended") {
		t.Errorf("got %+v, %s", w.g.Status.Pinned, w.message("Ready"))
	}
}

func TestRequiredNumberOfDistinctApprovers(t *testing.T) {
	a, b := commit("a"), commit("b")
	w := newWorld(whenApproved, a)
	w.g.Spec.Approvals = &v1alpha1.ApprovalRule{Required: 2}
	w.settles().approves("alice", a).approves("alice", a)
	if !promotion.HasNewApprovals(w.g) {
		t.Error("the approval is not new")
	}
	if w.settles().settles(); promotion.HasNewApprovals(w.g) {
		t.Error("the recorded approval is new")
	}
	if w.g.Status.Pinned != nil || !strings.Contains(w.message("Approved"), "1 of 2 by alice") {
		t.Fatalf("%s: %s", w.is(), w.message("Approved"))
	}
	w.arrives(b).settles().approves("bob", b).settles()
	if w.g.Status.Pinned != nil {
		t.Fatalf("one approval of each of two revisions has promoted %s", w.is())
	}
	w.approves("bob", a).settles()
	if w.g.Status.Pinned == nil || w.g.Status.Pinned.Revision != a {
		t.Fatal(w.is())
	}
	p := w.g.Status.Promotions[0]
	if got := []string{p.Approvals[0].ApprovedBy, p.Approvals[1].ApprovedBy, p.Approvals[0].Message, p.Reason}; len(p.Approvals) != 2 || !slices.Equal(got, []string{"alice", "bob", "seen in staging", "RevisionApproved"}) {
		t.Errorf("the promotion says %+v", p)
	}
	var recorded []string
	for _, s := range w.steps {
		for _, a := range s.Approved {
			recorded = append(recorded, a.ApprovedBy+" "+a.Revision)
		}
	}
	if want := []string{"alice " + a, "bob " + b, "bob " + a}; !slices.Equal(recorded, want) || w.g.Status.Round != 1 {
		t.Errorf("recorded %v, want %v; round %d, want 1", recorded, want, w.g.Status.Round)
	}
	if len(w.g.Status.Approvals) != 0 || !slices.ContainsFunc(w.steps, func(s promotion.Step) bool { return len(s.Voided) == 1 && s.Voided[0].Revision == b }) {
		t.Errorf("the approval of the other one is left, or nobody was told: %+v", w.g.Status.Approvals)
	}
}

func TestApprovalCountsForItsObjectAndRevisionOnly(t *testing.T) {
	a, b := commit("a"), commit("b")
	for name, change := range map[string]func(*world){
		"of another object":       func(w *world) { w.g.UID = "another" },
		"of an earlier round":     func(w *world) { w.g.Status.Round++ },
		"that nobody has stamped": func(w *world) { w.in.Stamped = false },
		"in a line without a stamp": func(w *world) {
			w.g.Annotations[v1alpha1.ApproveRequestedByAnnotation] = b + " alice\tseen in staging\n"
		},
		"without a user": func(w *world) {
			w.g.Annotations = nil
			w.approves("", b)
		},
		"with a user name that is too long": func(w *world) {
			w.g.Annotations = nil
			w.approves(strings.Repeat("a", 513), b)
		},
		"after the spec of the source has changed": func(w *world) {
			w.closed().settles()
			w.edits("url", "https://evil.example.com/apps")
			w.open()
		},
		"after the ignore rules have changed": func(w *world) {
			w.closed().settles()
			w.edits("ignore", "/tests")
			w.open()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(whenApproved, a).settles().arrives(b).settles().approves("alice", b)
			change(w)
			if w.settles(); len(w.written) != 0 || w.g.Status.Pinned != nil {
				t.Errorf("promoted %s: %v", w.is(), w.written)
			}
		})
	}
}

func TestConditionApprovedHasCommandAndRefusedApprovals(t *testing.T) {
	a := commit("a")
	w := newWorld(whenApproved, a).settles()
	const keys = "round=0,uid=" + uid + ",revision="
	want := " 0 of 1. To approve it: kubectl -n shop annotate gatedsource/apps approve.gate.fluxcd.io/requestedAt=$(date -u +%Y-%m-%dT%H:%M:%SZ)," + keys + a
	if got := w.message("Approved"); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := promotion.FormatApproval(w.g, a, start); got != start.UTC().Format(time.RFC3339)+","+keys+a {
		t.Errorf("got %q", got)
	}
	for value, want := range map[string]string{
		a:                                       "does not count: it must be TIME,round=NUMBER,uid=UID,revision=REVISION, such as ",
		promotion.FormatApproval(w.g, a, start): "does not count: the API server has not stamped the approver.",
	} {
		w.g.Annotations = map[string]string{v1alpha1.ApproveRequestedAtAnnotation: value}
		if got := w.settles().message("Approved"); !strings.Contains(got, want) || !promotion.HasNewApprovals(w.g) {
			t.Errorf("%s: got %q, want %q", value, got, want)
		}
	}
}

func TestApproveCommandIsShellSafe(t *testing.T) {
	revision := strings.Replace(commit("b"), "main", "x;touch$IFS/tmp/it's", 1)
	w := newWorld(whenApproved, revision).settles()
	if got := w.message("Approved"); !strings.HasSuffix(got, `,uid=`+uid+`,revision='x;touch$IFS/tmp/it'\''s`+strings.TrimPrefix(revision, "x;touch$IFS/tmp/it's")+"'") {
		t.Errorf("got %q", got)
	}
}

func TestSpecChangesAreAppliedWithPromotion(t *testing.T) {
	a, b := commit("a"), commit("b")
	w := newWorld(whenOpen, a).settles().fetched().closed()
	w.edits("url", "https://git.example.com/moved")
	w.settles()
	if url := w.in.Pinned.Spec["url"]; url != "https://git.example.com/apps" || w.g.Status.Pending == nil {
		t.Fatalf("%v follows at once, or does not wait: %+v", url, w.g.Status.Pending)
	}
	w.arrives(b).settles().open().settles()
	if want := map[string]any{"url": "https://git.example.com/moved", "interval": "1m", "ref": map[string]any{"branch": "main", "commit": strings.Repeat("b", 40)}}; !reflect.DeepEqual(w.in.Pinned.Spec, want) {
		t.Errorf("got  %v\nwant %v", w.in.Pinned.Spec, want)
	}
	w.in.Original.Current = false
	w.edits("url", "https://git.example.com/again")
	if w.settles(); w.in.Pinned.Spec["url"] != "https://git.example.com/moved" || !strings.Contains(w.message("Ready"), "has not been fetched with its current spec yet") {
		t.Errorf("what was fetched from another place is promoted with this one: %v, %s", w.in.Pinned.Spec, w.message("Ready"))
	}
	w = newWorld(whenApproved, a).settles().approves("alice", a).settles()
	w.edits("url", "https://git.example.com/moved")
	if w.settles(); len(w.written) != 1 || w.g.Status.Round != 2 {
		t.Fatalf("a changed spec is promoted without an approval: %v, round %d", w.written, w.g.Status.Round)
	}
	if w.approves("alice", a).settles(); w.in.Pinned.Spec["url"] != "https://git.example.com/moved" {
		t.Errorf("a changed spec is not promoted after an approval: %v", w.in.Pinned.Spec)
	}
}

func TestSpecRevisionNeedsOpenGatesButNoApproval(t *testing.T) {
	a, b, c := commit("a"), commit("b"), commit("c")
	w := newWorld(whenApproved, b)
	w.g.Spec.Revision = a
	w.closed().settles()
	if len(w.written) != 0 {
		t.Fatal("a closed gate does not hold it")
	}
	w.open().settles().fetched()
	if want := a + " Approved=True/PinnedInSpec Ready=True/Succeeded"; w.is() != want {
		t.Fatalf("what ran before is not pinned first: %s, want %s", w.is(), want)
	}
	w.g.Spec.Revision = c
	if w.settles(); !strings.HasPrefix(w.is(), a+" Approved=False/RevisionNotSeen") {
		t.Fatalf("a revision that was never seen: %s", w.is())
	}
	if pending := w.g.Status.Pending; pending != nil {
		t.Errorf("another revision than that in the spec waits: %+v", pending)
	}
	w.arrives(c).settles()
	if w.arrives(b).settles(); !strings.HasPrefix(w.is(), c) {
		t.Fatalf("it was seen: %s", w.is())
	}
	w.g.Spec.Revision = strings.TrimPrefix(a, "main@")
	if w.settles(); !strings.HasPrefix(w.is(), a) {
		t.Fatalf("an older one, written without its branch: %s", w.is())
	}
}

func TestPinnedSourceIsRestoredWhileGatesAreClosed(t *testing.T) {
	for name, change := range map[string]func(*world){
		"its commit":                       func(w *world) { w.in.Pinned.Spec["ref"] = map[string]any{"commit": strings.Repeat("b", 40)} },
		"another field":                    func(w *world) { w.in.Pinned.Spec["ignore"] = "*" },
		"all of it":                        func(w *world) { w.in.Pinned = nil },
		"its source is gone, and so is it": func(w *world) { w.in.Pinned, w.in.Original = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(whenOpen, commit("a")).settles().closed().arrives(commit("b")).settles()
			before := w.written[0]
			change(w)
			if w.settles(); len(w.written) != 2 || !reflect.DeepEqual(w.written[1], before) {
				t.Errorf("written: %v", w.written)
			}
		})
	}
}

func TestSuspendedPinnedSourceIsNoDrift(t *testing.T) {
	w := newWorld(whenOpen, commit("a")).settles()
	w.in.Pinned.Spec["suspend"] = true
	if w.settles(); len(w.written) != 1 || !strings.Contains(w.is(), "Ready=Unknown/Suspended") {
		t.Errorf("%s, %v", w.is(), w.written)
	}
}

func TestPinnedSourceIsAdoptedWithItsRevision(t *testing.T) {
	a, b := commit("a"), commit("b")
	w := newWorld(whenOpen, a).settles()
	w.g.Status = v1alpha1.GatedSourceStatus{} // as after a restore from a backup
	w.closed().arrives(b).settles()
	if got := w.g.Status.Promotions; len(w.written) != 1 || w.g.Status.Pinned.Revision != a || got[0].Reason != v1alpha1.AdoptedReason {
		t.Errorf("%s: %v, %+v", w.is(), w.written, got)
	}
}

func TestUnpinnableSourceIsRefused(t *testing.T) {
	other := &promotion.Source{Spec: map[string]any{}, GatedBy: ""}
	for name, tc := range map[string]struct {
		change func(*world)
		want   string
	}{
		"a name that is not ours":        {func(w *world) { w.in.Pinned = other }, "Ready=False/SourceNotOurs Stalled=True/SourceNotOurs"},
		"a name of another GatedSource":  {func(w *world) { w.in.Pinned = &promotion.Source{GatedBy: "else"} }, "Ready=False/SourceNotOurs Stalled=True/SourceNotOurs"},
		"a name of an older one":         {func(w *world) { w.in.Older = "older" }, "Ready=False/SourceNotOurs Stalled=True/SourceNotOurs"},
		"a source that is pinned itself": {func(w *world) { w.in.Original.GatedBy = "else" }, "Ready=False/SourceNotPinnable Stalled=True/SourceNotPinnable"},
		"a source with others in it":     {func(w *world) { w.edits("include", []any{map[string]any{"repository": map[string]any{"name": "b"}}}) }, "Ready=False/SourceNotPinnable Stalled=True/SourceNotPinnable"},
		"a source that is not there":     {func(w *world) { w.in.Original = nil }, "Ready=False/SourceNotFound"},
		"a source without an artifact":   {func(w *world) { w.arrives("") }, "Ready=False/SourceNotFound"},
		"an artifact of an unknown form": {func(w *world) { w.arrives("main/abc") }, "Ready=False/SourceNotPinnable Stalled=True/SourceNotPinnable"},
		"a revision of an unknown form":  {func(w *world) { w.g.Spec.Revision = "main" }, "Ready=False/InvalidSpec Stalled=True/InvalidSpec"},
		"a short commit":                 {func(w *world) { w.g.Spec.Revision = "main@sha1:abc" }, "Ready=False/InvalidSpec Stalled=True/InvalidSpec"},
		"a chart out of a Git repository": {func(w *world) {
			w.g.Spec.SourceRef.Kind = "HelmChart"
			w.edits("sourceRef", map[string]any{"kind": "GitRepository", "name": "a"})
		}, "Ready=False/SourceNotPinnable Stalled=True/SourceNotPinnable"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(whenOpen, commit("a"))
			tc.change(w)
			if w.settles(); len(w.written) != 0 || !strings.HasSuffix(w.is(), tc.want) || w.message("Ready") == "" {
				t.Errorf("got %s, want %s: %v, %s", w.is(), tc.want, w.written, w.message("Ready"))
			}
		})
	}
}

func TestKindIsPinnedByImmutablePart(t *testing.T) {
	valuesFiles := []any{"values.yaml", "more.yaml"}
	for name, tc := range map[string]struct {
		kind, revision string
		spec, want     map[string]any
	}{
		"branch":            {"GitRepository", commit("a"), map[string]any{"ref": map[string]any{"branch": "main"}}, map[string]any{"ref": map[string]any{"branch": "main", "commit": strings.Repeat("a", 40)}}},
		"branch with marks": {"GitRepository", "feature/a,b@c#d+e@sha1:" + strings.Repeat("a", 40), map[string]any{"ref": map[string]any{"branch": "feature/a,b@c#d+e"}}, map[string]any{"ref": map[string]any{"branch": "feature/a,b@c#d+e", "commit": strings.Repeat("a", 40)}}},
		"default branch":    {"GitRepository", "master@sha1:" + strings.Repeat("a", 40), map[string]any{}, map[string]any{"ref": map[string]any{"commit": strings.Repeat("a", 40)}}},
		"other branch":      {"GitRepository", commit("a"), map[string]any{"ref": map[string]any{"branch": "release"}}, map[string]any{"ref": map[string]any{"commit": strings.Repeat("a", 40)}}},
		"tag":               {"GitRepository", "v1@sha1:" + strings.Repeat("a", 40), map[string]any{"ref": map[string]any{"tag": "v1"}}, map[string]any{"ref": map[string]any{"commit": strings.Repeat("a", 40)}}},
		"semver":            {"GitRepository", "v1.2.3@sha256:" + strings.Repeat("a", 64), map[string]any{"ref": map[string]any{"semver": ">1"}, "suspend": true}, map[string]any{"ref": map[string]any{"commit": strings.Repeat("a", 64)}}},
		"OCI tag":           {"OCIRepository", digest("b"), map[string]any{"ref": map[string]any{"tag": "latest"}}, map[string]any{"ref": map[string]any{"digest": "sha256:" + strings.Repeat("b", 64)}}},
		"chart":             {"HelmChart", "6.5.1", map[string]any{"version": "6.x", "sourceRef": map[string]any{"kind": "HelmRepository"}}, map[string]any{"version": "6.5.1", "sourceRef": map[string]any{"kind": "HelmRepository"}}},
		"chart with build":  {"HelmChart", "6.5.1+b7", map[string]any{"version": "*", "sourceRef": map[string]any{"kind": "HelmRepository"}}, map[string]any{"version": "6.5.1+b7", "sourceRef": map[string]any{"kind": "HelmRepository"}}},
		"chart with values files": {"HelmChart", "6.5.1-rc.1+4", map[string]any{"version": "6.x", "valuesFiles": valuesFiles, "sourceRef": map[string]any{"kind": "HelmRepository"}},
			map[string]any{"version": "6.5.1-rc.1", "valuesFiles": valuesFiles, "sourceRef": map[string]any{"kind": "HelmRepository"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(whenOpen, tc.revision)
			w.g.Spec.SourceRef.Kind, w.in.Original.Spec = tc.kind, tc.spec
			if w.settles(); len(w.written) != 1 || !reflect.DeepEqual(w.written[0], tc.want) {
				t.Fatalf("got  %v\nwant %v\n%s", w.written, tc.want, w.message("Ready"))
			}
			w.fetched().g.Status = v1alpha1.GatedSourceStatus{}
			w.closed().settles()
			if gated := w.g.Status.Pinned; gated == nil || len(w.written) != 1 {
				t.Errorf("it is not known again by its spec: %s", w.is())
			}
		})
	}
}

func TestPendingRevisionsAreCountedFromFirstObservation(t *testing.T) {
	w := newWorld(whenOpen, commit("a")).settles().closed().arrives(commit("b")).settles()
	since := w.g.Status.WaitingSince
	w.arrives(commit("c")).settles().settles().settles()
	if s := w.g.Status; s.Waiting != 2 || since == nil || !s.WaitingSince.Equal(since) || *s.Pending != s.Seen[0] || s.Pending.Revision != commit("c") {
		t.Errorf("%+v", s)
	}
	waits := 0
	for _, s := range w.steps {
		if s.Waits != nil {
			waits++
		}
	}
	if waits != 2 {
		t.Errorf("it was told %d times, want once for each", waits)
	}
	if w.open().settles(); w.g.Status.Waiting != 0 || w.g.Status.WaitingSince != nil || w.g.Status.Pending != nil {
		t.Errorf("%+v", w.g.Status)
	}
}

func TestStatusIsBounded(t *testing.T) {
	w := newWorld(whenOpen, commit("a"))
	for i := range 120 {
		w.arrives("main@sha1:" + strings.Repeat("0", 37) + string([]byte{'0' + byte(i/100), '0' + byte(i/10%10), '0' + byte(i%10)})).settles()
	}
	if s := w.g.Status; len(s.Seen) != v1alpha1.MaxSeen || len(s.Promotions) != v1alpha1.MaxPromotions || s.Waiting != 0 {
		t.Errorf("%d seen, %d promotions, %d wait", len(s.Seen), len(s.Promotions), s.Waiting)
	}
}

func TestPinnedSourceStaysOursDespiteOlderGatedSource(t *testing.T) {
	a, b := commit("a"), commit("b")
	w := newWorld(whenOpen, a).settles()
	w.in.Older = "older"
	if w.arrives(b).settles().fetched(); !strings.HasPrefix(w.is(), b+" Approved=True/UpToDate") {
		t.Errorf("it does not go on: %s", w.is())
	}
	w.in.Pinned = nil
	before := len(w.written)
	if w.settles(); len(w.written) != before || !strings.Contains(w.message("Ready"), "GitRepository 'apps-gated' is already pinned by the older GatedSource 'older'") {
		t.Errorf("it takes the place: %s, %s", w.is(), w.message("Ready"))
	}
}
