package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/expression"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

const (
	// maxWatchMessage bounds, in bytes, the message that is copied from a dependency. Any user with write access to the dependency controls
	// it.
	maxWatchMessage = 256

	// maxReadyExpr is the longest expression in bytes, as in the CRD.
	maxReadyExpr = 4096
)

// readyExpr compiles an expression. The variables are the same as in spec.dependsOn of a Kustomization. The result is cached.
func readyExpr(text string) (*expression.Bool, error) {
	compiled, err := expression.NewBool(text, expression.OfDependency...)
	if err != nil {
		return nil, errors.New(format.OneLine(strings.ReplaceAll(err.Error(), "'"+text+"'", ""), maxWatchMessage))
	}
	return compiled, nil
}

// dependencyErrors returns the errors of spec.dependsOn.
func dependencyErrors(g *v1alpha1.Gate) (errs field.ErrorList) {
	if n := len(g.Spec.DependsOn); n > v1alpha1.MaxDependencies {
		return field.ErrorList{field.TooMany(field.NewPath("spec", "dependsOn"), n, v1alpha1.MaxDependencies)}
	}
	for i := range g.Spec.DependsOn {
		ref, path := &g.Spec.DependsOn[i], field.NewPath("spec", "dependsOn").Index(i)
		if ref.Kind == "" {
			errs = append(errs, field.Required(path.Child("kind"), msgDependencyKind))
		}
		if ref.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), msgDependencyName))
		}
		if slices.ContainsFunc(g.Spec.DependsOn[:i], func(other v1alpha1.DependencyReference) bool {
			return other.Kind == ref.Kind && other.Name == ref.Name && DependencyNamespace(g, &other) == DependencyNamespace(g, ref)
		}) {
			errs = append(errs, field.Duplicate(path, dependencyName(g, ref)))
		}
		if len(ref.ReadyExpr) > maxReadyExpr {
			errs = append(errs, field.TooLong(path.Child("readyExpr"), "", maxReadyExpr))
		} else if ref.ReadyExpr != "" {
			if _, err := readyExpr(ref.ReadyExpr); err != nil {
				errs = append(errs, field.Invalid(path.Child("readyExpr"), ref.ReadyExpr, err.Error()))
			}
		}
	}
	return errs
}

// EvaluateReadyExpr evaluates the readyExpr of a dependency. If the result is not true, message has the reason. dep and self are the
// contents of the dependency and of the Gate. dep is nil if the dependency does not exist. Such a dependency is never ready.
func EvaluateReadyExpr(ctx context.Context, dep, self map[string]any, expr string) (ready bool, message string) {
	if dep == nil {
		return false, msgDependencyMissing
	}
	compiled, err := readyExpr(expr)
	if err != nil {
		return false, "readyExpr: " + err.Error()
	}
	ready, err = compiled.Evaluate(ctx, map[string]any{"dep": dep, "self": self})
	switch {
	case err != nil:
		// The error begins with the expression, which may be longer than the message.
		return false, "readyExpr: " + cmp.Or(errors.Unwrap(err), err).Error()
	case !ready:
		return false, msgReadyExprFalse
	}
	return true, ""
}

// RecordDependency returns the status of a dependency with the observed readiness. It keeps Since if the readiness has not changed.
func RecordDependency(g *v1alpha1.Gate, ref *v1alpha1.DependencyReference, ready bool, message string, now time.Time) v1alpha1.DependencyStatus {
	status := v1alpha1.DependencyStatus{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: DependencyNamespace(g, ref), Name: ref.Name,
		Ready: ready, Message: format.OneLine(message, maxWatchMessage), Since: metav1.NewTime(now),
	}
	if before := FindDependency(g, ref); before != nil && before.Ready == ready {
		status.Since = before.Since
	}
	return status
}

// DependencyNamespace returns the namespace of a dependency of a Gate.
func DependencyNamespace(g *v1alpha1.Gate, ref *v1alpha1.DependencyReference) string {
	return cmp.Or(ref.Namespace, g.Namespace)
}

// FindDependency returns the recorded state of a dependency, nil if it has not been checked yet.
func FindDependency(g *v1alpha1.Gate, ref *v1alpha1.DependencyReference) *v1alpha1.DependencyStatus {
	for i := range g.Status.Dependencies {
		if s := &g.Status.Dependencies[i]; s.Kind == ref.Kind && s.Name == ref.Name &&
			s.Namespace == DependencyNamespace(g, ref) && groupOf(s.APIVersion) == groupOf(ref.APIVersion) {
			return s
		}
	}
	return nil
}

func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}

func dependencyName(g *v1alpha1.Gate, ref *v1alpha1.DependencyReference) string {
	return fmt.Sprintf("%s '%s/%s'", ref.Kind, DependencyNamespace(g, ref), ref.Name)
}

// waitsFor returns a message about the dependency that keeps a Gate closed, empty if none does. A dependency that has not been checked is
// not ready.
func waitsFor(g *v1alpha1.Gate) string {
	return firstOf(g, func(ref *v1alpha1.DependencyReference) string {
		switch status := FindDependency(g, ref); {
		case status == nil:
			return msgNotChecked
		case !status.Ready:
			return cmp.Or(status.Message, msgNoReasonGiven)
		}
		return ""
	})
}

// closesInvalid returns a message about the dependency that closes a Gate with an invalid spec, empty if none does. Only a dependency that
// was observed as not ready closes the Gate. A dependency with an invalid readyExpr is ignored.
func closesInvalid(g *v1alpha1.Gate) string {
	return firstOf(g, func(ref *v1alpha1.DependencyReference) string {
		status := FindDependency(g, ref)
		if status == nil || status.Ready {
			return ""
		}
		if ref.ReadyExpr != "" {
			if _, err := readyExpr(ref.ReadyExpr); err != nil {
				return ""
			}
		}
		return cmp.Or(status.Message, msgNoReasonGiven)
	})
}

// firstOf returns a message with the first dependency that is not ready according to whyNot, the reason, and the number of other such
// dependencies. It is empty if whyNot returns no reason for any dependency.
func firstOf(g *v1alpha1.Gate, whyNot func(*v1alpha1.DependencyReference) string) string {
	first, more := "", 0
	for i := range g.Spec.DependsOn {
		ref := &g.Spec.DependsOn[i]
		switch why := whyNot(ref); {
		case why == "":
		case first == "":
			first = fmt.Sprintf(msgNotReady, dependencyName(g, ref), why)
		default:
			more++
		}
	}
	if more > 0 {
		first += fmt.Sprintf(" (and %d more)", more)
	}
	return first
}

// wait changes the decision to closed because of a dependency. If a close request or a close period with override: Deny closes the Gate
// anyway, that remains the reason. The next transition is unknown in both cases.
func (d *Decision) wait(g *v1alpha1.Gate, s schedule.Decision, request *ledger.Request, why string) {
	d.State, d.Next = v1alpha1.StateClosed, nil
	if s.Reason == schedule.CloseRequested || s.Reason == schedule.ClosePeriod && isHard(g, s.By) {
		d.Message = message(s, nil, &g.Spec, request) + ", " + why
		return
	}
	d.Reason, d.By, d.Event, d.Message = v1alpha1.DependencyNotReadyReason, "", "", msgClosed+why
}

// DecideIfReady returns the decision as if all dependencies were ready. If it is closed, the dependencies need not be read.
func (in *Snapshot) DecideIfReady(now time.Time) Decision {
	ready := in.Gate.DeepCopy()
	ready.Status.Dependencies = make([]v1alpha1.DependencyStatus, len(ready.Spec.DependsOn))
	for i := range ready.Spec.DependsOn {
		ready.Status.Dependencies[i] = RecordDependency(in.Gate, &ready.Spec.DependsOn[i], true, "", now)
	}
	return in.WithGate(ready).Decide(now)
}

// isHard returns whether a close period has precedence over open requests.
func isHard(g *v1alpha1.Gate, name string) bool {
	return slices.ContainsFunc(g.Spec.ClosePeriods, func(p v1alpha1.ClosePeriod) bool {
		return p.Name == name && p.Override == v1alpha1.OverrideDeny
	})
}
