package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
)

// freezePrefix is the prefix of the reason in requests made by freeze. The user name follows, because the API server removes a reason
// that was given by another user before, see config/policies.
const freezePrefix = "freeze by "

// NewFreezeCommand returns the command freeze.
func NewFreezeCommand(k *kube.Factory) *cobra.Command {
	f := &requestFlags{}
	cmd := &cobra.Command{
		Use:   "freeze --reason REASON [NAME...]",
		Short: "Close many Gates in an emergency, and list the objects that are not frozen",
		Long: `Close many Gates in an emergency, and list the objects that are not frozen.

Without names and --selector, the command closes all Gates of the namespace, or of all namespaces with -A. Without --until and --for, the freeze lasts
until thaw withdraws it: spec.window does not limit it. The command then lists the objects that are not frozen: objects that no Gate covers, and
objects that only other Gates or Gates with mode Audit cover.`,
		Example: `  # Everything, until thaw
  kubectl gate freeze -A --reason "incident 77"

  # Everything, until tomorrow morning
  kubectl gate freeze -A --until "tomorrow 08:00" --reason "incident 77"`,
	}
	cmd.Flags().StringVar(&f.until, "until", "", "When the freeze ends, such as 17:30, \"tomorrow 08:00\" or \"monday 08:00\". By default, it lasts until thaw.")
	cmd.Flags().StringVar(&f.lasts, "for", "", "How long the freeze lasts, such as 2h or 3d, instead of --until.")
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.Names, f.everything = args, len(args) == 0 && f.Selector == ""
		if f.reason == "" {
			return errors.New("--reason is required")
		}
		now, err := k.Now()
		if err != nil {
			return err
		}
		r, err := f.request(v1alpha1.RequestClose, now)
		if err != nil {
			return err
		}
		r.unlimited = r.until.IsZero()
		results, asked := requestGates(cmd.Context(), k, f, func(*v1alpha1.Gate) (*request, error) {
			own := *r
			own.reason = freezePrefix + cmp.Or(f.by, "an unknown user") + ": " + f.reason
			return &own, nil
		})
		if results == nil {
			return asked
		}
		if err := printNotFrozen(cmd.Context(), k, f, results); err != nil {
			k.Warn("cannot tell which objects are not frozen: %s", err)
			asked = cmp.Or(asked, error(term.ExitCode(term.ExitIncomplete)))
		}
		return asked
	}
	return cmd
}

// NewThawCommand returns the command thaw.
func NewThawCommand(k *kube.Factory) *cobra.Command {
	f := &requestFlags{}
	cmd := &cobra.Command{
		Use:   "thaw [NAME...]",
		Short: "Withdraw a freeze, so that the schedule of the Gates applies again",
		Long: `Withdraw a freeze, so that the schedule of the Gates applies again. You need the permission to open the Gates.

thaw withdraws only the close requests of freeze, on one, some or all Gates. If a Gate also has another close request in force, it stays frozen, and
the exit code is 3: reset withdraws all requests of a Gate. close does the opposite, and makes a request.`,
		Example: `  # The incident is over
  kubectl gate thaw -A --reason "incident 77 is over"`,
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.Names, f.everything = args, len(args) == 0 && f.Selector == ""
		now, err := k.Now()
		if err != nil {
			return err
		}
		_, err = requestGates(cmd.Context(), k, f, func(g *v1alpha1.Gate) (*request, error) { return thaw(g, now, f.reason) })
		return err
	}
	return cmd
}

// thaw returns the request that withdraws the freeze of a Gate. It returns a skipError if there is no freeze, and an ineffectiveError if
// another close request would keep the Gate closed.
func thaw(g *v1alpha1.Gate, now time.Time, reason string) (*request, error) {
	r := withdraw(g, now, reason)
	isFreeze := func(a v1alpha1.AcceptedRequest) bool { return strings.HasPrefix(a.Message, freezePrefix) }
	switch {
	case r == nil || r.action != v1alpha1.RequestOpen:
		return nil, skipError("is not frozen")
	case !slices.ContainsFunc(r.ends, isFreeze):
		return nil, skipError("is not frozen, it has " + r.words)
	}
	for _, a := range r.ends {
		if !isFreeze(a) {
			return nil, ineffectiveError(fmt.Sprintf("it stays frozen, because the %s is also in force; to withdraw all requests: kubectl gate reset %s -n %s",
				describeWithdrawn(a), g.Name, g.Namespace))
		}
	}
	return r, nil
}

// maxNotFrozen bounds how many objects are printed under each title.
const maxNotFrozen = 10

// printNotFrozen prints the objects in the namespaces of a freeze that are not frozen.
func printNotFrozen(ctx context.Context, k *kube.Factory, f *requestFlags, results []result) error {
	var all, closed []*v1alpha1.Gate
	for _, r := range results {
		all = append(all, r.gate)
		if r.err == nil && r.request != nil {
			closed = append(closed, r.gate)
		}
	}
	c, err := k.Cluster()
	if err != nil {
		return err
	}
	if !f.everything {
		if all, err = c.Gates(ctx, kube.Scope{All: f.All}); err != nil {
			return err
		}
	}
	namespace := c.Namespace
	if f.All {
		namespace = ""
	}
	o, err := k.Objects(ctx, c)
	if err != nil {
		return err
	}
	kinds, err := o.Installed()
	if err != nil {
		return err
	}
	reach := c.VerdictScope(ctx)
	all, audits := splitByMode(all)
	closed, _ = splitByMode(closed)
	var free, others, audited []string
	for _, kind := range kinds {
		if err := o.Each(ctx, kind, namespace, "", func(obj *unstructured.Unstructured) {
			by := func(gates []*v1alpha1.Gate) bool {
				return slices.ContainsFunc(gates, func(g *v1alpha1.Gate) bool { return explain.Reaches(g, obj) && reach.Governs(g, obj) })
			}
			name := fmt.Sprintf("%s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName())
			switch {
			case by(closed) || explain.IsHeld(obj):
			case by(all):
				others = append(others, name)
			case by(audits):
				audited = append(audited, name)
			default:
				free = append(free, name)
			}
		}); err != nil {
			return err
		}
	}
	printObjects(k.Terminal, "Not frozen, because no gate covers them:", free)
	printObjects(k.Terminal, "Not frozen, because only other gates cover them:", others)
	printObjects(k.Terminal, "Not frozen, because their gates have mode Audit:", audited)
	if refusal := o.Denied(); refusal != "" {
		k.Warn("not checked, so these may not be frozen: %s", refusal)
	} else if len(free)+len(others)+len(audited) == 0 {
		k.Line("These gates hold all objects that gates can hold, or will hold them soon.")
	}
	return nil
}

// splitByMode returns the Gates that enforce their decisions, and the Gates with mode Audit.
func splitByMode(gates []*v1alpha1.Gate) (enforcing, audits []*v1alpha1.Gate) {
	for _, g := range gates {
		if g.Audits() {
			audits = append(audits, g)
		} else {
			enforcing = append(enforcing, g)
		}
	}
	return enforcing, audits
}

// printObjects prints names under a title.
func printObjects(t *term.Terminal, title string, names []string) {
	if len(names) == 0 {
		return
	}
	t.Line("%s", title)
	for _, name := range names[:min(len(names), maxNotFrozen)] {
		t.Line("  %s", name)
	}
	if more := len(names) - maxNotFrozen; more > 0 {
		t.Line("  and %d more", more)
	}
}
