package see

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// NewWhyCommand returns the command why.
func NewWhyCommand(k *kube.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why KIND/NAME",
		Short: "Explain why an object is held or not, and what would change that",
		Long: `Explain why an object is held or not, and what would change that.

For each Gate that governs the object, it prints the rule, the state of the Gate with its start and end, and the requester. The object is
free, held, suspended (by a user or Git), or resumed (a user has resumed it, and its Gates have mode Lenient). Or it is exempt (a
Certificate or a new object that is not held although a Gate is closed), passing (one reconciliation of a held object), or overridden (held
by the lock after a user has resumed it). It also prints commands that would change the state. To find out whether a request would open a
closed Gate, it computes the result and sends no request.

The only item of -o json has target, state, becomes (its next state), summary, notes, gates, owners (manager,
at), remedies (command, effect), waiting (a PendingTarget, as of kubectl gate pending), and incomplete if you may not see all Gates. Each of the gates
has gate, state, rules, holds, reason, period, exception, since, until, requestedBy, requestMessage, message, suspended and hidden.`,
		Example: `  # Short names work as well
  kubectl gate why ks/apps -n flux-system

  # A certificate, for programs
  kubectl gate why certificate shop -o json`,
		Args: cobra.ArbitraryArgs,
	}
	out := term.NewOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind, namespace, name, err := kube.ParseObjectName(args)
		if err != nil {
			return err
		}
		now, err := k.Now()
		if err != nil {
			return err
		}
		e, err := explainNamed(cmd.Context(), k, kind, namespace, name, now)
		if err != nil {
			return err
		}
		switch {
		case *out.OutputFormat == "name":
			return out.PrintList(k.Out, term.TargetExplanation, []runtime.Object{nameOnly(e.Target)})
		case !out.IsTable():
			return out.PrintReports(k.Out, term.TargetExplanation, []explain.Explanation{*e})
		}
		return printWhy(k.Terminal, e, out, now)
	}
	return cmd
}

// explainNamed explains the named object. It warns about Gates that the user is not permitted to see.
func explainNamed(ctx context.Context, k *kube.Factory, kind, namespace, name string, now time.Time) (*explain.Explanation, error) {
	c, err := k.Cluster()
	if err != nil {
		return nil, err
	}
	c.Namespace = cmp.Or(namespace, c.Namespace)
	return explainObject(ctx, k, c, kind, name, now)
}

// explainObject explains an object of a cluster.
func explainObject(ctx context.Context, k *kube.Factory, c *kube.Cluster, kind, name string, now time.Time) (*explain.Explanation, error) {
	o, err := k.Objects(ctx, c)
	if err != nil {
		return nil, err
	}
	mapping, err := o.Find(kind)
	if err != nil {
		return nil, err
	}
	obj, err := o.Get(ctx, mapping, c.Namespace, name)
	if err != nil {
		return nil, err
	}
	known, err := readKnown(ctx, k.Terminal, c, obj, now)
	if err != nil {
		return nil, err
	}
	e := explain.Explain(obj, *known)
	if e.State.IsHeld() {
		waits := explain.Wait(obj, readSource(ctx, o, obj), now)
		e.Waiting = &waits
	}
	return &e, nil
}

// readKnown reads the Gates that govern an object or are named in its annotations. If the user is not permitted to list the Gates of all
// namespaces, it reads the Gates in the namespace of the object, and the Gates named in its annotations.
func readKnown(ctx context.Context, t *term.Terminal, c *kube.Cluster, obj *unstructured.Unstructured, now time.Time) (*explain.Cluster, error) {
	reach := c.VerdictScope(ctx)
	k := &explain.Cluster{Labels: reach.Labels, Own: reach.Own, Now: now, Command: t.Program}
	names := verdict.NamesOn(obj)
	add := func(g *v1alpha1.Gate) {
		if reach.Governs(g, obj) || slices.Contains(names, kube.FullName(g)) {
			k.Gates = append(k.Gates, g.DeepCopy()) // copy the Gates, so that the other Gates of the page can be freed
		}
	}
	err := c.EachGate(ctx, kube.Scope{All: true}, add)
	if apierrors.IsForbidden(err) {
		k.Gates = nil
		here := *c
		here.Namespace = obj.GetNamespace()
		if err = here.EachGate(ctx, kube.Scope{}, add); err == nil {
			k.Namespaces = []string{here.Namespace}
			err = addNamedGates(ctx, c, obj, k)
			t.Warn("you may not list gates in all namespaces, only in %q: a gate of another namespace that governs the object is not shown", here.Namespace)
		}
	}
	if err != nil {
		return nil, err
	}
	if k.Calendars, err = kube.Calendars(ctx, c, now, k.Gates...); err != nil {
		t.Warn("%s: the commands that open its gate may be incomplete", err)
	}
	return k, nil
}

// addNamedGates adds the Gates of other namespaces that are named in the annotations of an object.
func addNamedGates(ctx context.Context, c *kube.Cluster, obj *unstructured.Unstructured, k *explain.Cluster) error {
	for _, name := range verdict.NamesOn(obj) {
		namespace, short, _ := strings.Cut(name, "/")
		if slices.Contains(k.Namespaces, namespace) {
			continue
		}
		g := &v1alpha1.Gate{}
		switch err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: short}, g); {
		case err == nil:
			k.Gates = append(k.Gates, g)
		case apierrors.IsNotFound(err):
			k.Absent = append(k.Absent, name)
		case !apierrors.IsForbidden(err):
			return kube.NewCall("get", "gates", namespace, short, "gate-viewer").Explain(err)
		}
	}
	return nil
}
