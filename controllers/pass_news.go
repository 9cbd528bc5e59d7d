package controllers

import (
	"slices"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// passed records events on a target, and on the Gates that hold it, if a pass has begun, has ended or is refused.
func (n *targetNews) passed(r *verdict.Ruling, gates []verdict.Gate) {
	pass := r.Step.Ends
	if !pass.IsNew(r.Observed.Pass) {
		return
	}
	said := notice{eventNormal, v1alpha1.PassGrantedReason, pass.Granted(r.Observed.HeldBy)}
	switch pass.State {
	case verdict.PassEnded:
		n.metrics.passes.WithLabelValues(pass.Outcome).Inc()
		said.reason, said.message = v1alpha1.PassEndedReason, pass.EndedSaying()
		if pass.IsFailure() {
			said.kind = eventWarning
		}
	case verdict.PassRefused:
		n.metrics.passes.WithLabelValues(string(verdict.PassRefused)).Inc()
		said = notice{eventWarning, v1alpha1.PassRefusedReason, pass.RefusedSaying(pass.Message)}
	case verdict.PassGoesOn:
	}
	n.tellPass(r, gates, pass, said)
}

// passRefused emits an event if a pass is refused and that is not recorded on the target, once in the life of this process.
func (n *targetNews) passRefused(r *verdict.Ruling, gates []verdict.Gate) {
	if r.Step.Refused == "" || !n.isNewRefusal(target.KeyOf(r.Object), r.Observed.Ask.Pass.Value+r.Step.Refused) {
		return
	}
	pass := r.Observed.Ask.Pass
	n.metrics.passes.WithLabelValues(string(verdict.PassRefused)).Inc()
	n.tellPass(r, gates, pass, notice{eventWarning, v1alpha1.PassRefusedReason, pass.RefusedSaying(r.Step.Refused)})
}

func (n *targetNews) tellPass(r *verdict.Ruling, gates []verdict.Gate, pass verdict.Pass, said notice) {
	about := news{
		gateNews: target.FormatHeldBy(r.Observed.HeldBy), actionNews: "pass", reasonNews: said.reason, requesterNews: pass.By, messageNews: pass.Reason,
		eventv1.MetaTokenKey: token(r.Now),
	}
	about.tell(n, r.Object, said)
	for _, g := range gates {
		if g.IsOurs() && slices.Contains(r.Observed.HeldBy, g.Name) {
			about[gateNews] = g.Name
			about.tell(n, g.Object, notice{said.kind, said.reason, target.KeyOf(r.Object).String() + ": " + said.message})
		}
	}
}
