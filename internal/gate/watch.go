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
	"github.com/fluxcd/gating-controller/internal/schedule"
)

const (
	// maxWatchMessage bounds in bytes what is copied from an object that a Gate follows.
	// Anybody who may write that object may have written it.
	maxWatchMessage = 256

	// maxReadyExpr is the longest expression in bytes, as in the CRD.
	maxReadyExpr = 4096
)

// readyExpr compiles an expression with the variables of dependsOn in a Kustomization. The
// result is cached.
func readyExpr(text string) (*expression.Bool, error) {
	compiled, err := expression.NewBool(text, "dep", "self")
	if err != nil {
		return nil, errors.New(OneLine(strings.ReplaceAll(err.Error(), "'"+text+"'", ""), maxWatchMessage))
	}
	return compiled, nil
}

// watches checks what a Gate follows.
func (c *compiler) watches(g *v1alpha1.Gate) {
	if n := len(g.Spec.Watch); n > v1alpha1.MaxWatches {
		c.add(field.TooMany(field.NewPath("spec", "watch"), n, v1alpha1.MaxWatches))
		return
	}
	for i := range g.Spec.Watch {
		ref, path := &g.Spec.Watch[i], field.NewPath("spec", "watch").Index(i)
		if ref.Kind == "" {
			c.add(field.Required(path.Child("kind"), "what is watched needs a kind"))
		}
		if ref.Name == "" {
			c.add(field.Required(path.Child("name"), "what is watched needs a name"))
		}
		if slices.ContainsFunc(g.Spec.Watch[:i], func(other v1alpha1.WatchReference) bool {
			return other.Kind == ref.Kind && other.Name == ref.Name && WatchedNamespace(g, &other) == WatchedNamespace(g, ref)
		}) {
			c.add(field.Duplicate(path, watched(g, ref)))
		}
		if len(ref.ReadyExpr) > maxReadyExpr {
			c.add(field.TooLong(path.Child("readyExpr"), "", maxReadyExpr))
		} else if ref.ReadyExpr != "" {
			if _, err := readyExpr(ref.ReadyExpr); err != nil {
				c.add(field.Invalid(path.Child("readyExpr"), ref.ReadyExpr, err.Error()))
			}
		}
	}
}

// EvaluateReadyExpr returns whether the readyExpr of a dependency is true, and why not. dep and self are the content of the
// dependency and of the Gate. A dependency that does not exist is nil, and is not ready.
func EvaluateReadyExpr(ctx context.Context, dep, self map[string]any, expr string) (ready bool, message string) {
	if dep == nil {
		return false, "does not exist"
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
		return false, "readyExpr is false"
	}
	return true, ""
}

// RecordWatch returns what to note of an object that a Gate follows: whether it is ready,
// and since when.
func RecordWatch(g *v1alpha1.Gate, ref *v1alpha1.WatchReference, ready bool, message string, now time.Time) v1alpha1.WatchStatus {
	status := v1alpha1.WatchStatus{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: WatchedNamespace(g, ref), Name: ref.Name,
		Ready: ready, Message: OneLine(message, maxWatchMessage), Since: metav1.NewTime(now),
	}
	if before := Watched(g, ref); before != nil && before.Ready == ready {
		status.Since = before.Since
	}
	return status
}

// WatchedNamespace returns the namespace of an object that a Gate follows.
func WatchedNamespace(g *v1alpha1.Gate, ref *v1alpha1.WatchReference) string {
	return cmp.Or(ref.Namespace, g.Namespace)
}

// Watched returns what is noted of an object that a Gate follows, nil if nobody has looked
// at it yet.
func Watched(g *v1alpha1.Gate, ref *v1alpha1.WatchReference) *v1alpha1.WatchStatus {
	for i := range g.Status.Watch {
		if s := &g.Status.Watch[i]; s.Kind == ref.Kind && s.Name == ref.Name &&
			s.Namespace == WatchedNamespace(g, ref) && groupOf(s.APIVersion) == groupOf(ref.APIVersion) {
			return s
		}
	}
	return nil
}

func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}

func watched(g *v1alpha1.Gate, ref *v1alpha1.WatchReference) string {
	return fmt.Sprintf("%s '%s/%s'", ref.Kind, WatchedNamespace(g, ref), ref.Name)
}

// waitsFor says which object keeps a Gate closed, empty if none does. An object that
// nobody has looked at is not ready.
func waitsFor(g *v1alpha1.Gate) string {
	return firstOf(g, func(ref *v1alpha1.WatchReference) string {
		switch status := Watched(g, ref); {
		case status == nil:
			return "has not been looked at yet"
		case !status.Ready:
			return cmp.Or(status.Message, "no reason given")
		}
		return ""
	})
}

// closesInvalid says which object closes a Gate whose spec is invalid, empty if none does.
// It must have been seen not ready. An object with an invalid expression does not count:
// the last state stays.
func closesInvalid(g *v1alpha1.Gate) string {
	return firstOf(g, func(ref *v1alpha1.WatchReference) string {
		status := Watched(g, ref)
		if status == nil || status.Ready {
			return ""
		}
		if ref.ReadyExpr != "" {
			if _, err := readyExpr(ref.ReadyExpr); err != nil {
				return ""
			}
		}
		return cmp.Or(status.Message, "no reason given")
	})
}

// firstOf names the first object that a Gate follows and that is not ready, and says how
// many more there are.
func firstOf(g *v1alpha1.Gate, whyNot func(*v1alpha1.WatchReference) string) string {
	first, more := "", 0
	for i := range g.Spec.Watch {
		ref := &g.Spec.Watch[i]
		switch why := whyNot(ref); {
		case why == "":
		case first == "":
			first = fmt.Sprintf("%s is not ready: %s", watched(g, ref), why)
		default:
			more++
		}
	}
	if more > 0 {
		first += fmt.Sprintf(" (and %d more)", more)
	}
	return first
}

// wait closes a Gate that waits for an object. Earlier entries of the decision table still
// say why it is closed. Nobody knows when the object will be ready.
func (d *Decision) wait(g *v1alpha1.Gate, s schedule.Decision, request *Request, why string) {
	d.State, d.Next = v1alpha1.StateClosed, nil
	if s.Reason == schedule.CloseRequested || s.Reason == schedule.ClosePeriod && isHard(g, s.By) {
		d.Message = message(s, nil, &g.Spec, request) + ", " + why
		return
	}
	d.Reason, d.By, d.Event, d.Message = v1alpha1.DependencyNotReadyReason, "", "", "Gate closed, "+why
}

// DecideIfReady returns the decision on a Gate as if everything that it follows were
// ready. If it is closed even then, nobody needs to look at the objects.
func DecideIfReady(g *v1alpha1.Gate, now time.Time, exceptions ...*v1alpha1.GateException) Decision {
	return Calendars(nil).DecideIfReady(g, now, exceptions...)
}

// DecideIfReady is as the function, with calendars.
func (c Calendars) DecideIfReady(g *v1alpha1.Gate, now time.Time, exceptions ...*v1alpha1.GateException) Decision {
	ready := g.DeepCopy()
	ready.Status.Watch = make([]v1alpha1.WatchStatus, len(g.Spec.Watch))
	for i := range g.Spec.Watch {
		ready.Status.Watch[i] = RecordWatch(g, &g.Spec.Watch[i], true, "", now)
	}
	return c.Decide(ready, now, exceptions...)
}

// isHard returns whether an open request does not lift a close period.
func isHard(g *v1alpha1.Gate, name string) bool {
	return slices.ContainsFunc(g.Spec.ClosePeriods, func(p v1alpha1.ClosePeriod) bool {
		return p.Name == name && p.Override == v1alpha1.OverrideDeny
	})
}
