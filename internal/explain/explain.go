package explain

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/timetable"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Cluster contains the objects of a cluster that the user is permitted to read.
type Cluster struct {
	// Gates are the Gates that the user is permitted to read.
	Gates []*v1alpha1.Gate
	// Namespaces are the namespaces for which Gates is complete, nil for all namespaces.
	Namespaces []string
	// Calendars are the calendars of the Gates.
	Calendars timetable.Calendars
	// Absent are the names of Gates in other namespaces, as namespace/name, that are known not to exist.
	Absent []string
	// Labels returns the labels of a namespace.
	Labels func(namespace string) map[string]string
	// Own is the namespace of the controller.
	Own string
	// Now is the instant of the explanation.
	Now time.Time
	// Command is the command that runs the plugin, such as kubectl gate.
	Command string
}

// State is the state of an object.
type State string

// The states of an object.
const (
	// Free means that nothing prevents the reconciliation of the object.
	Free State = "free"
	// Held means that Gates hold the object.
	Held State = "held"
	// Overridden means that Gates hold the object, and that the lock has restored the hold after another client removed it.
	Overridden State = "overridden"
	// Suspended means that a user or Git has suspended the object. Gates do not change it.
	Suspended State = "suspended"
	// Resumed means that another client has resumed the object, and that the closed Gates of the object permit that.
	Resumed State = "resumed"
	// Exempt means that the object is not held although a Gate is closed.
	Exempt State = "exempt"
	// Passing means that Gates hold the object and permit one reconciliation.
	Passing State = "passing"
)

// IsHeld returns whether Gates hold the object.
func (s State) IsHeld() bool { return s == Held || s == Overridden }

// Ref identifies an object.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

// String returns the kind, the namespace and the name.
func (r Ref) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// RefOf returns the reference to an object.
func RefOf(obj *unstructured.Unstructured) Ref {
	return Ref{obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName()}
}

// Metadata contains the name of the object, in the form of Kubernetes object metadata.
type Metadata struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Explanation explains the state of an object, and what would change it.
type Explanation struct {
	Metadata Metadata `json:"metadata"`
	Target   Ref      `json:"target"`
	State    State    `json:"state"`
	// Becomes is the next state of the object, which it reaches soon, or once it has a release slot. It is empty if the state does not
	// change.
	Becomes State `json:"becomes,omitempty"`
	// Summary is a sentence about the state of the object. Notes contain further facts.
	Summary string   `json:"summary"`
	Notes   []string `json:"notes,omitempty"`
	// Gates are the Gates that govern the object or are named in its annotations, sorted by name.
	Gates []Gate `json:"gates"`
	// Owners are the other managers of the fields that are used to hold the object, for example spec.suspend.
	Owners []Owner `json:"owners,omitempty"`
	// Remedies are commands that would change the state. All of them are needed, because a held object is released only when all of its
	// Gates are open.
	Remedies []Remedy `json:"remedies,omitempty"`
	// Waiting is the waiting change while the object is held. It is missing if it was not
	// requested.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Incomplete is true if Gates that govern the object may be missing, because the user is not permitted to read the Gates of all
	// namespaces.
	Incomplete bool `json:"incomplete,omitempty"`

	// object and scope are the inputs of Names.
	object *unstructured.Unstructured
	scope  verdict.Scope
}

// Names returns whether a reference in a namespace names the object, for example one in spec.targets of an exception.
func (e *Explanation) Names(ref *v1alpha1.TargetReference, namespace string) bool {
	return e.object != nil && e.scope.Names(ref, namespace, e.object)
}

// Owner is a manager of a field that is used to hold an object.
type Owner struct {
	Manager string `json:"manager"`
	// At is the time when the manager last wrote. It is missing if unknown.
	At *metav1.Time `json:"at,omitempty"`
}

// Remedy is a command that changes the state of an object.
type Remedy struct {
	Command string `json:"command"`
	// Effect describes the effect of the command, and further steps.
	Effect string `json:"effect"`
}

// Explain explains the state of an object. The object must include its managed fields.
func Explain(obj *unstructured.Unstructured, k Cluster) Explanation {
	t := &target.Object{Unstructured: *obj.DeepCopy()}
	target.Trim(&t.Unstructured, verdict.Us)
	gates := k.about(t)
	r := verdict.Rule(verdict.Situation{Object: t, Gates: gates, Definition: definitionOf(t), Now: k.Now})
	e := Explanation{
		Metadata: Metadata{obj.GetNamespace(), obj.GetName()}, Target: RefOf(obj), State: stateOf(r), Gates: []Gate{}, Incomplete: k.Namespaces != nil,
		object: obj, scope: verdict.Scope{Labels: k.Labels, Own: k.Own},
	}
	for _, o := range target.OtherOwners(&t.Unstructured, verdict.Us) {
		e.Owners = append(e.Owners, Owner{o.Manager, timeOf(o.At)})
	}
	e.Becomes = becomes(e.State, r)
	for _, g := range gates {
		holds := slices.ContainsFunc(r.Verdict.Holders, func(h verdict.Gate) bool { return h.Name == g.Name })
		is := k.gate(g, t, holds && e.State != Suspended && e.State != Resumed)
		is.WouldHold = g.Audits && g.Would == verdict.Closed && r.Would(g, gates).Step.Hold
		e.Gates = append(e.Gates, is)
	}
	k.summarize(&e, r)
	if note := rollbackNote(obj); note != "" {
		e.Notes = append(e.Notes, note)
	}
	k.remedy(&e, r)
	return e
}

// about returns the Gates that concern an object, sorted by name.
func (k Cluster) about(t *target.Object) []verdict.Gate {
	var gates []verdict.Gate
	known := map[string]bool{}
	for _, g := range k.Gates {
		known[g.Namespace+"/"+g.Name] = true
		if about, ok := k.scope(g, t).About(g, &t.Unstructured, k.Now); ok {
			gates = append(gates, about)
		}
	}
	for _, name := range verdict.NamesOn(&t.Unstructured) {
		if !known[name] {
			gates = append(gates, k.without(name, t))
		}
	}
	slices.SortFunc(gates, func(a, b verdict.Gate) int { return strings.Compare(a.Name, b.Name) })
	return gates
}

// without returns the effect of a Gate that is not in k.Gates, because the Gate does not exist or the user is not permitted to read it.
// The effect is derived from the annotations of the object that name the Gate.
func (k Cluster) without(name string, t *target.Object) verdict.Gate {
	namespace, _, _ := strings.Cut(name, "/")
	named := slices.Contains(verdict.NamedBy(&t.Unstructured), name)
	switch {
	case k.Namespaces != nil && !slices.Contains(k.Namespaces, namespace) && !slices.Contains(k.Absent, name):
		return verdict.Gate{Name: name, Effect: verdict.OtherShard}
	case !named:
		return verdict.Gate{Name: name, Effect: verdict.Open}
	case namespace != t.GetNamespace() && isDenied(t):
		return verdict.Gate{Name: name, Effect: verdict.Denied}
	}
	return verdict.Gate{Name: name, Effect: verdict.Missing}
}

// scope returns the scope of references. It derives the flags of the controller from the conditions of the object and the status of the
// Gate.
func (k Cluster) scope(g *v1alpha1.Gate, t *target.Object) verdict.Scope {
	return verdict.Scope{Labels: k.Labels, Own: k.Own, Reaches: func(from, to string) bool {
		if from == t.GetNamespace() {
			return from == to || !isDenied(t)
		}
		return Reaches(g, &t.Unstructured)
	}}
}

// Reaches returns whether a Gate may govern an object. It returns false if the status of the Gate reports that its reference to the
// object is denied.
func Reaches(g *v1alpha1.Gate, obj *unstructured.Unstructured) bool {
	return g.Namespace == obj.GetNamespace() || !slices.ContainsFunc(g.Status.TargetFailures(), func(f v1alpha1.TargetFailure) bool {
		return f.Reason == v1alpha1.AccessDeniedReason && f.Kind == obj.GetKind() && (f.Namespace == obj.GetNamespace() || f.Namespace == v1alpha1.AnyName)
	})
}

func isDenied(t *target.Object) bool {
	approved := verdict.ApprovedOf(t)
	return approved != nil && approved.Reason == v1alpha1.AccessDeniedReason
}

// definitionOf returns the facts about the version of cert-manager that are visible in the conditions of
// a Certificate.
func definitionOf(t *target.Object) target.Definition {
	approved := verdict.ApprovedOf(t)
	unsupported := approved != nil && approved.Reason == v1alpha1.UnsupportedVersionReason
	return target.Definition{Spec: map[string]bool{"renewal": !unsupported}}
}

// stateOf returns the current state of an object.
func stateOf(r verdict.Ruling) State {
	switch r.Observed.State {
	case target.SuspendedByOthers:
		return Suspended
	case target.Overridden:
		return Overridden
	case target.Held, target.Locked:
		return Held
	case target.Passing:
		return Passing
	case target.Free:
	}
	switch r.Step.Outcome {
	case verdict.Resumed:
		return Resumed
	case verdict.Exempt:
		return Exempt
	case verdict.Free, verdict.Held, verdict.SuspendedByOthers, verdict.Passing:
	}
	return Free
}

// becomes returns the state of an object after the next step, given its current state. It is empty if the state does not change.
func becomes(is State, r verdict.Ruling) State {
	switch {
	case is.IsHeld() && r.Step.Outcome == verdict.Exempt:
		return Exempt
	case is.IsHeld() && r.Releases():
		return Free
	case (is == Free || is == Passing) && r.Step.Outcome == verdict.Held:
		return Held
	case is == Passing && r.Releases():
		return Free
	}
	return ""
}

func timeOf(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &metav1.Time{Time: at}
}
