package events

import (
	"slices"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// passed emits events on a target, and on the Gates that hold it, if a pass has begun, ended or been refused.
func (n *Recorder) passed(r *verdict.Ruling, gates []verdict.Gate) {
	pass := r.Step.Ends
	if !pass.IsNew(r.Observed.Pass) {
		return
	}
	event := New(Normal, v1alpha1.PassGrantedReason, pass.GrantedMessage(r.Observed.HeldBy))
	switch pass.State {
	case verdict.PassEnded:
		n.Metrics.passes.WithLabelValues(pass.Outcome).Inc()
		event.Reason, event.Message = v1alpha1.PassEndedReason, pass.EndedMessage()
		if pass.IsFailure() {
			event.Type = Warning
		}
	case verdict.PassRefused:
		n.Metrics.passes.WithLabelValues(string(verdict.PassRefused)).Inc()
		event = New(Warning, v1alpha1.PassRefusedReason, pass.RefusedMessage(pass.Message))
	case verdict.PassInProgress:
	}
	n.emitPass(r, gates, pass, event)
}

// passRefused emits an event about a refusal that cannot be recorded on the target, once per process.
func (n *Recorder) passRefused(r *verdict.Ruling, gates []verdict.Gate) {
	if r.Step.Refused == "" || !n.isNewRefusal(target.KeyOf(r.Object), r.Observed.Request.Pass.Value+r.Step.Refused) {
		return
	}
	pass := r.Observed.Request.Pass
	n.Metrics.passes.WithLabelValues(string(verdict.PassRefused)).Inc()
	n.emitPass(r, gates, pass, New(Warning, v1alpha1.PassRefusedReason, pass.RefusedMessage(r.Step.Refused)))
}

func (n *Recorder) emitPass(r *verdict.Ruling, gates []verdict.Gate, pass verdict.Pass, event Event) {
	details := Details{
		GateKey: target.FormatHeldBy(r.Observed.HeldBy), ActionKey: "pass", ReasonKey: event.Reason, RequesterKey: pass.By, MessageKey: pass.Reason,
		eventv1.MetaTokenKey: Token(r.Now),
	}
	details.Emit(n, r.Object, event)
	for _, g := range gates {
		if g.IsOurs() && slices.Contains(r.Observed.HeldBy, g.Name) {
			details[GateKey] = g.Name
			details.Emit(n, g.Object, New(event.Type, event.Reason, target.KeyOf(r.Object).String()+": "+event.Message))
		}
	}
}
