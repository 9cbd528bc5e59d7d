package ui

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"html/template"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// overviewPage is the content of the overview.
type overviewPage struct {
	Axis   axis
	Groups []group
	// Shown and All are the numbers of Gates with and without the filter.
	Shown, All int
	// Opened and Closed are the numbers of shown Gates in these states.
	Opened, Closed int
	Namespaces     []string
	Notes          []string
}

// group contains the Gates of a namespace, or all Gates.
type group struct {
	Namespace string
	Rows      []row
}

// row is a Gate in the overview.
type row struct {
	Gate  *v1alpha1.Gate
	State string
	// Why is the reason in a few words, and Until is the time when that reason ends.
	Why string
	// Overlaid describes how many targets have another state, empty if there are none.
	Overlaid string
	Until    *v1alpha1.Transition
	// Drawn is the bar of the Gate.
	Drawn template.HTML
}

func (h *handler) overview(r *request) (c content, err error) {
	keep, err := filterOf(r)
	if err != nil {
		return c, err
	}
	known, err := r.viewer.Gates(r.Context(), "", "")
	if err != nil {
		return c, err
	}
	return content{known.key(r), func() (any, error) { return h.rows(r.Context(), known, keep, r.view) }}, nil
}

// key returns the cache key of the overview. Viewers who get the same page share a key, which changes every minute. It is empty if the
// page must not be cached.
func (k *Visible) key(r *request) string {
	if k.Version == nil {
		return ""
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %t %d %q\n", r.view.query.Encode(), r.view.Bare, r.view.Now.Unix()/60, k.Notes)
	for _, g := range k.Gates {
		_, _ = fmt.Fprintf(sum, "%q\n", k.Version(g))
	}
	return string(sum.Sum(nil))
}

// rows returns the content of the overview, with the Gates that keep returns true for.
func (h *handler) rows(ctx context.Context, known *Visible, keep func(*v1alpha1.Gate, row) bool, v view) (any, error) {
	page := overviewPage{Axis: axisOf(v), All: len(known.Gates), Notes: known.Notes}
	var kept []row
	for _, g := range known.Gates {
		page.Namespaces = append(page.Namespaces, g.Namespace)
		if made := rowOf(g, v); keep(g, made) {
			kept = append(kept, made)
		}
	}
	bars, err := h.bars(ctx, known, kept, v)
	if err != nil {
		return nil, err
	}
	byNamespace := map[string][]row{}
	for _, made := range kept {
		g := made.Gate
		made.Drawn = bars[g.Namespace+"/"+g.Name]
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

// bars returns the drawings of the rows by the namespace/name of the Gate. It draws only bars that are not cached.
func (h *handler) bars(ctx context.Context, known *Visible, rows []row, v view) (map[string]template.HTML, error) {
	drawn, missing := map[string]template.HTML{}, map[string]string{}
	for _, made := range rows {
		name, key := made.Gate.Namespace+"/"+made.Gate.Name, ""
		if known.Version != nil {
			key = fmt.Sprintf("%s %d %d %s %t", known.Version(made.Gate), v.Range.From.Unix(), v.Range.Until.Unix(), v.Zone, v.Bare)
		}
		if before, ok := h.drawn.get(key); ok {
			drawn[name] = before
		} else {
			missing[name] = key
		}
	}
	report, _, err := known.Set.Within(ctx, preview.PageLookups).Brief().Without(func(obj metav1.Object) bool {
		name := obj.GetNamespace() + "/" + obj.GetName()
		if e, ok := obj.(*v1alpha1.GateException); ok {
			name = e.Namespace + "/" + e.Spec.GateRef.Name
		}
		_, is := missing[name]
		return !is
	}).Preview(v.Range)
	if err != nil {
		return nil, err
	}
	for _, t := range report.Gates {
		if v.Bare {
			t = bareOf(t)
		}
		svg := barOf(t, v).SVG()
		drawn[t.Gate] = svg
		if key := missing[t.Gate]; key != "" {
			h.drawn.put(key, svg, len(svg))
		}
	}
	return drawn, nil
}

// rowOf returns the row of a Gate.
func rowOf(g *v1alpha1.Gate, v view) row {
	made := row{Gate: g, Overlaid: gate.Overlaid(g), State: unknown, Why: "the controller has not decided yet"}
	if last := g.Status.LastTransition; last != nil && g.Status.ObservedGeneration > 0 {
		made.State, made.Why = string(last.State), label(preview.Cause{State: string(last.State), Reason: last.Reason, Period: last.Period, Exception: last.Exception})
	}
	if v.Bare {
		made.Why, made.Overlaid = "", ""
	}
	if next := g.Status.NextTransition; next != nil && next.At.After(v.Now) {
		made.Until = next
	}
	return made
}

// filterOf parses the filter in the URL into a predicate.
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
