package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	automationv1 "github.com/fluxcd/image-automation-controller/api/v1"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// maxOpenFor bounds how long a suggested command opens a Gate.
const maxOpenFor = time.Hour

// OpenFlags returns the flags of a suggested command that opens a Gate, and a text with the duration.
func OpenFlags(g *v1alpha1.Gate) (flags, lasts string) {
	d := openFor(g)
	text := strings.TrimSuffix(strings.TrimSuffix(d.String(), "m0s"), "h0") // 1h, 20m, 10s
	switch {
	case strings.HasSuffix(d.String(), "h0m0s"):
		text += "h"
	case strings.HasSuffix(d.String(), "m0s"):
		text += "m"
	}
	if d < maxOpenFor {
		return "--for " + text, text + ", its spec.window"
	}
	return "--for " + text, "an hour"
}

func openFor(g *v1alpha1.Gate) time.Duration {
	if window := g.Spec.Window; window != nil {
		return min(window.Duration, maxOpenFor)
	}
	return maxOpenFor
}

// remedy adds the commands that would change the state of an object.
func (k Cluster) remedy(e *Explanation, r verdict.Ruling) {
	switch {
	case e.Becomes != "":
		return // the state changes without a command
	case e.State.IsHeld() || e.State == Suspended || e.State == Exempt && r.Plan.Exempt == target.Activates:
		for _, g := range r.Verdict.Holders {
			e.Remedies = append(e.Remedies, k.lift(g, r.Object)...)
		}
		if e.State == Suspended || len(e.Owners) > 0 && e.State.IsHeld() {
			e.Remedies = append(e.Remedies, e.resume())
		}
	case e.State == Resumed:
		e.Remedies = append(e.Remedies, Remedy{command("suspend", e.Target), "suspends it in your name, even when the gates open"})
	case e.State == Free:
		for _, g := range r.Verdict.Opened {
			if g.Governs {
				e.Remedies = append(e.Remedies, Remedy{k.onGate("close", g.Object, "--for 1h"), "holds it for an hour, or until a user opens the gate"})
				return
			}
		}
	}
}

// lift returns the commands that end the hold by one Gate.
func (k Cluster) lift(g verdict.Gate, obj *target.Object) []Remedy {
	switch g.Effect {
	case verdict.Missing, verdict.Denied:
		return []Remedy{unname(g.Name, obj)}
	case verdict.Suspended:
		if g.Object == nil {
			return nil
		}
		return []Remedy{{
			fmt.Sprintf(`kubectl patch gate %s -n %s --type merge -p '{"spec":{"suspend":false}}'`, g.Object.Name, g.Object.Namespace),
			"makes the controller reconcile the gate again",
		}}
	case verdict.Closed:
		return k.open(g.Object, "releases the targets of the gate")
	default:
		return nil
	}
}

// open returns the commands that open a closed Gate. It checks in memory whether an open request would open it.
func (k Cluster) open(g *v1alpha1.Gate, done string) []Remedy {
	if g.RequiredApprovals() > 0 {
		return k.openApproved(g, done)
	}
	asked := k.requested(g)
	d := gate.NewSnapshot(asked, k.Calendars).Decide(k.Now) // a request takes precedence over all exceptions
	if d.State == v1alpha1.StateOpened {
		flags, _ := OpenFlags(g)
		return []Remedy{{k.onGate("open", g, flags), done + k.lasts(g, asked)}}
	}
	for i := range d.Broken {
		if b := &d.Broken[i]; d.Reason == v1alpha1.ClosePeriodReason && b.Period == d.By {
			return []Remedy{{fmt.Sprintf("kubectl get configmap %s -n %s -o yaml", b.Name, b.Namespace),
				fmt.Sprintf("shows the calendar of its close period %s, which has override: Deny and closes all the time until the calendar is fixed: key %s: %s", d.By, b.Key, b.Cause)}}
		}
	}
	edit := fmt.Sprintf("kubectl edit gate %s -n %s", g.Name, g.Namespace)
	switch d.Reason {
	case v1alpha1.InvalidSpecReason:
		return []Remedy{{edit, "lets you fix its spec, which is invalid: the gate does not open until then"}}
	case v1alpha1.ClosePeriodReason:
		return []Remedy{{edit, fmt.Sprintf("lets you change its close period %s, which has override: Deny: no request or exception opens the gate before the period ends", d.By)}}
	case v1alpha1.DependencyNotReadyReason:
		return dependencyRemedies(g)
	}
	return []Remedy{{k.onGate("status", g, ""), "shows why a request does not open it: " + d.Message}}
}

// openApproved returns the commands that open a Gate that requires approvals: a request, unless there is already one, and its approval by
// other users.
func (k Cluster) openApproved(g *v1alpha1.Gate, done string) []Remedy {
	free := g.DeepCopy()
	free.Spec.Approvals = nil
	opens := k.open(free, done)
	if flags, _ := OpenFlags(g); opens[0].Command != k.onGate("open", g, flags) {
		return opens
	}
	approve := k.onGate("approve", g, "")
	approve = strings.Replace(approve, "approve ", "approve gate/", 1)
	_, waiting := ledger.RequestsAt(g, k.Now)
	waiting = slices.DeleteFunc(waiting, func(r v1alpha1.AcceptedRequest) bool { return r.State != v1alpha1.RequestWaiting })
	if len(waiting) == 0 {
		opens[0].Effect = fmt.Sprintf("requests it; once other users have approved it (%d, with %s) it %s", g.RequiredApprovals(), approve, opens[0].Effect)
		return opens
	}
	var all []Remedy
	for _, r := range waiting {
		all = append(all, Remedy{approve, fmt.Sprintf("approves the open request of %s, which waits for %d more; after the last it %s", r.RequestedBy, ledger.Lacks(g, &r), done)})
	}
	return all
}

// lasts describes how long a Gate stays open after a request, and which close requests the request ends.
func (k Cluster) lasts(g, asked *v1alpha1.Gate) string {
	_, text := OpenFlags(g)
	text = " for " + text
	after := gate.NewSnapshot(asked, k.Calendars).Decide(k.Now.Add(openFor(g) + time.Second))
	if after.State == v1alpha1.StateOpened {
		text += ", and after that"
	}
	inForce, _ := ledger.RequestsAt(g, k.Now)
	for _, r := range inForce {
		if r.Action != v1alpha1.RequestClose {
			continue // with targets
		}
		text += ". It ends the close request of " + cmp.Or(r.RequestedBy, "an unknown user")
		if r.Until != nil {
			text += " until " + r.Until.UTC().Format(time.RFC3339)
		}
		if r.Message != "" {
			text += ": " + r.Message
		}
	}
	return text
}

// requested returns a copy of a Gate with the suggested open request.
func (k Cluster) requested(g *v1alpha1.Gate) *v1alpha1.Gate {
	g = g.DeepCopy()
	if g.Annotations == nil {
		g.Annotations = map[string]string{}
	}
	at := k.Now.Truncate(time.Second)
	g.Annotations[v1alpha1.OpenRequestedAtAnnotation] = ledger.FormatRequest(at, &v1alpha1.Duration{Duration: openFor(g)})
	gate.ApplyRequests(g, ledger.Unstamped, k.Now)
	return g
}

// dependencyRemedies returns commands that show the dependencies that keep a Gate closed.
func dependencyRemedies(g *v1alpha1.Gate) []Remedy {
	var all []Remedy
	for _, w := range g.Status.Dependencies {
		if !w.Ready {
			effect := "shows why it is not ready: the gate depends on it, and opens once it is ready"
			if w.Message != "" {
				effect += " (" + w.Message + ")"
			}
			all = append(all, Remedy{fmt.Sprintf("kubectl describe %s %s -n %s", strings.ToLower(w.Kind), w.Name, w.Namespace), effect})
		}
	}
	return all
}

// unname returns the command that removes the name of a Gate from the annotation by which an object refers to Gates.
func unname(name string, obj *target.Object) Remedy {
	rest := slices.DeleteFunc(verdict.NamedBy(&obj.Unstructured), func(n string) bool { return n == name })
	for i := range rest {
		rest[i] = Short(rest[i], obj.GetNamespace())
	}
	value, overwrite := "-", ""
	if len(rest) > 0 {
		value, overwrite = "="+strings.Join(rest, ","), " --overwrite"
	}
	return Remedy{
		fmt.Sprintf("kubectl annotate %s %s -n %s%s %s%s", resourceOf(obj.GetKind(), obj.GroupVersionKind().Group), obj.GetName(), obj.GetNamespace(),
			overwrite, v1alpha1.GatesAnnotation, value),
		"removes it from the annotation. If the annotation is in Git, change it there",
	}
}

// onGate returns a command of the plugin with a Gate as its argument.
func (k Cluster) onGate(action string, g *v1alpha1.Gate, flags string) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s -n %s %s", k.Command, action, g.Name, g.Namespace, flags))
}

// resume returns the command that ends a suspension by others.
func (e *Explanation) resume() Remedy {
	effect := "ends the suspension of " + e.owners()
	if slices.ContainsFunc(e.Owners, func(o Owner) bool { return o.Manager == "kustomize-controller" }) {
		effect += fmt.Sprintf(". Flux applies it again: remove %s from Git", fieldOf(e.Target))
	}
	adapter, _ := target.For(e.Target.APIVersion, e.Target.Kind)
	if _, renews := adapter.(target.Renewer); renews {
		return Remedy{fmt.Sprintf("kubectl edit certificate %s -n %s", e.Target.Name, e.Target.Namespace), "lets you remove spec.renewal, which " + e.owners() + " has set"}
	}
	return Remedy{command("resume", e.Target), effect}
}

// addedOf returns the kind of an object if it is an added kind. Otherwise, it returns false.
func addedOf(ref Ref) (target.Kind, bool) {
	return target.Added(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind())
}

// fieldOf returns the field that suspends an object.
func fieldOf(ref Ref) string {
	if kind, ok := addedOf(ref); ok {
		return kind.Field
	}
	return "spec.suspend"
}

// command returns the command that suspends or resumes an object. It is a command of the Flux CLI, or a patch for kinds that the Flux CLI
// does not support.
func command(action string, ref Ref) string {
	kind, ok := addedOf(ref)
	if !ok {
		return fluxCommand(action, ref)
	}
	value := "null"
	if action == "suspend" {
		value = "true"
	}
	return fmt.Sprintf(`kubectl patch %s %s -n %s --type merge -p '{"spec":{"%s":%s}}'`,
		resourceOf(kind.Kind, kind.Group), ref.Name, ref.Namespace, strings.TrimPrefix(kind.Field, "spec."), value)
}

// fluxKinds maps kinds to their names in the Flux CLI.
var fluxKinds = map[string]string{
	sourcev1.GitRepositoryKind: "source git", sourcev1.OCIRepositoryKind: "source oci", sourcev1.BucketKind: "source bucket",
	sourcev1.HelmRepositoryKind: "source helm", sourcev1.HelmChartKind: "source chart",
	imagev1.ImageRepositoryKind: "image repository", imagev1.ImagePolicyKind: "image policy", automationv1.ImageUpdateAutomationKind: "image update",
}

// fluxCommand returns a command of the Flux CLI for an object.
func fluxCommand(action string, ref Ref) string {
	kind, ok := fluxKinds[ref.Kind]
	if !ok {
		kind = strings.ToLower(ref.Kind)
	}
	return fmt.Sprintf("flux %s %s %s -n %s", action, kind, ref.Name, ref.Namespace)
}

func resourceOf(kind, group string) string { return strings.ToLower(kind) + "." + group }
