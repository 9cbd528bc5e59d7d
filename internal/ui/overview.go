package ui

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// overviewPage is what the first page shows.
type overviewPage struct {
	Axis   axis
	Groups []group
	// Shown and All are how many Gates there are, with and without the filter.
	Shown, All int
	// Opened and Closed are how many of those that are shown.
	Opened, Closed int
	Namespaces     []string
	Notes          []string
}

// group has the Gates of a namespace, or all of them.
type group struct {
	Namespace string
	Rows      []row
}

// row is a Gate on the first page.
type row struct {
	Gate  *v1alpha1.Gate
	State string
	// Why says in a few words why, and Until when that ends.
	Why   string
	Until *v1alpha1.Transition
	Bar   bar
}

func (h *handler) overview(r *request) (any, error) {
	keep, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	known, err := h.Reader.Gates(r.Context(), "")
	if err != nil {
		return nil, err
	}
	report, _, err := known.Set.Preview(r.view.Range)
	if err != nil {
		return nil, err
	}
	page := overviewPage{Axis: axisOf(r.view), All: len(known.Gates), Notes: known.Notes}
	byNamespace := map[string][]row{}
	for i, g := range known.Gates {
		page.Namespaces = append(page.Namespaces, g.Namespace)
		made := rowOf(g, r.view)
		if !keep(g, made) {
			continue
		}
		made.Bar = barOf(report.Gates[i], r.view)
		page.Shown++
		switch made.State {
		case string(v1alpha1.StateOpened):
			page.Opened++
		case string(v1alpha1.StateClosed):
			page.Closed++
		}
		byNamespace[g.Namespace] = append(byNamespace[g.Namespace], made)
	}
	slices.Sort(page.Namespaces)
	page.Namespaces = slices.Compact(page.Namespaces)
	for _, namespace := range page.Namespaces {
		if rows := byNamespace[namespace]; len(rows) > 0 {
			slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.Gate.Name, b.Gate.Name) })
			page.Groups = append(page.Groups, group{namespace, rows})
		}
	}
	return page, nil
}

// rowOf says what a Gate is.
func rowOf(g *v1alpha1.Gate, v view) row {
	made := row{Gate: g, State: "unknown", Why: "nobody has decided yet"}
	if last := g.Status.LastTransition; last != nil && g.Status.ObservedGeneration > 0 {
		made.State, made.Why = string(last.State), label(preview.Cause{State: string(last.State), Reason: last.Reason, By: last.By})
	}
	if next := g.Status.NextTransition; next != nil && next.At.After(v.Now) {
		made.Until = next
	}
	return made
}

// filterOf returns which Gates the address asks for.
func filterOf(r *request) (func(*v1alpha1.Gate, row) bool, error) {
	query := r.URL.Query()
	selector, err := labels.Parse(query.Get("labels"))
	if err != nil {
		return nil, badf("labels=%s: %s", query.Get("labels"), err)
	}
	text, state, namespace := strings.ToLower(query.Get("text")), query.Get("state"), query.Get("namespace")
	return func(g *v1alpha1.Gate, of row) bool {
		return selector.Matches(labels.Set(g.Labels)) && cmp.Or(namespace, g.Namespace) == g.Namespace && cmp.Or(state, of.State) == of.State &&
			strings.Contains(strings.ToLower(g.Namespace+"/"+g.Name+" "+of.Why), text)
	}, nil
}
