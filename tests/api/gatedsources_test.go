package api_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// gatedSource returns one that follows the Git repository apps, with a change.
func gatedSource(name string, change func(*v1alpha1.GatedSourceSpec)) *v1alpha1.GatedSource {
	g := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatedSourceSpec{SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}}}
	if change != nil {
		change(&g.Spec)
	}
	return g
}

func TestAGatedSourceThatMakesNoSenseIsRefusedWithTheReason(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	for name, tc := range map[string]struct {
		name   string
		change func(*v1alpha1.GatedSourceSpec)
		want   string
	}{
		"a bucket":                     {"a", func(s *v1alpha1.GatedSourceSpec) { s.SourceRef.Kind = "Bucket" }, "a Bucket cannot be pinned: it keeps no revision but the newest"},
		"a kind that is none":          {"a", func(s *v1alpha1.GatedSourceSpec) { s.SourceRef.Kind = "Secret" }, "kind must be GitRepository, OCIRepository or HelmChart"},
		"its own source by its name":   {"a", func(s *v1alpha1.GatedSourceSpec) { s.PinnedName = "apps" }, "the pinned source needs another name than the source in sourceRef"},
		"its own source by default":    {"a", func(s *v1alpha1.GatedSourceSpec) { s.SourceRef.Name = "a-gated" }, "the source in sourceRef would be pinned in its own place"},
		"a name that is too long":      {strings.Repeat("a", 248), nil, "the name of the pinned source would be too long"},
		"approvals that nobody counts": {"a", func(s *v1alpha1.GatedSourceSpec) { s.Approvals = &v1alpha1.RevisionApprovals{Required: 1} }, "approvals need promote: WhenApproved"},
		"too many approvals": {"a", func(s *v1alpha1.GatedSourceSpec) {
			s.Promote, s.Approvals = v1alpha1.PromoteWhenApproved, &v1alpha1.RevisionApprovals{Required: 11}
		}, "should be less than or equal to 10"},
		"a revision with a blank":     {"a", func(s *v1alpha1.GatedSourceSpec) { s.Revision = "main x" }, "spec.revision"},
		"a policy that is none":       {"a", func(s *v1alpha1.GatedSourceSpec) { s.Promote = "Always" }, "Unsupported value"},
		"another policy that is none": {"a", func(s *v1alpha1.GatedSourceSpec) { s.DeletionPolicy = "Keep" }, "Unsupported value"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gatedSource(tc.name, tc.change)
			g.Namespace = w.Namespace
			if err := w.Client.Create(t.Context(), g); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got %v", tc.want, err)
			}
		})
	}
}

func TestTheKindOfAGatedSourceCannotBeChanged(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	g := gatedSource("apps", nil)
	w.Create(g)
	if g.Spec.Promote != v1alpha1.PromoteWhenOpen || g.Spec.DeletionPolicy != v1alpha1.DeletionPolicyOrphan || g.Status.ObservedGeneration != -1 {
		t.Errorf("the defaults are %+v, %d", g.Spec, g.Status.ObservedGeneration)
	}
	if err := w.Merge(g, `{"spec":{"sourceRef":{"kind":"OCIRepository"}}}`); err == nil || !strings.Contains(err.Error(), "the kind cannot be changed") {
		t.Errorf("got %v", err)
	}
	w.Must(w.Merge(g, `{"spec":{"sourceRef":{"name":"else"}}}`))
}
