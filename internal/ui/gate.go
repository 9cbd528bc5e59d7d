package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// Limits of the page for a Gate.
const (
	maxNext    = 10
	maxTargets = 200
	maxHistory = 50
	ahead      = 366 * 24 * time.Hour
)

// gatePage is the content of the page for a Gate.
type gatePage struct {
	row
	Axis axis
	Bar  bar
	// Only is the target whose timeline is shown, nil for that of the Gate.
	Only *explain.Ref
	// Message is the message of the condition Ready.
	Message string
	Next    []preview.Interval
	// InForce and Planned are the requests of the Gate.
	InForce, Planned []v1alpha1.AcceptedRequest
	Exceptions       []exception
	Targets          []Target
	// More is the number of targets that are not listed.
	More    int
	History []v1alpha1.HistoryEntry
	// Commands are commands that would change the Gate or show more.
	Commands []explain.Remedy
	YAML     string
	// Subscriptions are calendars that show the Gate.
	Subscriptions []Subscription
	Notes         []string
}

// exception is a GateException with the reason of its condition Active, the targets to which it is limited, and the number of approvals
// that it lacks.
type exception struct {
	*v1alpha1.GateException
	State   string
	Only    string
	Missing int
}

// one is a single Gate, with the inputs for its page.
type one struct {
	*v1alpha1.Gate
	known *Visible
	set   *preview.Set
	// bare is true if the timeline contains only states and times.
	bare bool
}

// one returns the Gate in the URL. It adds the time zone of the Gate to the zones of the view, and uses it if the URL selects it.
func (h *handler) one(r *request) (*one, error) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	known, err := r.viewer.Gates(r.Context(), namespace, name)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(known.Gates, func(g *v1alpha1.Gate) bool { return g.Namespace == namespace && g.Name == name })
	if i < 0 {
		return nil, Missing{Cause: fmt.Errorf("there is no gate %q in namespace %q, or you may not see it", name, namespace)}
	}
	g := &one{Gate: known.Gates[i], known: known, bare: r.view.Bare}
	g.set = known.Set.Without(func(obj metav1.Object) bool {
		switch obj := obj.(type) {
		case *v1alpha1.Gate:
			return obj.Namespace != namespace || obj.Name != name
		case *v1alpha1.GateException:
			return obj.Namespace != namespace || obj.Spec.GateRef.Name != name
		}
		return false
	})
	if zone, err := tz.Load(string(g.Spec.TimeZone)); err == nil && g.Spec.TimeZone != "" {
		if r.view, err = h.view(r, zone); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// limit limits the timelines to the target in the URL, and returns the target. It returns nil if there is none.
func (g *one) limit(r *request) (*explain.Ref, error) {
	text := r.view.Query("target")
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return nil, badf("target=%s: must have the form KIND/NAMESPACE/NAME", text)
	}
	e, err := r.viewer.Why(r.Context(), parts[0], parts[1], parts[2])
	if err != nil {
		return nil, err
	}
	name := g.Namespace + "/" + g.Name
	if !slices.ContainsFunc(e.Gates, func(of explain.Gate) bool { return of.Gate == name }) {
		return nil, Missing{Cause: fmt.Errorf("%s is not a target of gate %s", e.Target, name)}
	}
	g.set = g.set.ForTarget(e.Names)
	return &e.Target, nil
}

// timeline returns the intervals of the Gate, and warnings. For viewers without a token, it omits the causes and the warnings.
func (g *one) timeline(ctx context.Context, r preview.Range) (t preview.Timeline, warnings []string, err error) {
	report, found, err := g.set.Within(ctx, preview.PageLookups/2).Preview(r)
	if err != nil {
		return t, nil, err
	}
	if g.bare {
		return bareOf(report.Gates[0]), nil, nil
	}
	for _, warning := range found {
		warning.Object = "" // the page already shows the name
		warnings = append(warnings, warning.String())
	}
	return report.Gates[0], warnings, nil
}

func (h *handler) gate(r *request) (c content, err error) {
	g, err := h.one(r)
	if err != nil {
		return c, err
	}
	page := &gatePage{row: rowOf(g.Gate, r.view), Axis: axisOf(r.view), Notes: slices.Clone(g.known.Notes)}
	if page.Only, err = g.limit(r); err != nil {
		return c, err
	}
	if !r.view.Bare {
		err = page.read(r.Context(), r.viewer)
	}
	return content{make: func() (any, error) { return page, h.fill(r.Context(), page, g, r.view) }}, err
}

// read reads the details that are visible only to users who may get the whole Gate.
func (p *gatePage) read(ctx context.Context, reader Reader) error {
	targets, notes, err := reader.Targets(ctx, p.Gate)
	if err != nil {
		return err
	}
	p.Targets, p.More = targets[:min(len(targets), maxTargets)], max(0, len(targets)-maxTargets)
	p.Notes = append(p.Notes, notes...)
	p.Subscriptions, err = reader.Subscriptions(ctx, p.Gate)
	return err
}

// fill sets the timeline bar, the notes and the next intervals of page, and its details unless v.Bare is set.
func (h *handler) fill(ctx context.Context, page *gatePage, g *one, v view) error {
	t, warnings, err := g.timeline(ctx, v.Range)
	if err != nil {
		return err
	}
	page.Bar, page.Notes = barOf(t, v), append(page.Notes, warnings...)
	if t, _, err = g.timeline(ctx, preview.Range{From: v.Now, Until: v.Now.Add(ahead)}); err != nil {
		return err
	}
	page.Next = t.Intervals[min(1, len(t.Intervals)):min(1+maxNext, len(t.Intervals))]
	if v.Bare {
		return nil
	}
	return h.detail(page, g, v)
}

// detail adds the details that are visible only to users who may get the whole Gate.
func (h *handler) detail(page *gatePage, g *one, v view) (err error) {
	for _, c := range g.Status.Conditions {
		if c.Type == fluxmeta.ReadyCondition {
			page.Message = c.Message
		}
	}
	page.InForce, page.Planned = ledger.RequestsAt(g.Gate, v.Now)
	for _, e := range g.known.Exceptions {
		if gate.IsOf(g.Gate, e) && !e.ExpiredBy(v.Now) {
			state := ""
			if active := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ActiveCondition); active != nil {
				state = active.Reason
			}
			page.Exceptions = append(page.Exceptions, exception{e, state, gate.Only(e.Spec.Targets), gate.Missing(g.Gate, e)})
		}
	}
	page.History = slices.Clone(g.Status.History)
	slices.SortStableFunc(page.History, func(a, b v1alpha1.HistoryEntry) int { return b.At.Compare(a.At.Time) })
	page.History = page.History[:min(len(page.History), maxHistory)]
	page.Commands = h.commands(g.Gate, page.State)
	page.YAML, err = manifest(g.Gate)
	return err
}

// bareOf returns a copy of a timeline that contains only states and times.
func bareOf(t preview.Timeline) preview.Timeline {
	var bare []preview.Interval
	for _, i := range t.Intervals {
		if last := len(bare) - 1; last >= 0 && bare[last].State == i.State {
			bare[last].Until = i.Until
			continue
		}
		bare = append(bare, preview.Interval{From: i.From, Until: i.Until, Cause: preview.Cause{State: i.State}})
	}
	return preview.Timeline{Gate: t.Gate, Mode: t.Mode, Intervals: bare}
}

// commands returns the commands that would change a Gate.
func (h *handler) commands(g *v1alpha1.Gate, state string) []explain.Remedy {
	command := func(verb, flags, effect string) explain.Remedy {
		return explain.Remedy{Command: fmt.Sprintf("%s %s %s -n %s%s", h.Command, verb, g.Name, g.Namespace, flags), Effect: effect}
	}
	flags, lasts := explain.OpenFlags(g)
	all := []explain.Remedy{
		command("open", fmt.Sprintf(` %s --reason "..."`, flags), "opens it for "+lasts),
		command("close", ` --for 1h --reason "..."`, "closes it for an hour"),
		command("exception", " --for 2h", "prints an exception to commit to Git"),
		command("status", "", "shows the same in a terminal"),
	}
	if state == string(v1alpha1.StateOpened) {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// manifest returns the manifest of a Gate, ready to be committed.
func manifest(g *v1alpha1.Gate) (string, error) {
	raw, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.GateKind,
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace}, "spec": g.Spec,
	})
	lines := strings.Split(string(raw), "\n")
	for i := range lines {
		lines[i] = format.Printable(lines[i])
	}
	return strings.Join(lines, "\n"), err
}
