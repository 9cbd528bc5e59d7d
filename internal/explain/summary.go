package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// summarize sets the summary.
func (k Cluster) summarize(e *Explanation, r verdict.Ruling) {
	subject := e.Target.String()
	governed, holders := e.names(governs), e.names(func(g Gate) bool { return g.Holds })
	switch {
	case e.State == Suspended:
		e.Summary = fmt.Sprintf("%s is suspended by %s. Gates do not change it.", subject, e.owners())
	case e.State == Resumed:
		e.Summary = fmt.Sprintf("%s was resumed manually. %s.", subject, respect(e.names(closed)))
	case e.State == Passing:
		e.Summary = fmt.Sprintf("%s has a pass for one reconciliation since %s.", subject, r.Observed.Pass.Since.Format(time.RFC3339))
	case e.State == Exempt:
		e.Summary = fmt.Sprintf("%s is not held, although %s: %s.", subject, areClosed(e.names(closed)), exempted(r))
	case e.State.IsHeld() && e.Becomes == Exempt && len(r.Verdict.Initial) > 0:
		e.Summary = fmt.Sprintf("%s is still held, although %s.", subject, exempted(r))
	case e.State.IsHeld() && e.Becomes != "" && len(governed) > 0 && len(e.names(closed)) == 0:
		e.Summary = fmt.Sprintf("%s is still held, although %s.", subject, areOpen(governed))
	case e.State.IsHeld() && len(holders) == 0 && len(e.names(audits)) > 0:
		e.Summary = fmt.Sprintf("%s is still held, although %s mode Audit.", subject, have(e.names(audits)))
	case e.State.IsHeld() && len(holders) == 0:
		e.Summary = subject + " is held for gates that no longer exist."
	case e.State.IsHeld():
		e.Summary = fmt.Sprintf("%s is held by %s.", subject, gatesNamed(holders))
	case len(governed) == 0 && len(e.names(audits)) > 0:
		e.Summary = fmt.Sprintf("%s is not held: %s mode Audit.", subject, have(e.names(audits)))
	case len(governed) == 0:
		e.Summary = fmt.Sprintf("No gate governs %s.", subject)
	case e.Becomes == Held:
		e.Summary = fmt.Sprintf("%s is not held yet, although %s.", subject, areClosed(holders))
	case len(e.names(func(g Gate) bool { return g.Hidden })) > 0:
		e.Summary = subject + " is not held."
	case len(e.names(undecided)) > 0:
		e.Summary = fmt.Sprintf("%s is not held: the controller has not decided on %s.", subject, gatesNamed(e.names(undecided)))
	case len(e.names(closed)) > 0:
		e.Summary = fmt.Sprintf("%s is not held, although %s.", subject, areClosed(e.names(closed)))
	default:
		e.Summary = fmt.Sprintf("%s is not held: %s.", subject, areOpen(governed))
	}
	e.note(r)
}

// note adds the notes to the explanation.
func (e *Explanation) note(r verdict.Ruling) {
	add := func(format string, args ...any) { e.Notes = append(e.Notes, fmt.Sprintf(format, args...)) }
	if _, refusal := verdict.Refusal(r.Verdict.Holders); refusal != "" {
		add("%s", refusal)
	}
	if e.State == Passing {
		add("%s", r.Observed.Pass.GrantedMessage(r.Observed.HeldBy))
	}
	if e.State == Overridden {
		add("Another client has resumed it, and the lock has restored the hold.")
	}
	if e.State.IsHeld() && len(e.Owners) > 0 {
		add("It is also suspended by %s, and stays suspended when the gates open.", e.owners())
	}
	if closed := e.names(closed); e.State == Suspended && len(closed) > 0 {
		add("If it is resumed now, it is held: %s.", areClosed(closed))
	}
	for _, g := range e.Gates {
		if g.WouldHold {
			add("Gate %s would hold it, but it has mode Audit.", g.Gate)
		}
		if g.Hidden {
			add("You may not see gate %s, so its state is unknown here.", g.Gate)
		}
		if g.Suspended {
			add("Gate %s has spec.suspend: it is not reconciled, and held objects stay held.", g.Gate)
		}
	}
	switch e.Becomes {
	case Held:
		add("The controller is about to hold it. If it does not, it is not running.")
	case Free, Exempt:
		add("%s", releaseNote(r))
	default:
	}
}

// releaseNote describes when an object that is no longer held by any Gate will be released.
func releaseNote(r verdict.Ruling) string {
	for _, g := range r.Verdict.Opened {
		if release := g.Object.Status.Release; gate.ReleasesInWaves(g.Object) && release != nil && release.Waves != nil && release.Waves.Current != "" {
			return waveNote(g, r)
		}
		if release := g.Object.Status.Release; release != nil && release.NextAt != nil {
			return fmt.Sprintf("It waits for a release slot: gate %s has released %d of %d.", g.Name, release.Released, release.Total)
		}
	}
	return "No gate holds it any longer: the controller is about to release it. If it does not, it is not running."
}

// exempted returns why an object is not held although a Gate is closed.
func exempted(r verdict.Ruling) string {
	if len(r.Verdict.Initial) > 0 {
		until := r.Verdict.Initial[0].Initial.Format(time.RFC3339)
		return fmt.Sprintf("its initial reconciliation is allowed until its first success, at the latest until %s", until)
	}
	return exemptions[r.Plan.Exempt]
}

// exemptions explain why an object is not held.
var exemptions = map[target.Exemption]string{
	target.NotReady:    "there is no certificate yet, or it is being issued",
	target.Idle:        "no revision waits",
	target.Activates:   "gates govern the activation of its certificate, not its renewal",
	target.Imminent:    "its certificate is about to expire",
	target.Needless:    "its renewal is due only after gates release it anyway",
	target.Unsupported: "this release of cert-manager does not support holding it",
}

// governs returns whether a Gate governs the object and does not have mode Audit.
func governs(g Gate) bool { return len(g.Rules) > 0 && g.Mode != v1alpha1.ModeAudit }

func audits(g Gate) bool { return g.Mode == v1alpha1.ModeAudit }

func undecided(g Gate) bool { return governs(g) && g.State == Unknown }

func closed(g Gate) bool {
	return governs(g) && (g.State == Closed || g.State == Missing || g.State == Denied)
}

// names returns the names of the Gates that match which, relative to the namespace of the object.
func (e *Explanation) names(which func(Gate) bool) []string {
	var names []string
	for _, g := range e.Gates {
		if which(g) {
			names = append(names, Short(g.Gate, e.Target.Namespace))
		}
	}
	return names
}

// Short returns the name of a Gate relative to a namespace.
func Short(gate, namespace string) string { return strings.TrimPrefix(gate, namespace+"/") }

func (e *Explanation) owners() string {
	if len(e.Owners) == 0 {
		return "an unknown client"
	}
	names := make([]string, len(e.Owners))
	for i, o := range e.Owners {
		names[i] = o.Manager
	}
	return strings.Join(names, " and ")
}

func gatesNamed(names []string) string {
	if len(names) == 1 {
		return "gate " + names[0]
	}
	return "gates " + strings.Join(names, ", ")
}

func are(names []string, what string) string {
	if len(names) == 1 {
		return gatesNamed(names) + " is " + what
	}
	return gatesNamed(names) + " are " + what
}

func have(names []string) string {
	if len(names) == 1 {
		return gatesNamed(names) + " has"
	}
	return gatesNamed(names) + " have"
}

func areClosed(names []string) string { return are(names, "closed") }

func areOpen(names []string) string { return are(names, "open") }

func respect(names []string) string {
	if len(names) == 1 {
		return "Gate " + names[0] + " permits that until it closes again"
	}
	return "Gates " + strings.Join(names, ", ") + " permit that until one of them closes again"
}
