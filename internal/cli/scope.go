package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// scope says which Gates a command is about.
type scope struct {
	names         []string
	all           bool
	selector      string
	statusOfReady string
}

// eachGate calls a function with each Gate of a scope, a page at a time: nobody needs all of them at once.
func (c *cluster) eachGate(ctx context.Context, sc scope, do func(*v1alpha1.Gate)) error {
	namespace := c.namespace
	if sc.all {
		namespace = ""
	}
	opts := &client.ListOptions{Namespace: namespace, Limit: 500, Raw: &metav1.ListOptions{LabelSelector: sc.selector}}
	matches, err := statusSelector(sc.statusOfReady)
	if err != nil {
		return err
	}
	for {
		list := &v1alpha1.GateList{}
		if err := c.List(ctx, list, opts); err != nil {
			return newCall("list", "gates", namespace, "", c.role).explain(err)
		}
		for i := range list.Items {
			if matches(&list.Items[i]) {
				do(&list.Items[i])
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			return nil
		}
	}
}

// gates returns the Gates of a scope: those that it names, or all.
func (c *cluster) gates(ctx context.Context, sc scope) (gates []*v1alpha1.Gate, err error) {
	if len(sc.names) == 0 {
		err := c.eachGate(ctx, sc, func(g *v1alpha1.Gate) { gates = append(gates, g) })
		return gates, err
	}
	for _, name := range sc.names {
		g, err := c.gate(ctx, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(gates, func(other *v1alpha1.Gate) bool { return other.UID == g.UID }) {
			gates = append(gates, g)
		}
	}
	return gates, nil
}

// gate returns the Gate that an argument names.
func (c *cluster) gate(ctx context.Context, arg string) (*v1alpha1.Gate, error) {
	_, key, err := parseName(arg, c.namespace, gateName)
	if err != nil {
		return nil, err
	}
	return c.gateAt(ctx, key)
}

// gateAt returns a Gate.
func (c *cluster) gateAt(ctx context.Context, key client.ObjectKey) (*v1alpha1.Gate, error) {
	g := &v1alpha1.Gate{}
	err := c.Get(ctx, key, g)
	if apierrors.IsNotFound(err) && !isUnknownResource(err) {
		return nil, notFound(ctx, c, v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind), key, "gate", "kubectl gate list -A")
	}
	return g, newCall("get", "gates", key.Namespace, key.Name, c.role).explain(err)
}

// scopeFlags adds the flags that choose Gates.
func scopeFlags(cmd *cobra.Command, sc *scope) {
	cmd.Flags().BoolVarP(&sc.all, "all-namespaces", "A", false, "The gates of all namespaces.")
	cmd.Flags().StringVarP(&sc.selector, "selector", "l", "", "Only gates with these labels, such as team=payments,tier!=test.")
	cmd.Flags().StringVar(&sc.statusOfReady, "status-selector", "", "Only gates with this condition, such as ready=false or opened=true.")
}

// none says that no Gate is there, or that none matches.
func (sc scope) none(namespace string) string {
	if sc.selector != "" || sc.statusOfReady != "" {
		return "No gate matches."
	}
	return noGates(namespace, sc.all)
}

func noGates(namespace string, all bool) string {
	if all {
		return "There are no gates."
	}
	return fmt.Sprintf("There are no gates in namespace %q. Add -A for all namespaces.", namespace)
}

// statusSelector returns which Gates have a condition, such as ready=false.
func statusSelector(text string) (func(*v1alpha1.Gate) bool, error) {
	if text == "" {
		return func(*v1alpha1.Gate) bool { return true }, nil
	}
	name, value, ok := strings.Cut(text, "=")
	if !ok || !slices.Contains([]string{"true", "false", "unknown"}, strings.ToLower(value)) {
		return nil, fmt.Errorf("--status-selector %q: write a condition and true, false or unknown, such as ready=false", text)
	}
	return func(g *v1alpha1.Gate) bool {
		i := slices.IndexFunc(g.Status.Conditions, func(c metav1.Condition) bool { return strings.EqualFold(c.Type, name) })
		if i < 0 {
			return strings.EqualFold(value, "unknown")
		}
		return strings.EqualFold(string(g.Status.Conditions[i].Status), value)
	}, nil
}
