package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// WaitInterval is how often commands with --wait read the status of Gates.
const WaitInterval = 200 * time.Millisecond

// Scope selects the Gates of a command.
type Scope struct {
	Names          []string
	All            bool
	Selector       string
	StatusSelector string
}

// EachGate calls a function for each Gate of a scope, page by page, to bound the memory.
func (c *Cluster) EachGate(ctx context.Context, sc Scope, do func(*v1alpha1.Gate)) error {
	namespace := c.Namespace
	if sc.All {
		namespace = ""
	}
	opts := &client.ListOptions{Namespace: namespace, Limit: 500, Raw: &metav1.ListOptions{LabelSelector: sc.Selector}}
	matches, err := StatusSelector(sc.StatusSelector)
	if err != nil {
		return err
	}
	for {
		list := &v1alpha1.GateList{}
		if err := c.List(ctx, list, opts); err != nil {
			return NewCall("list", "gates", namespace, "", c.Role).Explain(err)
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

// Gates returns the Gates that a scope names, or all Gates that match the scope if it names none.
func (c *Cluster) Gates(ctx context.Context, sc Scope) (gates []*v1alpha1.Gate, err error) {
	if len(sc.Names) == 0 {
		err := c.EachGate(ctx, sc, func(g *v1alpha1.Gate) { gates = append(gates, g) })
		return gates, err
	}
	for _, name := range sc.Names {
		g, err := c.Gate(ctx, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(gates, func(other *v1alpha1.Gate) bool { return other.UID == g.UID }) {
			gates = append(gates, g)
		}
	}
	return gates, nil
}

// Gate returns the Gate named by an argument.
func (c *Cluster) Gate(ctx context.Context, arg string) (*v1alpha1.Gate, error) {
	_, key, err := ParseName(arg, c.Namespace, GateKind)
	if err != nil {
		return nil, err
	}
	return c.GateAt(ctx, key)
}

// GateAt returns the Gate with the given key.
func (c *Cluster) GateAt(ctx context.Context, key client.ObjectKey) (*v1alpha1.Gate, error) {
	g := &v1alpha1.Gate{}
	err := c.Get(ctx, key, g)
	if apierrors.IsNotFound(err) && !IsUnknownResource(err) {
		return nil, notFound(ctx, c, v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind), key, "gate", "kubectl gate list -A")
	}
	return g, NewCall("get", "gates", key.Namespace, key.Name, c.Role).Explain(err)
}

// AddScopeFlags adds the flags that select Gates.
func AddScopeFlags(cmd *cobra.Command, sc *Scope) {
	cmd.Flags().BoolVarP(&sc.All, "all-namespaces", "A", false, "Select gates in all namespaces.")
	cmd.Flags().StringVarP(&sc.Selector, "selector", "l", "", "Only gates with these labels, such as team=payments,tier!=test.")
	cmd.Flags().StringVar(&sc.StatusSelector, "status-selector", "", "Only gates with this condition, such as ready=false or opened=true.")
}

// NoneMessage returns the message for a scope without Gates.
func (sc Scope) NoneMessage(namespace string) string {
	if sc.Selector != "" || sc.StatusSelector != "" {
		return "No gate matches."
	}
	return NoGatesMessage(namespace, sc.All)
}

// NoGatesMessage returns the message for a namespace, or a cluster, without Gates.
func NoGatesMessage(namespace string, all bool) string {
	if all {
		return "There are no gates."
	}
	return fmt.Sprintf("There are no gates in namespace %q. Add -A for all namespaces.", namespace)
}

// StatusSelector returns a filter for Gates with a condition, such as ready=false. A missing condition counts as unknown. An empty text
// matches all Gates.
func StatusSelector(text string) (func(*v1alpha1.Gate) bool, error) {
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
