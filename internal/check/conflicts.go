package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/timetable"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// ahead is the length of the range to search for conflicts, starting now.
const ahead = 30 * 24 * time.Hour

// pair is a pair of Gates, sorted by name.
type pair struct{ a, b *v1alpha1.Gate }

// Inputs contains the other objects that affect when Gates are open.
type Inputs struct {
	Exceptions []*v1alpha1.GateException
	Calendars  timetable.Calendars
}

// Conflicts finds pairs of Gates that govern the same object and both open in the next 30 days, but are never open at the same time.
func Conflicts(gates []v1alpha1.Gate, with Inputs, objects []*unstructured.Unstructured, scope verdict.Scope, now time.Time) (findings []Finding) {
	shared := map[pair][]string{}
	index := newIndex(gates, scope)
	for _, obj := range objects {
		governs := index.of(obj)
		for i, a := range governs {
			for _, b := range governs[i+1:] {
				shared[pair{a, b}] = append(shared[pair{a, b}], nameOf(obj))
			}
		}
	}
	open := map[*v1alpha1.Gate][]schedule.Interval{}
	of := func(g *v1alpha1.Gate) []schedule.Interval {
		if _, ok := open[g]; !ok {
			open[g] = with.open(g, now)
		}
		return open[g]
	}
	for p, names := range shared {
		if a, b := of(p.a), of(p.b); len(a) > 0 && len(b) > 0 && !overlap(a, b) {
			slices.Sort(names)
			found := Finding{
				Error, gateName(p.a), fmt.Sprintf("it and %s govern %s, and are never open at the same time in the next 30 days: the object stays held", gateName(p.b), some(names)),
				"change the schedule of one Gate, or remove the object from its targets",
			}
			if p.a.Audits() || p.b.Audits() {
				found.Severity = Warning
				found.Message += " once none of them has mode Audit"
			}
			findings = append(findings, found)
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Object+a.Message, b.Object+b.Message) })
	return findings
}

// index maps the namespaces of targets to Gates, to find the Gates that may govern an object.
type index struct {
	verdict.Scope
	byNamespace map[string][]*v1alpha1.Gate
	byName      map[string]*v1alpha1.Gate
}

func newIndex(gates []v1alpha1.Gate, scope verdict.Scope) index {
	in := index{scope, map[string][]*v1alpha1.Gate{}, map[string]*v1alpha1.Gate{}}
	for i := range gates {
		g := &gates[i]
		in.byName[g.Namespace+"/"+g.Name] = g
		for _, ref := range g.Spec.Targets {
			namespace := cmp.Or(ref.Namespace, g.Namespace)
			if ref.SpansNamespaces() {
				namespace = v1alpha1.AnyName
			}
			if !slices.Contains(in.byNamespace[namespace], g) {
				in.byNamespace[namespace] = append(in.byNamespace[namespace], g)
			}
		}
	}
	return in
}

// of returns the Gates that govern an object, sorted by name.
func (in index) of(obj *unstructured.Unstructured) (found []*v1alpha1.Gate) {
	candidates := slices.Concat(in.byNamespace[obj.GetNamespace()], in.byNamespace[v1alpha1.AnyName])
	for _, name := range verdict.NamedBy(obj) {
		if g := in.byName[name]; g != nil {
			candidates = append(candidates, g)
		}
	}
	for _, g := range candidates {
		if !slices.Contains(found, g) && in.GovernsInReach(g, obj) {
			found = append(found, g)
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.Gate) int { return cmp.Compare(gateName(a), gateName(b)) })
	return found
}

// open returns when a Gate is open in the next 30 days. It returns nil if the spec is invalid or a calendar cannot be read.
func (s Inputs) open(g *v1alpha1.Gate, now time.Time) (open []schedule.Interval) {
	snapshot := gate.NewSnapshot(g, s.Calendars, s.Exceptions...)
	intervals, errs := snapshot.Intervals(now, now.Add(ahead))
	if len(errs) > 0 || len(snapshot.Broken()) > 0 {
		return nil
	}
	for i := range intervals {
		if i.State == schedule.Opened {
			open = append(open, i)
		}
	}
	return open
}

// overlap returns whether two sorted lists of intervals have an instant in common.
func overlap(a, b []schedule.Interval) bool {
	for len(a) > 0 && len(b) > 0 {
		if a[0].From.Before(b[0].Until) && b[0].From.Before(a[0].Until) {
			return true
		}
		if a[0].Until.Before(b[0].Until) {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return false
}
