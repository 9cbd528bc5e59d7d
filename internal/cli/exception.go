package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// exception returns a GateException by its name, or namespace/name, for who approves it.
func (c *cluster) exception(ctx context.Context, name string) (*v1alpha1.GateException, error) {
	key := client.ObjectKey{Namespace: c.namespace, Name: strings.TrimPrefix(name, "gateexception/")}
	if namespace, short, ok := strings.Cut(key.Name, "/"); ok {
		key = client.ObjectKey{Namespace: namespace, Name: short}
	}
	e := &v1alpha1.GateException{}
	err := c.Get(ctx, key, e)
	if apierrors.IsNotFound(err) && !isUnknownResource(err) {
		return nil, c.unknownException(ctx, key)
	}
	return e, asked{"get", "gateexceptions", key.Namespace, key.Name, approverRole}.explain(err)
}

// unknownException says that a GateException does not exist, and which one may be meant.
func (c *cluster) unknownException(ctx context.Context, key client.ObjectKey) error {
	text := fmt.Sprintf("there is no gateexception %q in namespace %q", key.Name, key.Namespace)
	names, err := c.names(ctx, key.Namespace, v1alpha1.GroupVersion.WithKind(v1alpha1.GateExceptionKind))
	if near := nearest(key.Name, names); err == nil && near != "" {
		return fmt.Errorf("%s; did you mean %q?", text, near)
	}
	return errors.New(text + "; kubectl get gateexceptions -A shows all")
}

// exceptionsOf returns the GateExceptions of a Gate.
func (c *cluster) exceptionsOf(ctx context.Context, g *v1alpha1.Gate) (found []*v1alpha1.GateException, err error) {
	list := &v1alpha1.GateExceptionList{}
	if err := c.List(ctx, list, client.InNamespace(g.Namespace)); err != nil {
		return nil, asked{"list", "gateexceptions", g.Namespace, "", "gate-viewer"}.explain(err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.GateRef.Name == g.Name {
			found = append(found, &list.Items[i])
		}
	}
	return found, nil
}

func nameOfException(e *v1alpha1.GateException) string {
	return "gateexception " + e.Namespace + "/" + e.Name
}

// descriptionAnnotation is where Kubernetes has what an object is for.
const descriptionAnnotation = "kubernetes.io/description"

// authorsOf returns who wrote an exception, as the API server noted it.
func authorsOf(e *v1alpha1.GateException) []string {
	return strings.FieldsFunc(e.Annotations[v1alpha1.AuthorsAnnotation], func(r rune) bool { return r == '\n' })
}

// describeException says what an exception is, a line each. The Gate is nil if it could not be read.
func (s *session) describeException(e *v1alpha1.GateException, g *v1alpha1.Gate, now time.Time) [][2]string {
	lines := [][2]string{{"gate", e.Spec.GateRef.Name}, {"type", string(e.Spec.Type)}}
	if g != nil {
		lines[0][1] += ", is " + s.paintOpen(stateOf(g)) + ", " + reasonOf(g)
		lines[1][1] += ": " + effectOf(e.Spec.Type, g.Spec.Default)
	}
	lines = append(lines,
		[2]string{"from", formatUntil(e.Spec.ValidFrom.Time, now)},
		[2]string{"until", formatUntil(e.Spec.ValidUntil.Time, now)})
	if e.Spec.LeadTime != nil {
		lines = append(lines, [2]string{"lead time", formatDuration(e.Spec.LeadTime.Duration)})
	}
	for i := range e.Spec.Windows {
		lines = append(lines, [2]string{"window", oneLine(describePeriod(&e.Spec.Windows[i], g, now.Location()))})
	}
	if why := e.Annotations[descriptionAnnotation]; why != "" {
		lines = append(lines, [2]string{"reason", oneLine(why)})
	}
	authors := strings.Join(authorsOf(e), ", ")
	if authors == "" {
		authors = "nobody knows"
	}
	lines = append(lines, [2]string{"authors", oneLine(authors)})
	if names := approversOf(e); len(names) > 0 {
		lines = append(lines, [2]string{"approved", "by " + strings.Join(names, ", ")})
	}
	return lines
}

// approversOf returns who has approved an exception as it is.
func approversOf(e *v1alpha1.GateException) (names []string) {
	for _, a := range e.Status.Approvals {
		if a.Generation == e.Generation {
			names = append(names, a.By)
		}
	}
	return names
}

// effectOf says what the windows of an exception do to a Gate.
func effectOf(of v1alpha1.ExceptionType, byDefault v1alpha1.State) string {
	opens := byDefault == v1alpha1.StateClosed
	switch {
	case of == v1alpha1.ExceptionExtend && opens:
		return "opens the gate in its windows, too"
	case of == v1alpha1.ExceptionExtend:
		return "closes the gate in its windows, too"
	case of == v1alpha1.ExceptionSuspend && opens:
		return "keeps the gate closed in its windows"
	case of == v1alpha1.ExceptionSuspend:
		return "keeps the gate open in its windows"
	case opens:
		return "opens the gate in its windows only"
	}
	return "closes the gate in its windows only"
}

// describePeriod says when a period of a Gate is, which is nil if it could not be read.
func describePeriod(p *v1alpha1.Period, g *v1alpha1.Gate, zone *time.Location) string {
	text := ""
	switch {
	case p.From != nil && p.Until != nil:
		return fmt.Sprintf("%s: from %s until %s", p.Name, formatTime(p.From.In(zone)), formatTime(p.Until.In(zone)))
	case p.Schedule != nil && p.Duration != nil:
		text = fmt.Sprintf("%s: cron %s, for %s", p.Name, *p.Schedule, formatDuration(p.Duration.Duration))
	case p.Start != nil && p.End != nil:
		text = fmt.Sprintf("%s: %s from %s to %s", p.Name, describeDays(p.DaysOfWeek), *p.Start, *p.End)
	default:
		return p.Name + ": invalid"
	}
	switch {
	case p.TimeZone != "":
		return text + " in " + string(p.TimeZone)
	case g == nil:
		return text + " in the time zone of the gate"
	}
	return text + " in " + cmp.Or(string(g.Spec.TimeZone), "UTC")
}

func describeDays(days []v1alpha1.DayOfWeek) string {
	if len(days) == 0 {
		return "daily"
	}
	names := make([]string, len(days))
	for i, d := range days {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

// conditionOf returns a condition, an empty one if it is missing.
func conditionOf(conditions []metav1.Condition, of string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, of); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// poll asks until it is done, for as long as the controller is given to answer.
func (s *session) poll(ctx context.Context, done func() (bool, error)) error {
	deadline := s.clock.Now().Add(answerTimeout)
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if s.clock.Now().After(deadline) {
			return errNoAnswer
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.clock.After(answerPoll):
		}
	}
}
