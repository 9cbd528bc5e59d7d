package promotion_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
)

// model computes what may be promoted, independently of the status.
type model struct {
	*world
	// approved has the approvals since the last promotion or change of the spec of the source, in order.
	approved []v1alpha1.RevisionApproval
	required int
	// pinned is the commit that the pinned source must have while nothing is promoted.
	pinned any
	// spec is the spec that was written last, seen and promoted have the revisions so far, and skipped has those seen before the last rollback.
	spec                    map[string]any
	seen, promoted, skipped map[string]bool
	// requested is the revision in the last request for a rollback.
	requested string
}

// mayBe returns whether a commit is the last one that got enough approvals.
func (m *model) mayBe(commit any) bool {
	count, last := map[string]map[string]bool{}, ""
	for _, a := range m.approved {
		if count[a.Revision] == nil {
			count[a.Revision] = map[string]bool{}
		}
		if count[a.Revision][a.ApprovedBy] = true; len(count[a.Revision]) >= m.required {
			last = a.Revision
		}
	}
	return last != "" && strings.HasSuffix(last, "sha1:"+commit.(string)) //nolint:forcetypeassert // of a spec that was written
}

func commitOf(spec map[string]any) any {
	ref, _ := spec["ref"].(map[string]any)
	return ref["commit"]
}

// look decides and writes once, and checks what is written. If dies is set, the process ends before it writes the pinned source.
func (m *model) look(t *rapid.T, dies bool) promotion.Step {
	before, status := m.in.Pinned, m.g.Status.DeepCopy()
	m.seen[m.in.Original.Revision] = true
	step := m.once()
	if step.Write == nil {
		return step
	}
	if dies {
		m.in.Pinned, m.g.Status = before, *status
		return step
	}
	commit, want := commitOf(step.Write), runtime.DeepCopyJSON(m.in.Original.Spec)
	switch {
	case before != nil && before.GatedBy != m.g.Name:
		t.Fatal("a source that is not ours is written")
	case !step.Promotes:
		if commit != m.pinned {
			t.Fatalf("drift is corrected to %v, not to %v", commit, m.pinned)
		}
		return step
	case step.RollsBack:
		if !m.promoted[m.requested] || !strings.HasSuffix(m.requested, "sha1:"+commit.(string)) { //nolint:forcetypeassert // it was just made
			t.Fatalf("got a rollback to %v, want %s, one of %v", commit, m.requested, m.promoted)
		}
		want = runtime.DeepCopyJSON(m.spec)
	case !m.in.Gates.Open:
		t.Fatalf("%v is promoted while a gate is closed", commit)
	case m.required > 0 && !m.mayBe(commit):
		t.Fatalf("%v is promoted without approval: %+v", commit, m.approved)
	case m.required == 0 && !strings.HasSuffix(m.in.Original.Revision, "sha1:"+commit.(string)): //nolint:forcetypeassert // it was just made
		t.Fatalf("%v is promoted, not the newest, %s", commit, m.in.Original.Revision)
	}
	if revision := "main@sha1:" + commit.(string); !step.RollsBack && m.required == 0 && m.skipped[revision] { //nolint:forcetypeassert // it was just made
		t.Fatalf("promoted %s, which was seen before a rollback", revision)
	}
	want["ref"] = map[string]any{"branch": "main", "commit": commit}
	if !reflect.DeepEqual(step.Write, want) {
		t.Fatalf("got  %v\nwant %v", step.Write, want)
	}
	m.pinned, m.approved, m.spec, m.skipped = commit, nil, want, nil
	if m.promoted["main@sha1:"+commit.(string)] = true; step.RollsBack { //nolint:forcetypeassert // it was just made
		m.skipped = maps.Clone(m.seen)
	}
	return step
}

func TestOnlyPermittedRevisionsArePromoted(t *testing.T) {
	letters := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	rapid.Check(t, func(t *rapid.T) {
		m := &model{required: rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "required")}
		m.world = newWorld(int32(m.required), commit("a"))
		if m.required == 0 && rapid.Bool().Draw(t, "no rule") {
			m.g.Spec.Approvals = nil
		}
		m.seen, m.promoted = map[string]bool{}, map[string]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"look":  func(t *rapid.T) { m.look(t, false) },
			"die":   func(t *rapid.T) { m.look(t, true) },
			"open":  func(*rapid.T) { m.open() },
			"close": func(*rapid.T) { m.closed() },
			"push":  func(t *rapid.T) { m.arrives(commit(letters.Draw(t, "commit"))) },
			"edit": func(t *rapid.T) {
				m.look(t, false) // approvers have seen the status
				before := m.in.Original.Spec["url"]
				if m.edits("url", "https://git.example.com/"+letters.Draw(t, "url")); m.in.Original.Spec["url"] != before {
					m.approved = nil
				}
				m.look(t, false)
			},
			"approve": func(t *rapid.T) {
				who, revision := rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "who"), commit(letters.Draw(t, "revision"))
				if m.g.Status.Promoting != nil || m.required == 0 || !m.seen[revision] {
					return
				}
				m.approves(who, revision)
				m.approved = append(m.approved, v1alpha1.RevisionApproval{Revision: revision, ApprovedBy: who})
				m.look(t, false)
			},
			"rollback": func(t *rapid.T) {
				if m.g.Status.Promoting != nil {
					return
				}
				m.requested = commit(letters.Draw(t, "revision"))
				m.rollback(m.requested)
				m.look(t, false)
			},
			"drift": func(*rapid.T) {
				if m.in.Pinned == nil || m.g.Status.Promoting != nil {
					return
				}
				pinned := *m.in.Pinned
				pinned.Spec = runtime.DeepCopyJSON(pinned.Spec)
				pinned.Spec["ref"] = map[string]any{"commit": strings.Repeat("e", 40)}
				m.in.Pinned = &pinned
			},
			"": func(t *rapid.T) {
				if m.in.Gates.Open {
					return
				}
				for range 4 { // closed Gates keep the pin in place, and the state settles
					m.look(t, false)
				}
				if m.in.Pinned != nil && (commitOf(m.in.Pinned.Spec) != m.pinned || m.look(t, false).Acts()) {
					t.Fatalf("it is at %v, not at %v", commitOf(m.in.Pinned.Spec), m.pinned)
				}
				for _, name := range []string{"Approved", "Ready"} {
					if c := meta.FindStatusCondition(m.g.Status.Conditions, name); c == nil || c.Message == "" || c.Status == metav1.ConditionTrue && m.g.Status.Pending != nil && name == "Approved" {
						t.Fatalf("the condition %s says %+v", name, c)
					}
				}
			},
		})
	})
}
