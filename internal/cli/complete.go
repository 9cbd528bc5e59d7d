package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/act"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/plan"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// completionTimeout bounds how long a completion waits for the cluster.
const completionTimeout = 1500 * time.Millisecond

// completion completes arguments and flags with names from the cluster.
type completion struct{ *kube.Factory }

// completer returns the possible next words.
type completer = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// addTo adds completion of arguments and flags to all commands, based on their Use and the names of their flags. Completions defined by a
// command are kept.
func (k completion) addTo(root *cobra.Command) {
	flags := map[string]completer{
		"namespace": k.completeFrom(func(ctx context.Context, c *kube.Cluster) ([]string, error) {
			return kube.ObjectNames(ctx, c, "", schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
		}),
		"context":         k.completeContext,
		"color":           oneOf("always", "auto", "never"),
		"dry-run":         oneOf("none", "server"),
		"default":         oneOf(act.ExceptionStates...),
		"with":            oneOf(plan.RolePart, plan.LockPart, plan.PoliciesPart),
		"state":           oneOf(string(v1alpha1.StateOpened), string(v1alpha1.StateClosed)),
		"status-selector": oneOf("ready=true", "ready=false", "ready=unknown", "opened=true", "opened=false"),
		"timezone":        oneOf(tz.Names()...),
		"only":            k.completeTarget,
		"to":              k.completePromotion,
	}
	for name, f := range flags {
		if root.PersistentFlags().Lookup(name) != nil {
			_ = root.RegisterFlagCompletionFunc(name, f)
		}
	}
	for _, cmd := range root.Commands() {
		for name, f := range flags {
			if cmd.LocalNonPersistentFlags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, f) // this fails only if the flag already has a completion
			}
		}
		if cmd.LocalNonPersistentFlags().Lookup("output") != nil {
			_ = cmd.RegisterFlagCompletionFunc("output", oneOf(outputFormats(cmd)...))
		}
		if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = k.completerFor(cmd)
		}
	}
}

// outputFormats returns the values of -o of a command.
func outputFormats(cmd *cobra.Command) []string {
	kubectl := genericclioptions.NewPrintFlags("").AllowedFormats()
	switch cmd.Name() {
	case "preview":
		return append([]string{"ics", "svg"}, kubectl...)
	case "diff":
		return kubectl
	case "history":
		return append([]string{"csv", "wide"}, kubectl...)
	}
	return append([]string{"wide"}, kubectl...)
}

// completerFor returns the completer for the arguments of a command.
func (k completion) completerFor(cmd *cobra.Command) completer {
	_, args, _ := strings.Cut(cmd.Use, " ")
	switch {
	case strings.Contains(args, "KIND/NAME"):
		return k.completeObject
	case cmd.Name() == "approve":
		return limit(args, k.completeNames(k.unapproved, kube.ExceptionKind, kube.GateKind, kube.SourceKind))
	case cmd.Name() == "rollback":
		return limit(args, k.completeNames(allNames, kube.SourceKind))
	case cmd.Name() == "history":
		return k.completeNames(allNames, kube.GateKind, kube.SourceKind)
	case strings.Contains(args, "NAME"), strings.Contains(args, "GATE"):
		return limit(args, k.completeNames(allNames, kube.GateKind))
	case strings.Contains(args, "FILE"):
		return nil
	}
	return cobra.NoFileCompletions
}

// namesIn returns the names of a kind in the namespace of a cluster.
type namesIn = func(ctx context.Context, c *kube.Cluster, kind kube.Kind) ([]string, error)

// allNames returns the names of all objects of a kind.
func allNames(ctx context.Context, c *kube.Cluster, kind kube.Kind) ([]string, error) {
	return kube.ObjectNames(ctx, c, c.Namespace, v1alpha1.GroupVersion.WithKind(kind.Kind))
}

// unapproved returns the names of the objects of a kind that wait for approval.
func (k completion) unapproved(ctx context.Context, c *kube.Cluster, kind kube.Kind) (names []string, err error) {
	switch kind {
	case kube.GateKind:
		return act.GatesToApprove(ctx, c, k.Clock.Now())
	case kube.SourceKind:
		list := &v1alpha1.GatedSourceList{}
		err = c.List(ctx, list, client.InNamespace(c.Namespace))
		for i := range list.Items {
			if describe.Condition(list.Items[i].Status.Conditions, v1alpha1.ApprovedCondition).Reason == v1alpha1.WaitingApprovalReason {
				names = append(names, list.Items[i].Name)
			}
		}
		return names, err
	}
	all, err := c.Exceptions(ctx, []string{c.Namespace})
	for _, e := range all {
		if describe.Condition(e.Status.Conditions, v1alpha1.ActiveCondition).Reason == v1alpha1.WaitingApprovalReason {
			names = append(names, e.Name)
		}
	}
	return names, err
}

// completeNames completes names of objects of the given kinds, as KIND/NAME. The kind can be omitted for Gates. If no name matches, it
// completes the kind.
func (k completion) completeNames(read namesIn, kinds ...kube.Kind) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		withKind := strings.Contains(toComplete, "/")
		complete := k.completeFrom(func(ctx context.Context, c *kube.Cluster) (all []string, err error) {
			for _, kind := range kinds {
				if withKind && !strings.HasPrefix(toComplete, kind.Word+"/") {
					continue
				}
				names, failed := read(ctx, c, kind)
				for _, name := range names {
					if withKind || kind != kube.GateKind {
						name = kind.Word + "/" + name
					}
					all = append(all, name)
				}
				err = errors.Join(err, failed)
			}
			return all, err
		})
		found, directive := complete(cmd, args, toComplete)
		if len(found) > 0 || withKind || toComplete == "" && len(kinds) == 1 {
			return found, directive
		}
		var prefixes []string
		for _, kind := range kinds {
			prefixes = append(prefixes, kind.Word+"/")
		}
		return withPrefix(prefixes, toComplete), directive | cobra.ShellCompDirectiveNoSpace
	}
}

// limit returns a completer that completes only the first argument, unless the command takes several arguments.
func limit(use string, f completer) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !strings.Contains(use, "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, toComplete)
	}
}

func oneOf(values ...string) completer {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return withPrefix(values, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// withPrefix returns the values that start with a text.
func withPrefix(values []string, text string) (found []string) {
	for _, v := range values {
		if strings.HasPrefix(v, text) {
			found = append(found, v)
		}
	}
	return found
}

// completeFrom completes names from the cluster. It returns no names if there is no cluster or the cluster does not respond in time.
func (k completion) completeFrom(read func(context.Context, *kube.Cluster) ([]string, error)) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		names := k.readInTime(cmd.Context(), read)
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
		return withPrefix(names, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// readInTime reads from the cluster within completionTimeout.
func (k completion) readInTime(ctx context.Context, read func(context.Context, *kube.Cluster) ([]string, error)) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	k.Flags.Timeout = ptr.To(completionTimeout.String())
	found := make(chan []string, 1)
	go func() { // discovery does not accept a context
		var names []string
		if c, err := k.Cluster(); err == nil {
			names, _ = read(ctx, c)
		}
		found <- names
	}()
	select {
	case names := <-found:
		return names
	case <-ctx.Done():
		return nil
	}
}

// completeContext completes the names of contexts in the kubeconfig.
func (k completion) completeContext(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	config, err := k.Flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return withPrefix(names, toComplete), cobra.ShellCompDirectiveNoFileComp
}

// completeObject completes KIND/NAME. It first completes the installed kinds that Gates hold, then the names.
func (k completion) completeObject(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if kind, _, named := strings.Cut(toComplete, "/"); named {
		return withPrefix(k.readInTime(cmd.Context(), k.readNames(kind)), toComplete), cobra.ShellCompDirectiveNoFileComp
	}
	kinds := k.readInTime(cmd.Context(), k.installedKinds)
	if len(kinds) == 0 { // without a cluster, complete all kinds
		kinds = kube.KindNames()
	}
	values := make([]string, len(kinds))
	for i, kind := range kinds {
		values[i] = strings.ToLower(kind) + "/"
	}
	return withPrefix(values, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeTarget completes the targets of the named Gates, as KIND/NAME or KIND/NAMESPACE/NAME. It writes the kind as the user has, and
// omits targets that are already in the flag.
func (k completion) completeTarget(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	typed, _, _ := strings.Cut(toComplete, "/")
	given, _ := cmd.Flags().GetStringArray("only")
	return k.completeFrom(func(ctx context.Context, c *kube.Cluster) (names []string, err error) {
		o, err := k.Objects(ctx, c)
		if err != nil {
			return nil, err
		}
		scope := c.VerdictScope(ctx)
		for _, arg := range args {
			g, err := c.Gate(ctx, arg)
			if err != nil {
				return names, err
			}
			err = o.EachTarget(ctx, scope, g, "", func(obj *unstructured.Unstructured) {
				name := strings.ToLower(obj.GetKind()) + "/"
				if strings.EqualFold(typed, obj.GetKind()) {
					name = typed + "/"
				}
				if obj.GetNamespace() != g.Namespace {
					name += obj.GetNamespace() + "/"
				}
				if name += obj.GetName(); !slices.Contains(given, name) && !slices.Contains(names, name) {
					names = append(names, name)
				}
			})
			if err != nil {
				return names, err
			}
		}
		return names, nil
	})(cmd, args, toComplete)
}

// completePromotion completes the revisions to which the named GatedSource can be moved back, newest first.
func (k completion) completePromotion(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return k.completeFrom(func(ctx context.Context, c *kube.Cluster) (revisions []string, err error) {
		if len(args) == 0 {
			return nil, nil
		}
		_, key, err := kube.ParseName(args[0], c.Namespace, kube.SourceKind)
		if err != nil {
			return nil, err
		}
		g, err := c.GatedSource(ctx, key)
		if err != nil {
			return nil, err
		}
		for _, p := range g.Status.Promotions {
			if (g.Status.Pinned == nil || g.Status.Pinned.Revision != p.Revision) && !slices.Contains(revisions, p.Revision) {
				revisions = append(revisions, p.Revision)
			}
		}
		return revisions, nil
	})(cmd, args, toComplete)
}

// readNames returns a function that reads the names of objects of a kind. The names include the kind as the user has written it, such as
// ks/apps.
func (k completion) readNames(kind string) func(context.Context, *kube.Cluster) ([]string, error) {
	return func(ctx context.Context, c *kube.Cluster) ([]string, error) {
		o, err := k.Objects(ctx, c)
		if err != nil {
			return nil, err
		}
		mapping, err := o.Find(kind)
		if err != nil {
			return nil, err
		}
		names, err := kube.ObjectNames(ctx, c, c.Namespace, mapping.GroupVersionKind)
		for i := range names {
			names[i] = kind + "/" + names[i]
		}
		return names, err
	}
}

// installedKinds returns the kinds that Gates hold and that are installed in the cluster.
func (k completion) installedKinds(ctx context.Context, c *kube.Cluster) (kinds []string, err error) {
	o, err := k.Objects(ctx, c)
	if err != nil {
		return nil, err
	}
	mappings, err := o.Installed()
	for _, mapping := range mappings {
		kinds = append(kinds, mapping.GroupVersionKind.Kind)
	}
	return kinds, err
}
