package see

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/cli/term/termtest"
	"github.com/fluxcd/gating-controller/internal/explain"
)

func TestReportsAreLists(t *testing.T) {
	at := metav1.NewTime(now)
	about := explain.Metadata{Namespace: "flux-system", Name: "production"}
	ref := explain.Ref{APIVersion: "v1", Kind: "Kustomization", Namespace: "flux-system", Name: "production"}
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace, Name: about.Name}, Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}}
	g.Status.History = []v1alpha1.HistoryEntry{{At: at, State: v1alpha1.StateClosed, Reason: "Default"}}
	source := &v1alpha1.GatedSource{}
	source.Namespace, source.Name = about.Namespace, about.Name
	source.Status.Promotions = []v1alpha1.Promotion{{Revision: "main@sha1:b", At: at, Reason: "Approved"}}
	finding := check.Finding{Severity: check.Warning, Object: "Gate flux-system/production", Message: "m"}
	waiting := explain.Waiting{Metadata: about, Target: ref, Gates: []string{}, Reason: explain.NewRevision, Since: &at}
	why := explain.Explanation{Metadata: about, Target: ref, State: explain.Held, Gates: []explain.Gate{}, Waiting: &waiting}
	for command, test := range map[string]func(*testing.T){
		"check": termtest.Prints(term.FindingReport, []check.Finding{finding}, func(s *term.Terminal, o *term.Output) error { return printFindings(s, o, []check.Finding{finding}, 0) }),
		"history": termtest.Prints(term.GateHistoryEntry, []historyItem{{about, g.Status.History[0]}}, func(s *term.Terminal, o *term.Output) error {
			return historyReport[historyItem]{kind: term.GateHistoryEntry, items: historySince(s, []*v1alpha1.Gate{g}, now)}.print(s, o)
		}),
		"history source/NAME": termtest.Prints(term.SourcePromotion, []promotionItem{{about, source.Status.Promotions[0]}}, func(s *term.Terminal, o *term.Output) error {
			return historyReport[promotionItem]{kind: term.SourcePromotion, items: promotionsSince(s, source, now)}.print(s, o)
		}),
		"list and status": termtest.Prints(term.GateReport, []*v1alpha1.Gate{g.DeepCopy()}, func(s *term.Terminal, o *term.Output) error { return printGates(o, s.Out, []*v1alpha1.Gate{g}) }),
		"pending": termtest.Prints(term.PendingTarget, []pendingItem{{Waiting: waiting}}, func(s *term.Terminal, o *term.Output) error {
			return printPending(s, &pendingFlags{Output: o}, []pendingItem{{Waiting: waiting}}, 1, now)
		}),
		"why": termtest.Prints(term.TargetExplanation, []explain.Explanation{why}, func(s *term.Terminal, o *term.Output) error {
			return o.PrintReports(s.Out, term.TargetExplanation, []explain.Explanation{why})
		}),
	} {
		t.Run(command, test)
	}
}
