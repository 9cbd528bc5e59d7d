package controllers

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

// write makes a step so.
func (r *GateReconciler) write(ctx context.Context, s settled, holders []string) (settled, error) {
	latest, err := r.apply(ctx, s.obj, s.step, s.plan.Lever)
	if apierrors.IsInvalid(err) && s.step.Hold {
		return r.writeWithoutRoom(ctx, s, holders)
	}
	if err == nil {
		s.obj = latest
	}
	return s, err
}

// writeWithoutRoom holds a target in whose annotations somebody left no room for the name
// of one more Gate. The names stay that are there, but for those of Gates that do not close
// it any more: they would wait for this one to put its name to it. If none fit, it is held
// in nobody's name. All Gates then say the same of it, so that they do not write in turns.
func (r *GateReconciler) writeWithoutRoom(ctx context.Context, s settled, holders []string) (settled, error) {
	gates, err := r.governing(&s.obj.Unstructured, s.want.live)
	if err != nil {
		return s, err
	}
	kept := slices.DeleteFunc(slices.Clone(holders), func(name string) bool {
		g, governs := gates[name]
		return name != s.want.Gate && (!governs || g != nil && gate.IsOpen(g, s.want.now))
	})
	fitting := [][]string{kept, nil}
	if len(kept) < len(holders) {
		fitting = [][]string{target.After(kept, s.want.Want), kept, nil}
	}
	for _, names := range fitting {
		latest, tried := r.apply(ctx, s.obj, target.Step{Hold: true, HeldBy: names}, s.plan.Lever)
		if err = tried; err == nil {
			s.obj, s.step.HeldBy = latest, names
			if !slices.Contains(names, s.want.Gate) {
				s.want.Refusal = ""
			}
		}
		if !apierrors.IsInvalid(err) {
			break
		}
	}
	return s, err
}
