package controllers

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// planned is a plan, and the Gates on whose terms it is made.
type planned struct {
	target.Plan
	terms target.Terms
	gates []*v1alpha1.Gate
	// now is the instant of the plan.
	now time.Time
}

// plan returns how to hold a target in the names of some Gates.
func (r *GateReconciler) plan(ctx context.Context, obj *target.Object, state target.State, names []string, want order) (planned, error) {
	p := planned{now: want.now}
	if isCertificate(obj) {
		gates, err := r.gatesOf(ctx, names, want.gate, r.Client, r.APIReader)
		if err != nil {
			return planned{}, err
		}
		p.gates, p.terms = gates, r.termsFor(obj, gates)
	}
	p.Plan = target.Of(&obj.Unstructured).Plan(obj, state, p.terms, want.now)
	p.Pending = exempted(obj)
	return p, nil
}

func isCertificate(obj *target.Object) bool {
	return obj.GroupVersionKind().GroupKind() == target.Certificate
}

// termsFor returns the terms on which Gates hold one Certificate together.
func (r *GateReconciler) termsFor(obj *target.Object, gates []*v1alpha1.Gate) target.Terms {
	terms := termsOf(gates)
	terms.Definition = r.Targets.Definition(target.Certificate)
	terms.Ignored = conditions.GetReason(obj, v1alpha1.RenewalConfigInvalidCondition) == v1alpha1.WindowIgnoredReason
	terms.Activates = obj.GetAnnotations()[v1alpha1.ActivateIntoAnnotation] != ""
	return terms
}

// gatesOf returns the Gates with some names that exist, in the order of the names.
// The own one is taken as it is: the cache may have it as it was. Each reader is asked if
// the one before has none: the cache lacks the Gates of other shards.
func (r *GateReconciler) gatesOf(ctx context.Context, names []string, own *v1alpha1.Gate, first client.Reader, others ...client.Reader) ([]*v1alpha1.Gate, error) {
	var gates []*v1alpha1.Gate
	for _, name := range names {
		if own != nil && client.ObjectKeyFromObject(own).String() == name {
			gates = append(gates, own)
			continue
		}
		namespace, name, _ := strings.Cut(name, "/")
		if !r.watches(namespace) {
			continue // its cache does not know
		}
		gate := &v1alpha1.Gate{}
		key := types.NamespacedName{Namespace: namespace, Name: name}
		err := first.Get(ctx, key, gate)
		for _, reader := range others {
			if apierrors.IsNotFound(err) {
				err = reader.Get(ctx, key, gate)
			}
		}
		switch {
		case err == nil:
			gates = append(gates, gate)
		case client.IgnoreNotFound(err) != nil:
			return nil, err
		}
	}
	return gates, nil
}

// termsOf returns the terms on which Gates hold a Certificate together: it is let
// go when the last of them lets it go.
func termsOf(gates []*v1alpha1.Gate) target.Terms {
	var terms target.Terms
	for i, gate := range gates {
		policy := ptr.Deref(gate.Spec.Certificates, v1alpha1.CertificatePolicy{})
		margin := v1alpha1.DefaultSafetyMargin
		if policy.SafetyMargin != nil {
			margin = policy.SafetyMargin.Duration
		}
		if i == 0 || margin < terms.Margin {
			terms.Margin = margin
		}
		terms.Strict = terms.Strict || policy.Strict
	}
	if len(gates) == 0 {
		terms.Margin = v1alpha1.DefaultSafetyMargin
	}
	return terms
}
