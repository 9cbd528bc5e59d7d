package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	// maxListed bounds how many targets, or state changes, a message names.
	maxListed = 3

	// maxList bounds the bytes of names in a message. Events must not be longer than 1024 bytes.
	maxList = 400
)

// announcementText returns the text after the name of the Gate in a message. It explains when and why the state changes.
func announcementText(obj *v1alpha1.Gate, n gate.Notice, now time.Time) string {
	verb := "closes"
	if n.State == v1alpha1.StateOpened {
		verb = "opens"
	}
	if last := obj.Status.LastTransition; last != nil && last.State == n.State {
		verb += " again"
	}
	text := fmt.Sprintf("%s at %s (in %s)", verb, n.At.UTC().Format(time.RFC3339), formatDelay(n.At.Sub(now)))
	switch {
	case n.DecidedBy() != "":
		text += fmt.Sprintf(" by '%s'%s", n.DecidedBy(), gate.WithEvent("", n.Event))
	case n.Reason == v1alpha1.OpenRequestedReason, n.Reason == v1alpha1.CloseRequestedReason:
		text += " on request"
	}
	if n.State == v1alpha1.StateOpened && len(obj.Spec.DependsOn) > 0 {
		text += " if all its dependencies are ready"
	}
	if !n.Instead.IsZero() {
		text += fmt.Sprintf(", not at %s as announced", n.Instead.UTC().Format(time.RFC3339))
	}
	return text
}

// formatDelay formats a duration in hours and minutes, or in seconds if it is less than a minute. Announcements may be some seconds late.
func formatDelay(d time.Duration) string {
	if d = max(d.Round(time.Second), time.Second); d < time.Minute {
		return d.String()
	}
	text := strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	if hours, ok := strings.CutSuffix(text, "h0m"); ok {
		return hours + "h"
	}
	return text
}

// Describe returns the text after announcementText in a message. It lists the targets that the state change affects.
func (p *Impact) Describe(obj *v1alpha1.Gate, state v1alpha1.State) string {
	audit := ""
	if obj.Audits() {
		audit = ". The gate has mode Audit and holds nothing."
	}
	switch {
	case state == v1alpha1.StateClosed && len(p.Governed) == 0:
		return ": nothing would be held" + audit
	case state == v1alpha1.StateClosed:
		return fmt.Sprintf(": %s would be held: %s", targets(len(p.Governed)), list(p.Governed)) + audit
	case obj.Audits():
		return audit
	case conditions.IsTrue(obj, v1alpha1.OpenedCondition):
		return "" // the gate closes before it opens, so it is unknown what will wait then
	case len(p.Held) == 0:
		return ": nothing is held"
	case len(p.Held) == 1:
		return ": 1 target is held" + p.describeWaiting()
	}
	return fmt.Sprintf(": %s are held", targets(len(p.Held))) + p.describeWaiting()
}

// describeWaiting returns how many held targets have updates that are waiting for the Gate to open.
func (p *Impact) describeWaiting() string {
	switch {
	case len(p.Outdated) == 0 && p.Complete:
		return ", without pending changes"
	case len(p.Outdated) == 0:
		return ""
	case p.Complete:
		return fmt.Sprintf(", with pending changes for %d: %s", len(p.Outdated), list(p.Outdated))
	}
	return fmt.Sprintf(", with pending changes for at least %d: %s", len(p.Outdated), list(p.Outdated))
}

func targets(n int) string {
	if n == 1 {
		return "1 target"
	}
	return fmt.Sprintf("%d targets", n)
}

// list returns the names of the first targets, and how many more there are.
func list(all []*target.Object) string {
	var names []string
	for _, t := range all[:min(len(all), maxListed)] {
		if name := t.GetKind() + " " + t.GetNamespace() + "/" + t.GetName(); len(strings.Join(names, ", "))+len(name) <= maxList {
			names = append(names, name)
		}
	}
	return andMore(names, len(all))
}

// cancellationText returns the text after the name of the Gate in a message. It lists the announced state changes that will not happen.
func cancellationText(all []v1alpha1.Announcement) string {
	var names []string
	for _, a := range all[:min(len(all), maxListed)] {
		verb := "closing"
		if a.State == v1alpha1.StateOpened {
			verb = "opening"
		}
		names = append(names, verb+" at "+a.At.UTC().Format(time.RFC3339))
	}
	return "no longer changes as announced, cancelled: " + andMore(names, len(all)) + ". "
}

// andMore joins names. If the total number of is larger than the number of names, it adds how many more there are.
func andMore(names []string, of int) string {
	text := strings.Join(names, ", ")
	if more := of - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
