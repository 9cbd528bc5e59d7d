package webauth

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/ui"
)

// anonymousViewer is a viewer without a token. It sees only names, states and times.
type anonymousViewer struct{ *Viewers }

// Gates implements ui.Reader.
func (a anonymousViewer) Gates(ctx context.Context, namespace, name string) (*ui.Visible, error) {
	gates, err := a.gates(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if name != "" {
		gates = slices.DeleteFunc(gates, func(g *v1alpha1.Gate) bool { return g.Name != name })
	}
	exceptions, err := a.exceptions(ctx, namespace)
	if err != nil {
		return nil, err
	}
	known, err := a.content(ctx, gates, exceptions, nil)
	if err != nil {
		return nil, err
	}
	version := known.Version
	shown := make([]*v1alpha1.Gate, len(gates))
	for i, g := range gates {
		shown[i] = bare(g)
	}
	return &ui.Visible{Set: known.Set, Gates: shown, Version: version}, nil
}

// bare returns a copy of a Gate with only names, states and times. The mode, and whether the Gate is suspended, are part of its state.
func bare(g *v1alpha1.Gate) *v1alpha1.Gate {
	transition := func(t *v1alpha1.Transition) *v1alpha1.Transition {
		if t == nil {
			return nil
		}
		return &v1alpha1.Transition{At: t.At, State: t.State}
	}
	return &v1alpha1.Gate{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name, DeletionTimestamp: g.DeletionTimestamp},
		Spec:       v1alpha1.GateSpec{Mode: g.Spec.Mode, Suspend: g.Spec.Suspend},
		Status: v1alpha1.GateStatus{
			ObservedGeneration: g.Status.ObservedGeneration,
			LastTransition:     transition(g.Status.LastTransition), NextTransition: transition(g.Status.NextTransition),
		},
	}
}

// Targets implements ui.Reader.
func (anonymousViewer) Targets(context.Context, *v1alpha1.Gate) ([]ui.Target, []string, error) {
	return nil, nil, ui.ErrBare
}

// Why implements ui.Reader.
func (anonymousViewer) Why(context.Context, string, string, string) (*explain.Explanation, error) {
	return nil, ui.ErrBare
}

// Subscriptions implements ui.Reader.
func (anonymousViewer) Subscriptions(context.Context, *v1alpha1.Gate) ([]ui.Subscription, error) {
	return nil, ui.ErrBare
}

// Sees implements ui.Reader.
func (anonymousViewer) Sees(context.Context, []string) (bool, error) { return true, nil }
