package ui

import (
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// Bounds of what the page of a Gate shows.
const (
	maxNext    = 10
	maxTargets = 200
	maxHistory = 50
)

// gatePage is what the page of a Gate shows.
type gatePage struct {
	row
	Axis bar
	// Message is that of the condition Ready.
	Message string
	Next    []preview.Interval
	// InForce and Planned are its requests.
	InForce, Planned []v1alpha1.AcceptedRequest
	Exceptions       []exception
	Targets          []Target
	// More is how many targets are not listed.
	More    int
	History []v1alpha1.HistoryEntry
	// Commands would change the Gate.
	Commands []explain.Remedy
	YAML     string
	Notes    []string
}

// exception is a GateException with the approvals that it lacks.
type exception struct {
	*v1alpha1.GateException
	Missing int
}

func (h *handler) gate(r *request) (any, error) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	known, err := h.Reader.Gates(r.Context(), namespace)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(known.Gates, func(g *v1alpha1.Gate) bool { return g.Namespace == namespace && g.Name == name })
	if i < 0 {
		return nil, Missing{Cause: fmt.Errorf("there is no gate %q in namespace %q, or you may not see it", name, namespace)}
	}
	g := known.Gates[i]
	page := gatePage{row: rowOf(g, r.view), Axis: axis(r.view), Notes: known.Notes}
	if err := page.schedule(known, g, i, r.view); err != nil {
		return nil, err
	}
	for _, c := range g.Status.Conditions {
		if c.Type == "Ready" {
			page.Message = c.Message
		}
	}
	page.InForce, page.Planned = gate.RequestsAt(g, r.view.Now)
	for _, e := range known.Exceptions {
		if gate.IsOf(g, e) && !e.ExpiredBy(r.view.Now) {
			page.Exceptions = append(page.Exceptions, exception{e, gate.Missing(g, e)})
		}
	}
	targets, notes, err := h.Reader.Targets(r.Context(), g)
	if err != nil {
		return nil, err
	}
	page.Notes = append(slices.Clone(page.Notes), notes...)
	page.Targets, page.More = targets[:min(len(targets), maxTargets)], max(0, len(targets)-maxTargets)
	page.History = slices.Clone(g.Status.History[:min(len(g.Status.History), maxHistory)])
	slices.SortStableFunc(page.History, func(a, b v1alpha1.HistoryEntry) int { return b.At.Compare(a.At.Time) })
	page.Commands = h.commands(g, page.State)
	page.YAML, err = manifest(g)
	return page, err
}

// schedule adds the timeline and the next transitions.
func (p *gatePage) schedule(known *Known, g *v1alpha1.Gate, i int, v view) error {
	report, _, err := known.Set.Preview(v.Range)
	if err != nil {
		return err
	}
	p.Bar = barOf(report.Gates[i], v)
	ahead, _, err := known.Set.Preview(preview.Range{From: v.Now, Until: v.Now.Add(366 * 24 * time.Hour)})
	if err != nil {
		return err
	}
	for n, interval := range ahead.Gates[i].Intervals {
		if n > 0 && n <= maxNext {
			p.Next = append(p.Next, interval)
		}
	}
	return nil
}

// commands are those that would change a Gate.
func (h *handler) commands(g *v1alpha1.Gate, state string) []explain.Remedy {
	command := func(verb, flags, effect string) explain.Remedy {
		return explain.Remedy{Command: fmt.Sprintf("%s %s %s -n %s%s", h.Command, verb, g.Name, g.Namespace, flags), Effect: effect}
	}
	all := []explain.Remedy{
		command("open", ` --for 1h --reason "..."`, "asks the gate to open for an hour"),
		command("close", ` --for 1h --reason "..."`, "closes it for an hour"),
		command("except", " --for 2h", "prints an exception to commit to Git"),
		command("status", "", "shows the same in a terminal"),
	}
	if state == string(v1alpha1.StateOpened) {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// manifest returns a Gate as somebody would commit it.
func manifest(g *v1alpha1.Gate) (string, error) {
	raw, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.GateKind,
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace}, "spec": g.Spec,
	})
	return string(raw), err
}
