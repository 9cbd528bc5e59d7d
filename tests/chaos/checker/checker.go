package checker

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// World is the state of the API server.
type World struct {
	Gates      []v1alpha1.Gate
	Exceptions []v1alpha1.GateException
	Targets    []unstructured.Unstructured
	// Locks are the GateLocks, if they are installed.
	Locks  []unstructured.Unstructured
	Events []corev1.Event
	// Kinds has the installed kinds of targets.
	Kinds map[string]bool
}

// check is one check of a World.
type check struct {
	World
	log     *Log
	history *History
	now     time.Time
	gates   map[string]*gate
	wrong   []string
}

// Check returns violations of the promises of the controller. Call it after the controller had time to settle.
func Check(world World, log *Log, history *History, now time.Time) []string {
	c := newCheck(world, log, history, now)
	c.wrong = append(c.wrong, history.Review(now)...)
	c.existence()
	for _, g := range c.gates {
		c.gate(g)
	}
	for i := range world.Targets {
		c.target(&world.Targets[i])
	}
	for i := range world.Exceptions {
		c.exception(&world.Exceptions[i])
	}
	c.events()
	slices.Sort(c.wrong)
	return c.wrong
}

// SmallMargin is the safety margin of Gates without the default one.
const SmallMargin = 30 * time.Minute

// NextEdge returns the next instant at which a state changes without a write, zero if there is none.
func NextEdge(world World, log *Log, history *History, now time.Time) time.Time {
	next := time.Time{}
	for _, g := range newCheck(world, log, history, now).gates {
		if edges := g.edges(now); len(edges) > 0 && (next.IsZero() || edges[0].Before(next)) {
			next = edges[0]
		}
	}
	for i := range world.Exceptions {
		e := &world.Exceptions[i] // including names of missing Gates
		for _, at := range []time.Time{e.Spec.ValidFrom.Time, e.Spec.ValidUntil.Time} {
			if at.After(now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	for i := range world.Targets {
		for _, margin := range []time.Duration{defaultMargin, SmallMargin} {
			if deadline, ok := renewal(&world.Targets[i], margin); ok && deadline.After(now) && (next.IsZero() || deadline.Before(next)) {
				next = deadline
			}
		}
	}
	return next
}

func newCheck(world World, log *Log, history *History, now time.Time) *check {
	c := &check{World: world, log: log, history: history, now: now, gates: map[string]*gate{}}
	for i := range world.Gates {
		g := &gate{Gate: world.Gates[i], exceptions: world.Exceptions}
		g.requests = history.requestsReportedBy(g.UID).accepted
		g.exceptions = slices.DeleteFunc(slices.Clone(world.Exceptions), func(e v1alpha1.GateException) bool {
			return e.Spec.GateRef.Name != g.Name || e.Namespace != g.Namespace
		})
		c.gates[g.key()] = g
	}
	return c
}

func (c *check) fail(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// existence compares the existing objects with those that users and Git have created and not deleted.
func (c *check) existence() {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	there := map[types.UID]bool{}
	see := func(uid types.UID, what string, going bool) {
		there[uid] = true
		if _, ok := c.log.exists[uid]; !ok || going {
			c.fail("%s exists, but no client created it, or a client deleted it", what)
		}
	}
	for i := range c.Gates {
		see(c.Gates[i].UID, "Gate "+c.Gates[i].Name, !c.Gates[i].DeletionTimestamp.IsZero())
	}
	for i := range c.Exceptions {
		see(c.Exceptions[i].UID, "GateException "+c.Exceptions[i].Name, !c.Exceptions[i].DeletionTimestamp.IsZero())
	}
	for i := range c.Targets {
		see(c.Targets[i].GetUID(), name(&c.Targets[i]), c.Targets[i].GetDeletionTimestamp() != nil)
	}
	for uid, what := range c.log.exists {
		if !there[uid] {
			c.fail("%s does not exist, but no client deleted it", what)
		}
	}
}

// exception checks the status of a GateException.
func (c *check) exception(e *v1alpha1.GateException) {
	g := c.gates[e.Namespace+"/"+e.Spec.GateRef.Name]
	applies := g != nil && !g.Spec.Suspend && g.DeletionTimestamp.IsZero() &&
		slices.ContainsFunc(g.applying(c.now), func(a *v1alpha1.GateException) bool { return a.UID == e.UID })
	want := map[bool]string{true: v1alpha1.InForceReason}[applies] // the reason may differ if it does not apply
	if expired := !c.now.Before(e.Spec.ValidUntil.Time); expired {
		applies, want = false, v1alpha1.ExpiredReason
	}
	active := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ActiveCondition)
	switch {
	case active == nil:
		c.fail("GateException %s/%s has no condition Active", e.Namespace, e.Name)
	case (active.Status == metav1.ConditionTrue) != applies, want != "" && active.Reason != want, want == "" && isDecided(active.Reason):
		c.fail("GateException %s/%s: Active is %s with reason %s, want %t with reason %q", e.Namespace, e.Name, active.Status, active.Reason, applies, want)
	}
	if e.Status.ObservedGeneration != e.Generation {
		c.fail("GateException %s/%s: generation %d was observed, not %d", e.Namespace, e.Name, e.Status.ObservedGeneration, e.Generation)
	}
}

// isDecided returns whether a reason of Active is for exceptions that apply or have ended.
func isDecided(reason string) bool {
	return reason == v1alpha1.InForceReason || reason == v1alpha1.ExpiredReason
}

// events checks that the events about one request have the same token.
func (c *check) events() {
	const prefix = "gating.toolkit.fluxcd.io/"
	tokens := map[string]string{}
	for i := range c.Events {
		e := &c.Events[i]
		if (e.Reason != v1alpha1.RequestAcceptedReason && e.Reason != v1alpha1.RequestPlannedReason) || e.InvolvedObject.Kind != v1alpha1.GateKind {
			continue
		}
		request := string(e.InvolvedObject.UID) + " " + e.Message
		token := e.Annotations[prefix+"token"]
		if before, ok := tokens[request]; ok && before != token {
			c.fail("gate %s: two notifications of %q", e.InvolvedObject.Name, e.Message)
		}
		tokens[request] = token
	}
}
