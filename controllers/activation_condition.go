package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/activation"
	"github.com/fluxcd/gating-controller/internal/target"
)

// closedTo are the Gates that a Certificate waits for, by name. One that does not
// exist, or must not be referred to, is nil.
type closedTo map[string]*v1alpha1.Gate

func (c closedTo) names() []string { return slices.Sorted(maps.Keys(c)) }

// String says which Gates have to open, and when they do.
func (c closedTo) String() string {
	var all []string
	for _, name := range c.names() {
		text := "'" + name + "'"
		if gate := c[name]; gate != nil {
			if at, zone, ok := opening(gate); ok {
				text += fmt.Sprintf(" (opens at %s, %s)", at.Format(time.RFC3339), zone)
			}
		}
		all = append(all, text)
	}
	switch len(all) {
	case 0:
		return "a gate that governs it"
	case 1:
		return "gate " + all[0]
	}
	return "gates " + strings.Join(all, ", ")
}

// when returns when a certificate may be promoted: while all Gates that govern the
// Certificate are open, or at the margin.
func (a *activationOf) when(ctx context.Context) (activation.When, error) {
	gates, err := a.gates()
	if err != nil {
		return activation.When{}, err
	}
	a.closed = closedTo{}
	names := namedBy(&a.obj.Unstructured)
	for _, name := range names {
		a.closed[name] = nil
	}
	var governing []*v1alpha1.Gate
	for _, g := range gates {
		if !a.reaches(a.obj.GetNamespace(), g.Namespace) || !governs(g, &a.obj.Unstructured, names) {
			continue
		}
		closed := !conditions.IsTrue(g, v1alpha1.OpenedCondition) // as decided now
		if g != a.own {
			g = a.newer(ctx, g, &a.obj.Unstructured)
			closed = isClosed(g, a.Clock.Now())
		}
		governing = append(governing, g)
		name := client.ObjectKeyFromObject(g).String()
		if a.closed[name] = g; !closed {
			delete(a.closed, name)
		}
	}
	terms := termsOf(governing)
	open := len(governing) > 0 && len(a.closed) == 0
	return activation.When{Open: open, Margin: terms.Margin, Strict: terms.Strict}, nil
}

// activatedCondition returns the condition Activated of a Certificate.
func activatedCondition(names activation.Names, d activation.Decision, closed closedTo) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ActivatedCondition, Status: metav1.ConditionFalse}
	ends := ""
	if d.Live != nil {
		ends = fmt.Sprintf(" The certificate in use ends at %s.", d.Live.End())
	}
	switch d.Outcome {
	case activation.Activated:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ActivatedReason
		condition.Message = fmt.Sprintf("Secret '%s' has the issued certificate.%s", names.Live, ends)
	case activation.RolledBack:
		condition.Reason = v1alpha1.RolledBackReason
		condition.Message = fmt.Sprintf("Somebody has changed Secret '%s' since the certificate was activated. It stays so until the next issuance.%s", names.Live, ends)
	case activation.NotIssued:
		condition.Reason = v1alpha1.NotIssuedReason
		condition.Message = fmt.Sprintf("There is no certificate in Secret '%s' yet.", names.Staged)
	case activation.NotYetValid:
		condition.Reason = v1alpha1.NotYetValidReason
		condition.Message = fmt.Sprintf("Certificate %s is valid from %s on.%s", d.Staged.Serial, d.Staged.NotBefore.UTC().Format(time.RFC3339), ends)
	case activation.Closed:
		condition.Reason = v1alpha1.GateClosedReason
		condition.Message = fmt.Sprintf("Certificate %s waits for %s.%s", d.Staged.Serial, closed, ends)
		if !d.Recheck.IsZero() {
			condition.Message += fmt.Sprintf(" It is replaced at %s at the latest.", d.Recheck.UTC().Format(time.RFC3339))
		}
	default:
		condition.Reason = v1alpha1.ActivationFailedReason
		condition.Message = fmt.Sprintf("Not activated into Secret '%s': %s.%s", names.Live, d.Message, ends)
	}
	return condition
}

// certifyActivation sets the condition Activated of a Certificate, or removes it if
// that is nil. What else we have set stays.
func (r *GateReconciler) certifyActivation(ctx context.Context, obj *target.Object, condition *metav1.Condition, now time.Time) error {
	for retry := 0; ; retry++ {
		was := conditions.Get(obj, v1alpha1.ActivatedCondition)
		if was == nil && condition == nil ||
			was != nil && condition != nil && was.Status == condition.Status && was.Reason == condition.Reason && was.Message == condition.Message {
			return nil
		}
		list := map[string]metav1.Condition{}
		for _, other := range obj.GetConditions() {
			if slices.Contains(ourConditions, other.Type) && other.Type != v1alpha1.ActivatedCondition {
				list[other.Type] = other
			}
		}
		if condition != nil {
			set := *condition
			set.LastTransitionTime = metav1.NewTime(now)
			if was != nil && was.Status == set.Status {
				set.LastTransitionTime = was.LastTransitionTime
			}
			list[set.Type] = set
		}
		_, err := r.applyConditions(ctx, obj, list)
		if !apierrors.IsConflict(err) || retry == conflictRetries {
			return client.IgnoreNotFound(err)
		}
		if obj, err = r.reread(ctx, obj, retry); obj == nil {
			return err
		}
	}
}

// forgetActivations removes the condition Activated from Certificates that no Gate
// governs but one that goes.
func (r *GateReconciler) forgetActivations(ctx context.Context, targets []*target.Object, but string, now time.Time) error {
	live := r.liveOnce(ctx, nil)
	for _, obj := range targets {
		if conditions.Get(obj, v1alpha1.ActivatedCondition) == nil {
			continue
		}
		gates, err := r.governing(&obj.Unstructured, live)
		delete(gates, but)
		if err == nil && len(gates) == 0 {
			err = r.certifyActivation(ctx, obj, nil, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
