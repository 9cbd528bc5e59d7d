package gate

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

const (
	// maxRead bounds how many targets, each with its source, are read to find their updates.
	maxRead = 50

	// readTimeout bounds how long these reads may take.
	readTimeout = 10 * time.Second
)

// Impact is the effect of a state change of a Gate on its targets.
type Impact struct {
	// Governed lists the governed targets that are not suspended by others, and Held the targets that the Gate holds. Both are sorted.
	Governed, Held []*target.Object
	// Outdated lists held targets with waiting updates. Complete is true if the list is known to be complete.
	Outdated []*target.Object
	Complete bool
}

// findImpact returns the impact of the changes in a forecast.
func findImpact(ctx context.Context, s *view.Selector, obj *v1alpha1.Gate, f gate.Forecast, at time.Time) (p Impact, err error) {
	keys, err := s.Governed(ctx, obj)
	if err != nil {
		return p, err
	}
	name := client.ObjectKeyFromObject(obj).String()
	for _, key := range keys {
		found, err := s.Targets.Get(ctx, key)
		if err != nil || found == nil {
			continue // the object is being created or deleted
		}
		switch state := target.Of(&found.Unstructured).Observe(found, verdict.Us); {
		case state == target.SuspendedByOthers:
			continue
		case state.IsHeld() && (target.Pins(key.GroupKind) || slices.Contains(verdict.HeldBy(&found.Unstructured), name)): // nothing is written on a GatedSource
			p.Held = append(p.Held, found)
		}
		p.Governed = append(p.Governed, found)
	}
	slices.SortFunc(p.Governed, compareTargets)
	slices.SortFunc(p.Held, compareTargets)
	if slices.ContainsFunc(f.Notices, func(n gate.Notice) bool { return n.State == v1alpha1.StateOpened }) {
		p.findOutdated(ctx, s.Targets, at)
	}
	return p, nil
}

func compareTargets(a, b *target.Object) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetKind(), b.GetKind()),
		strings.Compare(a.GroupVersionKind().Group, b.GroupVersionKind().Group), strings.Compare(a.GetName(), b.GetName()))
}

// eventTargets returns the first target of each kind in each namespace, but at most events.MaxTargetEvents.
func (p *Impact) eventTargets() (first []client.Object) {
	var last *target.Object
	for _, t := range p.Governed {
		if len(first) < events.MaxTargetEvents && (last == nil || last.GetNamespace() != t.GetNamespace() || last.GroupVersionKind().GroupKind() != t.GroupVersionKind().GroupKind()) {
			first, last = append(first, t), t
		}
	}
	return first
}

// inNamespace returns the impact on the targets of a namespace.
func (p *Impact) inNamespace(namespace string) Impact {
	elsewhere := func(t *target.Object) bool { return t.GetNamespace() != namespace }
	own := *p
	for _, list := range []*[]*target.Object{&own.Governed, &own.Held, &own.Outdated} {
		*list = slices.DeleteFunc(slices.Clone(*list), elsewhere)
	}
	return own
}

// findOutdated finds which of the first held targets have waiting updates. It reads the targets and their sources from the API server,
// because the cache lacks their applied revisions.
func (p *Impact) findOutdated(ctx context.Context, reader view.TargetReader, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	p.Complete = len(p.Held) <= maxRead
	sources := map[explain.Ref]*unstructured.Unstructured{}
	for _, held := range p.Held[:min(len(p.Held), maxRead)] {
		obj := current(ctx, reader, explain.RefOf(&held.Unstructured))
		if obj == nil {
			p.Complete = false
			continue
		}
		var source *unstructured.Unstructured
		if ref, ok := explain.SourceOf(obj); ok {
			if _, known := sources[ref]; !known {
				sources[ref] = current(ctx, reader, ref)
			}
			source = sources[ref]
		}
		switch w := explain.Wait(obj, source, now); w.Reason {
		case explain.NewRevision, explain.RenewalDue:
			p.Outdated = append(p.Outdated, held)
		case explain.NothingNew:
		default: // unknown
			p.Complete = false
		}
	}
}

// current returns an object of a supported kind, nil if it does not exist or cannot be read.
func current(ctx context.Context, reader view.TargetReader, ref explain.Ref) *unstructured.Unstructured {
	adapter, err := target.For(ref.APIVersion, ref.Kind)
	if err != nil {
		return nil
	}
	obj, err := reader.Read(ctx, adapter, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return nil
	}
	return obj
}
