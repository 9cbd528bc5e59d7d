package cli

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/explain"
)

func TestEveryReportIsAListOfItsKind(t *testing.T) {
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
		"check": prints(findingReport, []check.Finding{finding}, func(s *terminal, o *output) error { return printFindings(s, o, []check.Finding{finding}, 0) }),
		"history": prints(gateHistoryEntry, []historyItem{{about, g.Status.History[0]}}, func(s *terminal, o *output) error {
			return past[historyItem]{kind: gateHistoryEntry, items: historySince(s, []*v1alpha1.Gate{g}, now)}.print(s, o)
		}),
		"history source/NAME": prints(sourcePromotion, []promotionItem{{about, source.Status.Promotions[0]}}, func(s *terminal, o *output) error {
			return past[promotionItem]{kind: sourcePromotion, items: promotionsSince(s, source, now)}.print(s, o)
		}),
		"list and status": prints(gateReport, []*v1alpha1.Gate{g.DeepCopy()}, func(s *terminal, o *output) error { return printGates(o, s.Out, []*v1alpha1.Gate{g}) }),
		"pending": prints(pendingTarget, []pendingItem{{Waiting: waiting}}, func(s *terminal, o *output) error {
			return printPending(s, &pendingFlags{output: o}, []pendingItem{{Waiting: waiting}}, 1, now)
		}),
		"why": prints(targetExplanation, []explain.Explanation{why}, func(s *terminal, o *output) error {
			return o.reports(s.Out, targetExplanation, []explain.Explanation{why})
		}),
	} {
		t.Run(command, test)
	}
}
