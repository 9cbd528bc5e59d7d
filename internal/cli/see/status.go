package see

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/timetable"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// NewStatusCommand returns the command status.
func NewStatusCommand(k *kube.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status NAME",
		Aliases: []string{"describe"},
		Short:   "Show everything about one Gate on one screen",
		Long: `Show everything about one Gate on one screen: its state and the reason, its next five transitions, requests, exceptions, targets and the revisions
that wait, failures, dependencies, and the last three entries of its history. At most ten targets are listed, targets with waiting changes first.
Targets that you may not list are only counted. A target that a user or Git has suspended has the state suspended. If you may not list exceptions,
only the next transition is shown, from the status of the Gate.`,
		Example: `  # Its state, the next transitions, and its targets
  kubectl gate status production -n flux-system

  # The Gate itself, for programs, as the only item of a List
  kubectl gate status production -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one gate; kubectl gate list shows all")
			}
			return nil
		},
	}
	out := term.NewOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, now, err := k.Connect()
		if err != nil {
			return err
		}
		g, err := c.Gate(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if !out.IsTable() {
			return printGates(out, k.Out, []*v1alpha1.Gate{g})
		}
		screen, err := readScreen(cmd.Context(), k, c, g, now)
		if err != nil {
			return err
		}
		return screen.print(out)
	}
	return cmd
}

// screen contains the data that status prints.
type screen struct {
	t          *term.Terminal
	gate       *v1alpha1.Gate
	exceptions []*v1alpha1.GateException
	calendars  timetable.Calendars
	// unread lists the inputs that could not be read, such as "exceptions".
	unread  []string
	targets []targetLine
	now     time.Time
}

// targetLine is one target of a Gate.
type targetLine struct {
	explain.Waiting
	// state is the state of the target.
	state explain.State
	// owners are the other field managers that have suspended the target.
	owners []explain.Owner
}

// readScreen reads the data of a Gate. If the user is not permitted to read some of it, it prints a warning and omits that data.
func readScreen(ctx context.Context, k *kube.Factory, c *kube.Cluster, g *v1alpha1.Gate, now time.Time) (*screen, error) {
	sc := &screen{t: k.Terminal, gate: g, now: now}
	var err error
	switch sc.exceptions, err = kube.ExceptionsFor(ctx, c, g); {
	case apierrors.IsForbidden(err):
		k.Warn("%s", err)
		sc.unread = append(sc.unread, "exceptions")
	case err != nil:
		return nil, err
	}
	if sc.calendars, err = kube.Calendars(ctx, c, now, g); err != nil {
		k.Warn("%s", err)
		sc.unread = append(sc.unread, "calendars")
	}
	o, err := k.Objects(ctx, c)
	if err != nil {
		return nil, err
	}
	if sc.targets, err = readTargets(ctx, o, g, now); err != nil {
		return nil, err
	}
	if refusal := o.Denied(); refusal != "" {
		k.Warn("%s; targets of these kinds are only counted", refusal)
	}
	return sc, nil
}

// readTargets returns the targets of a Gate that are not free, held targets first.
func readTargets(ctx context.Context, o *kube.Objects, g *v1alpha1.Gate, now time.Time) ([]targetLine, error) {
	kinds, err := o.Installed()
	if err != nil {
		return nil, err
	}
	namespaces := []string{g.Namespace}
	for _, ref := range g.Spec.Targets {
		if ref.Namespace != "" && !slices.Contains(namespaces, ref.Namespace) {
			namespaces = append(namespaces, ref.Namespace)
		}
	}
	if slices.ContainsFunc(g.Spec.Targets, func(ref v1alpha1.TargetReference) bool { return ref.SpansNamespaces() }) {
		namespaces = []string{metav1.NamespaceAll}
	}
	var held []*unstructured.Unstructured
	var others []targetLine
	reach := o.Cluster.VerdictScope(ctx)
	known := explain.Cluster{Gates: []*v1alpha1.Gate{g}, Namespaces: []string{}, Labels: reach.Labels, Own: reach.Own, Now: now}
	look := func(obj *unstructured.Unstructured) {
		if !reach.Governs(g, obj) && !slices.Contains(verdict.HeldBy(obj), g.Namespace+"/"+g.Name) {
			return
		}
		e := explain.Explain(obj, known)
		switch state, listed := explain.StateTo(e); {
		case e.State.IsHeld() && explain.IsHeld(obj):
			held = append(held, obj.DeepCopy())
		case listed:
			w := explain.Wait(obj, nil, now)
			others = append(others, targetLine{w, state, e.Owners})
		}
	}
	for _, namespace := range namespaces {
		for _, kind := range kinds {
			if err := o.Each(ctx, kind, namespace, "", look); err != nil {
				return nil, err
			}
		}
	}
	all, err := waitingFor(ctx, o, held, false, now)
	if err != nil {
		return nil, err
	}
	lines := make([]targetLine, 0, len(all)+len(others))
	for _, w := range all {
		lines = append(lines, targetLine{w, explain.Held, nil})
	}
	slices.SortStableFunc(lines, func(a, b targetLine) int { return freshness(&b.Waiting) - freshness(&a.Waiting) })
	slices.SortFunc(others, func(a, b targetLine) int { return a.Compare(&b.Waiting) })
	return append(lines, others...), nil
}

// freshness returns 1 for an object with a waiting revision or renewal, so that the object is listed first, otherwise 0.
func freshness(w *explain.Waiting) int {
	if w.IsFresh() {
		return 1
	}
	return 0
}

// transitions bounds how many transitions are printed.
const transitions = 5

// statusRange is the range in which transitions are computed.
const statusRange = 366 * 24 * time.Hour

// next returns rows with the next transitions of the Gate, none if its spec is invalid. If some inputs could not be read, it returns the
// transition recorded in the status.
func (sc *screen) next() [][]string {
	if len(sc.unread) > 0 {
		if t := sc.gate.Status.NextTransition; t != nil {
			return [][]string{{term.FormatUntil(t.At.Time, sc.now), sc.t.PaintState(string(t.State)), describe.Words(t.Reason, t.DecidedBy())}}
		}
		return nil
	}
	intervals, errs := gate.NewSnapshot(sc.gate, sc.calendars, sc.exceptions...).Intervals(sc.now, sc.now.Add(statusRange))
	if len(errs) > 0 {
		return nil
	}
	var rows [][]string
	first := true
	for i := range intervals {
		if !first {
			rows = append(rows, []string{term.FormatUntil(i.From, sc.now), sc.t.PaintState(i.State.String()), describe.Words(string(i.Reason), gate.WithEvent(i.By, i.Event))})
		}
		if first = false; len(rows) == transitions {
			break
		}
	}
	return rows
}

// requests returns rows with the requests that are in force, planned, or waiting for approval.
func (sc *screen) requests() [][]string {
	var rows [][]string
	add := func(r v1alpha1.AcceptedRequest, state string) {
		until := "-"
		if r.Until != nil {
			until = term.FormatUntil(r.Until.Time, sc.now)
		}
		action := string(r.Action)
		if r.Targets != nil {
			action += " only " + ledger.FormatTargets(r.Targets)
		}
		rows = append(rows, []string{action, state, term.FormatUntil(r.RequestedAt.Time, sc.now), until, term.OrDash(r.RequestedBy), term.OrDash(r.Message)})
	}
	inForce, planned := ledger.RequestsAt(sc.gate, sc.now)
	for _, r := range inForce {
		add(r, "in force")
	}
	for _, r := range planned {
		state := "planned"
		if r.State == v1alpha1.RequestWaiting {
			state = "waits"
		}
		if lacks := ledger.Lacks(sc.gate, &r); lacks > 0 {
			state += " for " + format.Count(lacks, "approval")
		}
		add(r, strings.Replace(state, "planned for", "planned, needs", 1))
	}
	return rows
}

// counts returns the number of targets by state.
func (sc *screen) counts() string {
	t := sc.gate.Status.Targets
	if t == nil {
		return "not counted yet"
	}
	held := fmt.Sprintf("%d held", t.Held)
	if sc.gate.Audits() {
		held += fmt.Sprintf(", %d would be held", t.WouldHold)
	}
	return fmt.Sprintf("%d in all: %s, %d suspended by others, %d exempt, %d pending, %d failed", t.Total, held, t.SuspendedByOthers, t.Exempt, t.Pending, t.Failed)
}
