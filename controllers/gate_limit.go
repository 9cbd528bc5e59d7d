package controllers

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

// limit keeps a Gate, which was as it is in before, from closing if it governs more than spec.maxTargets allows. If not all targets are
// read yet, it looks again soon.
func (s *Selector) limit(ctx context.Context, before *v1alpha1.Gate, d *decision) {
	if !d.IsLimited(before) {
		return
	}
	n, err := s.count(ctx, before)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "spec.maxTargets counts what could be read")
	}
	d.Decision = d.Limit(before, n)
	if n.Partial && d.IsRefused() {
		d.edges = append(d.edges, d.at.Add(wakeDelay))
	}
}

// count counts what the spec of a Gate names: who names the Gate must not keep it from closing. A kind that is being read has nothing so
// far.
func (s *Selector) count(ctx context.Context, g *v1alpha1.Gate) (gate.Governed, error) {
	named, err := s.referenced(ctx, g)
	n := gate.Governed{Count: len(named.keys), Partial: err != nil}
	for i := range g.Spec.Targets {
		if adapter, err := target.For(g.Spec.Targets[i].APIVersion, g.Spec.Targets[i].Kind); err == nil {
			n.Partial = n.Partial || s.reading(ctx, g, adapter.GroupKind()) != nil
		}
	}
	held, failed := s.Targets.HeldBy(ctx, client.ObjectKeyFromObject(g).String())
	n.Held = len(held) > 0 || failed != nil
	return n, errors.Join(err, failed)
}
