package bench

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// namedTargets is the number of targets up to which a Gate of an exact size names each target. A larger Gate selects whole namespaces.
const namedTargets = 200

// edges closes and opens a Gate with n targets several times.
func (b *bench) edges(ctx context.Context, n, times int) (map[bool][]*transition, error) {
	f, err := b.gateOf(ctx, n)
	if err != nil {
		return nil, err
	}
	f.brisk = true
	measured := map[bool][]*transition{}
	for i := range times {
		for _, closed := range []bool{true, false} {
			t, err := b.transition(ctx, f, closed)
			if err != nil {
				return nil, err
			}
			measured[closed] = append(measured[closed], t)
			if i < times-1 {
				continue
			}
			if err := b.verify(ctx, f, closed); err != nil {
				return nil, err
			}
		}
	}
	b.logf("%d edges with %d targets", 2*times, n)
	return measured, b.removeGates(ctx, f.gates)
}

// lags are the seconds from the instants to the first and the last targets.
type lags struct{ first, last []float64 }

func lagsOf(transitions []*transition) lags {
	var l lags
	for _, t := range transitions {
		l.first = append(l.first, t.first().Seconds())
		l.last = append(l.last, t.last().Seconds())
	}
	return l
}

// gateOf creates a Gate for n of the targets that all scenarios share.
func (b *bench) gateOf(ctx context.Context, n int) (*fleet, error) {
	targets, err := b.targets(ctx, shared, b.spread(), max(n, *targets, len(b.groups[shared])))
	if err != nil {
		return nil, err
	}
	f := &fleet{gates: []client.ObjectKey{{Namespace: namespaceOf(shared, 0), Name: fmt.Sprintf("gate-of-%d", n)}}}
	spec := v1alpha1.GateSpec{}
	if n <= namedTargets {
		f.targets = targets[:n]
		for _, target := range f.targets {
			spec.Targets = append(spec.Targets, v1alpha1.TargetReference{Kind: kustomization, Name: target.Name, Namespace: target.Namespace})
		}
		return f, b.newGate(ctx, f.gates[0], spec)
	}
	namespaces := map[string]bool{}
	for i := range n * b.spread() / len(targets) {
		namespaces[namespaceOf(shared, i)] = true
		spec.Targets = append(spec.Targets, v1alpha1.TargetReference{Kind: kustomization, Name: v1alpha1.AnyName, Namespace: namespaceOf(shared, i)})
	}
	for _, target := range targets {
		if namespaces[target.Namespace] {
			f.targets = append(f.targets, target)
		}
	}
	return f, b.newGate(ctx, f.gates[0], spec)
}
