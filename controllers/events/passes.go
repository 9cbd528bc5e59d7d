package events

import (
	"slices"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// passed records events on a target, and on the Gates that hold it, if a pass has begun, has ended or is refused.
func (n *Recorder) passed(r *verdict.Ruling, gates []verdict.Gate) {
	pass := r.Step.Ends
	if !pass.IsNew(r.Observed.Pass) {
		return
	}
	said := New(Normal, v1alpha1.PassGrantedReason, pass.GrantedMessage(r.Observed.HeldBy))
	switch pass.State {
	case verdict.PassEnded:
		n.Metrics.passes.WithLabelValues(pass.Outcome).Inc()
		said.Reason, said.Message = v1alpha1.PassEndedReason, pass.EndedMessage()
		if pass.IsFailure() {
			said.Type = Warning
		}
	case verdict.PassRefused:
		n.Metrics.passes.WithLabelValues(string(verdict.PassRefused)).Inc()
		said = New(Warning, v1alpha1.PassRefusedReason, pass.RefusedMessage(pass.Message))
	case verdict.PassInProgress:
	}
	n.emitPass(r, gates, pass, said)
}

// passRefused emits an event if a pass is refused and that is not recorded on the target, once in the life of this process.
func (n *Recorder) passRefused(r *verdict.Ruling, gates []verdict.Gate) {
	if r.Step.Refused == "" || !n.isNewRefusal(target.KeyOf(r.Object), r.Observed.Request.Pass.Value+r.Step.Refused) {
		return
	}
	pass := r.Observed.Request.Pass
	n.Metrics.passes.WithLabelValues(string(verdict.PassRefused)).Inc()
	n.emitPass(r, gates, pass, New(Warning, v1alpha1.PassRefusedReason, pass.RefusedMessage(r.Step.Refused)))
}

func (n *Recorder) emitPass(r *verdict.Ruling, gates []verdict.Gate, pass verdict.Pass, said Event) {
	about := Details{
		GateKey: target.FormatHeldBy(r.Observed.HeldBy), ActionKey: "pass", ReasonKey: said.Reason, RequesterKey: pass.By, MessageKey: pass.Reason,
		eventv1.MetaTokenKey: Token(r.Now),
	}
	about.Emit(n, r.Object, said)
	for _, g := range gates {
		if g.IsOurs() && slices.Contains(r.Observed.HeldBy, g.Name) {
			about[GateKey] = g.Name
			about.Emit(n, g.Object, New(said.Type, said.Reason, target.KeyOf(r.Object).String()+": "+said.Message))
		}
	}
}
