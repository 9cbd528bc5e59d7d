package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
)

// reads counts the reads from the API server, past all caches, as "verb Kind".
type reads struct {
	mu  sync.Mutex
	log map[string]int
}

func (r *reads) note(verb string, gvk schema.GroupVersionKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log[verb+" "+strings.TrimSuffix(gvk.Kind, "List")]++
}

// client returns a client whose reads are counted.
func (r *reads) client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			gvk, err := apiutil.GVKForObject(obj, c.Scheme())
			if err != nil {
				return err
			}
			r.note("get", gvk)
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := apiutil.GVKForObject(list, c.Scheme())
			if err != nil {
				return err
			}
			r.note("list", gvk)
			return c.List(ctx, list, opts...)
		},
	})
}

// take returns the reads since the last call.
func (r *reads) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.log
	r.log = map[string]int{}
	return taken
}

// idle is a world in which nothing will change for hours.
type idle struct {
	*world
	reads      *reads
	gates      []*v1alpha1.Gate
	exceptions []*v1alpha1.GateException
	// again has the delay of the next reconciliation of each Gate.
	again map[string]time.Duration
}

// newIdle returns a world with Gates of all forms, including some with failures.
func newIdle(t *testing.T) *idle {
	t.Helper()
	i := &idle{world: locking(t), reads: &reads{log: map[string]int{}}, again: map[string]time.Duration{}}
	i.APIReader = i.reads.client(cluster.Client)
	i.restart()
	for _, name := range []string{"held", "shared", "paced", "resumed", "watching", "staging", "excepted"} {
		i.NewKustomization(name, nil)
	}
	foreign := i.NewKustomization("foreign", nil)
	i.Suspend(foreign)
	i.name(i.NewKustomization("naming", nil), i.Namespace+"/held")
	i.name(i.NewKustomization("unheard", nil), i.Namespace+"/missing")
	i.certificate("deferred", nil)
	i.activating("web")
	i.stage(i.readCertificate("web"), i.keyPair(-time.Hour, 90*day))

	closed, opened := v1alpha1.StateClosed, v1alpha1.StateOpened
	of := func(names ...string) (refs []v1alpha1.TargetReference) {
		for _, name := range names {
			refs = append(refs, named(name))
		}
		return refs
	}
	add := func(name string, spec v1alpha1.GateSpec) *v1alpha1.Gate {
		g := i.Gate(name, spec)
		i.gates = append(i.gates, g)
		return g
	}
	add("held", v1alpha1.GateSpec{Default: closed, Targets: of("held", "shared")})
	add("other", v1alpha1.GateSpec{Default: closed, Targets: of("shared", "foreign")})
	add("in-trouble", v1alpha1.GateSpec{Default: closed, Targets: append(of("held"), v1alpha1.TargetReference{Kind: "Secret", Name: "*"})})
	add("invalid", v1alpha1.GateSpec{Default: closed, Targets: of("held"), ClosePeriods: []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "never", Schedule: ptr.To("0 0 31 4-6/2 *"), Duration: duration(time.Hour)}}}})
	add("watching", v1alpha1.GateSpec{Default: opened, Targets: of("watching"), DependsOn: []v1alpha1.DependencyReference{staging()}})
	add("production", v1alpha1.GateSpec{Default: closed, Targets: of("excepted"), OpenPeriods: []v1alpha1.Period{{Name: "nights", Start: ptr.To("22:00"), End: ptr.To("05:00")}}})
	add("suspended", v1alpha1.GateSpec{Default: closed, Suspend: true, Targets: of("held")})
	add("empty", v1alpha1.GateSpec{Default: opened, Targets: of("held", "nothing")})
	i.appliedBy(add("own", v1alpha1.GateSpec{Default: opened, Targets: of("watching")}), "kustomize", "watching")
	i.gates = append(i.gates, i.nights(certificates), i.activationGate(-hours(1)))
	requested := add("requested", v1alpha1.GateSpec{Default: closed, Window: duration(day), Targets: of("paced"), Release: &v1alpha1.ReleasePolicy{PerMinute: 60}})
	respects := add("respects", v1alpha1.GateSpec{Default: closed, Mode: v1alpha1.ModeLenient, Targets: of("resumed")})
	i.exceptions = []*v1alpha1.GateException{
		i.exception("active", openingIt, -hours(1), hours(48)), i.exception("later", closingIt, hours(72), hours(80)),
		i.exception("over", replacingIt, -hours(9), -hours(8)),
	}
	i.lookAtAll("the beginning")
	i.Open(requested, start)
	i.Resume(i.Reload(inGit(i.Namespace, "resumed", nil)))
	i.lookAtAll("a request, and a resume")
	i.In(time.Minute)
	for range 4 {
		i.lookAtAll("it settles")
	}
	if respects.Status.Targets.Held != 0 || requested.Status.Release == nil || requested.Status.Release.NextAt != nil {
		t.Fatalf("not as it is meant to be: %+v, %+v", respects.Status.Targets, requested.Status.Release)
	}
	return i
}

// lookAtAll reconciles everything once.
func (i *idle) lookAtAll(when string) {
	i.Helper()
	for _, g := range i.gates {
		result, err := i.Try(g)
		if err != nil {
			i.Fatalf("%s: gate %s: %v", when, g.Name, err)
		}
		i.again[g.Name] = result.RequeueAfter
	}
	for _, e := range i.exceptions {
		i.reportOn(e)
	}
	i.missing(i.Namespace, "missing")
}

// expectNothing checks that since the last call, nothing was written, no event was emitted, and only the wanted reads were sent.
func (i *idle) expectNothing(when string, want map[string]int) {
	i.Helper()
	if writes := i.Writes.Take(""); len(writes) > 0 {
		i.Errorf("%s: writes %q", when, writes)
	}
	if events := i.Events.Take(""); len(events) > 0 {
		i.Errorf("%s: events %q", when, events)
	}
	for _, g := range i.gates {
		most := g.GetInterval() - i.Clock.Now().Sub(start)%g.GetInterval()
		if next := g.Status.NextTransition; next != nil {
			most = min(most, next.At.Sub(i.Clock.Now()))
		}
		if again := i.again[g.Name]; again < most && !g.Spec.Suspend {
			i.Errorf("%s: gate %s is looked at again after %s, its interval is %s", when, g.Name, again, g.GetInterval())
		}
	}
	if got := i.reads.take(); !maps.Equal(got, want) {
		i.Errorf("%s: reads %v, want %v", when, got, want)
	}
}

// idleReads are the reads while everything is reconciled once. docs/operate/scaling.md explains them.
var idleReads = map[string]int{
	"get Secret": 4, // the staged and the live one, for each of the two Gates of the Certificate
	"list Gate":  2, // for each of them: all Gates that may prevent the activation
	"get Gate":   1, // a Gate that a target refers to and that does not exist
	// A dependency that was read more than ten minutes ago.
	"get Kustomization": 1,
}

func TestSettledClusterCausesNoWrites(t *testing.T) {
	t.Parallel()
	i := newIdle(t)
	i.Writes.Take("")
	i.Events.Take("")
	i.reads.take()
	for _, after := range []time.Duration{hours(1), hours(6)} {
		i.In(after)
		i.lookAtAll(fmt.Sprint(after))
		i.expectNothing(fmt.Sprint("after ", after), idleReads)
	}

	// A new process has no state but that in the API server.
	i.restart()
	i.reads.take()
	i.lookAtAll("the restart")
	reads := maps.Clone(idleReads)
	reads["get Kustomization"]++ // the applier of a Gate is checked once
	i.expectNothing("after a restart", reads)
	kinds, accidents := map[string]bool{}, map[string]bool{}
	for _, g := range i.gates {
		accidents[fmt.Sprint(view.HasEmptyReference(g), conditions.IsTrue(g, v1alpha1.HoldsItsOwnSourceCondition))] = true
		kinds[opened(g)] = true
	}
	if len(accidents) < 3 {
		t.Errorf("the accidents are alike: %v", accidents)
	}
	if len(kinds) < 6 {
		t.Errorf("all alike: %q", slices.Collect(maps.Keys(kinds)))
	}
}
