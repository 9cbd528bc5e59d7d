package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// completionPatience is how long somebody who presses Tab waits for the cluster.
const completionPatience = 1500 * time.Millisecond

// completer returns what words may come next.
type completer = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// complete adds the completion of arguments and flags to all commands, as their Use and the names of their flags say. What a command
// completes itself stays.
func (s *session) complete(root *cobra.Command) {
	flags := map[string]completer{
		"namespace": s.completeFrom(func(ctx context.Context, c *cluster) ([]string, error) {
			return c.names(ctx, "", schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
		}),
		"context": s.completeContext,
		"color":   oneOf("always", "auto", "never"),
		"dry-run": oneOf("none", "server"),
		"type":    oneOf(exceptionTypes...),
	}
	for name, f := range flags {
		if root.PersistentFlags().Lookup(name) != nil {
			_ = root.RegisterFlagCompletionFunc(name, f)
		}
	}
	for _, cmd := range root.Commands() {
		for name, f := range flags {
			if cmd.LocalNonPersistentFlags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, f) // fails only if there is one
			}
		}
		if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = s.completerFor(cmd)
		}
	}
}

// completerFor returns what completes the arguments of a command.
func (s *session) completerFor(cmd *cobra.Command) completer {
	_, args, _ := strings.Cut(cmd.Use, " ")
	switch {
	case strings.Contains(args, "KIND/NAME"):
		return s.completeObject
	case cmd.Name() == "approve":
		return limit(args, s.completeFrom(func(ctx context.Context, c *cluster) ([]string, error) {
			return c.names(ctx, c.namespace, v1alpha1.GroupVersion.WithKind(v1alpha1.GateExceptionKind))
		}))
	case strings.Contains(args, "NAME"), strings.Contains(args, "GATE"):
		return limit(args, s.completeFrom(func(ctx context.Context, c *cluster) ([]string, error) {
			return c.names(ctx, c.namespace, v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
		}))
	case strings.Contains(args, "FILE"):
		return nil
	}
	return cobra.NoFileCompletions
}

// limit completes the first argument alone, unless a command takes many.
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
		return beginning(values, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// beginning returns the values that begin with a text.
func beginning(values []string, text string) (found []string) {
	for _, v := range values {
		if strings.HasPrefix(v, text) {
			found = append(found, v)
		}
	}
	return found
}

// completeFrom completes with names from the cluster. Without a cluster, or if it is slow, there are none.
func (s *session) completeFrom(read func(context.Context, *cluster) ([]string, error)) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		names := s.soon(cmd.Context(), read)
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
		return beginning(names, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// soon reads from the cluster as long as somebody waits for it.
func (s *session) soon(ctx context.Context, read func(context.Context, *cluster) ([]string, error)) []string {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	s.config.Timeout = ptr.To(completionPatience.String())
	found := make(chan []string, 1)
	go func() { // discovery takes no context
		var names []string
		if c, err := s.cluster(); err == nil {
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
func (s *session) completeContext(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	config, err := s.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return beginning(names, toComplete), cobra.ShellCompDirectiveNoFileComp
}

// completeObject completes KIND/NAME: first the kinds that Gates hold, then the names.
func (s *session) completeObject(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	kind, _, named := strings.Cut(toComplete, "/")
	var values []string
	for _, a := range target.All() {
		lower := strings.ToLower(a.GroupKind().Kind)
		switch {
		case !named:
			values = append(values, lower+"/")
		case lower == strings.ToLower(kind):
			for _, name := range s.soon(cmd.Context(), func(ctx context.Context, c *cluster) ([]string, error) {
				mapping, err := c.RESTMapper().RESTMapping(a.GroupKind())
				if err != nil {
					return nil, err
				}
				return c.names(ctx, c.namespace, mapping.GroupVersionKind)
			}) {
				values = append(values, kind+"/"+name)
			}
		}
	}
	if !named {
		return beginning(values, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return beginning(values, toComplete), cobra.ShellCompDirectiveNoFileComp
}
