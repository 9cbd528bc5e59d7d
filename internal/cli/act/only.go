package act

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// limitTo returns newRequest with the requests limited to the targets in the flags. It resolves the targets of each Gate once, because
// a label that is added later must not open further targets.
func (f *requestFlags) limitTo(ctx context.Context, k *kube.Factory, c *kube.Cluster, newRequest requestFunc) (requestFunc, error) {
	if len(f.only) == 0 && f.onlySelector == "" {
		return newRequest, nil
	}
	objects, err := k.Objects(ctx, c)
	if err != nil {
		return nil, err
	}
	named, err := kube.ParseTargets(f.only)
	if err != nil {
		return nil, err
	}
	o := &only{objects: objects, scope: c.VerdictScope(ctx), named: named, selector: f.onlySelector}
	resolved := map[types.UID][]v1alpha1.RequestTarget{}
	return func(g *v1alpha1.Gate) (*request, error) {
		r, err := newRequest(g)
		if err != nil {
			return nil, err
		}
		if resolved[g.UID] == nil {
			if resolved[g.UID], err = o.targets(ctx, g); err != nil {
				return nil, err
			}
		}
		own := *r
		own.targets = resolved[g.UID]
		return &own, nil
	}, nil
}

// only finds the targets that a request is limited to.
type only struct {
	objects  *kube.Objects
	scope    verdict.Scope
	named    []v1alpha1.TargetReference
	selector string
}

// targets returns the targets of a Gate that are named or selected. It returns an error if there are none or too many.
func (o *only) targets(ctx context.Context, g *v1alpha1.Gate) (all []v1alpha1.RequestTarget, err error) {
	add := func(obj *unstructured.Unstructured) {
		t := v1alpha1.RequestTarget{Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
		if t.Namespace == g.Namespace {
			t.Namespace = ""
		}
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	for _, ref := range o.named {
		if ref.Name == v1alpha1.AnyName {
			return nil, fmt.Errorf("a request must name its targets, so --only %s/* is not possible: use --only-selector, or kubectl gate exception", ref.Kind)
		}
		obj, err := targetOf(ctx, o.objects, o.scope, g, &ref)
		if err != nil {
			return nil, err
		}
		add(obj)
	}
	if o.selector != "" {
		if err := o.objects.EachTarget(ctx, o.scope, g, o.selector, add); err != nil {
			return nil, err
		}
		if why := o.objects.Denied(); why != "" {
			return nil, fmt.Errorf("cannot resolve --only-selector: %s", why)
		}
	}
	switch n := len(all); {
	case n == 0:
		return nil, fmt.Errorf("no target of gate %s has the labels %s", kube.FullName(g), o.selector)
	case n > v1alpha1.MaxRequestTargets:
		return nil, fmt.Errorf("%d targets of gate %s are named or have the labels, and at most %d are possible: use kubectl gate exception with --only KIND/*", n, kube.FullName(g), v1alpha1.MaxRequestTargets)
	}
	slices.SortFunc(all, func(a, b v1alpha1.RequestTarget) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}

// addSelected adds the targets of a Gate that have labels to those of an exception. It returns an error if there are none or too many.
func addSelected(ctx context.Context, k *kube.Factory, c *kube.Cluster, g *v1alpha1.Gate, e *v1alpha1.GateException, selector string) error {
	objects, err := k.Objects(ctx, c)
	if err != nil {
		return err
	}
	selected, err := (&only{objects: objects, scope: c.VerdictScope(ctx), selector: selector}).targets(ctx, g)
	if err != nil {
		return err
	}
	for _, t := range selected {
		if !slices.Contains(requestTargets(g, e.Spec.Targets), t) {
			e.Spec.Targets = append(e.Spec.Targets, v1alpha1.TargetReference{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name})
		}
	}
	if n := len(e.Spec.Targets); n > v1alpha1.MaxExceptionTargets {
		return fmt.Errorf("--only and --only-selector name %d targets, and an exception can have %d: use --only KIND/*, or matchLabels in a file", n, v1alpha1.MaxExceptionTargets)
	}
	return nil
}

// targetOf returns the object that a reference names. It returns an error if the object does not exist or is not a target of the Gate.
func targetOf(ctx context.Context, objects *kube.Objects, scope verdict.Scope, g *v1alpha1.Gate, ref *v1alpha1.TargetReference) (*unstructured.Unstructured, error) {
	mapping, err := objects.Find(ref.Kind)
	if err != nil || ref.Name == v1alpha1.AnyName {
		return nil, err
	}
	obj, err := objects.Get(ctx, mapping, cmp.Or(ref.Namespace, g.Namespace), ref.Name)
	if err != nil {
		return nil, err
	}
	if !scope.Governs(g, obj) {
		return nil, fmt.Errorf("%s is not a target of gate %s", explain.RefOf(obj), kube.FullName(g))
	}
	return obj, nil
}

// overlayOf returns the overlay of a request in the status of its Gate, nil if there is none.
func overlayOf(g *v1alpha1.Gate, r *request) *v1alpha1.Overlay {
	i := slices.IndexFunc(g.Status.Overlays, func(o v1alpha1.Overlay) bool {
		return o.RequestedAt != nil && o.RequestedAt.Time.Equal(r.at) && r.wanted() == cmp.Or(o.State, o.Next)
	})
	if i < 0 {
		return nil
	}
	return &g.Status.Overlays[i]
}

// limitedVain returns an error with the reason why a request with targets has no effect on them, nil if it has an effect.
func (r *result) limitedVain() error {
	if o := overlayOf(r.gate, r.request); o != nil && o.State == r.request.wanted() {
		return nil
	}
	opened := meta.FindStatusCondition(r.gate.Status.Conditions, v1alpha1.OpenedCondition)
	text := fmt.Sprintf("the request is accepted, but it does not %s its targets", r.request.action)
	switch {
	case opened == nil:
	case opened.Reason == v1alpha1.ClosePeriodReason:
		text += ": a close period of the gate has override: Deny"
	case opened.Reason == v1alpha1.DependencyNotReadyReason:
		text += ": a dependency of the gate is not ready"
	default:
		text += ": " + opened.Message
	}
	return ineffectiveError(text)
}
