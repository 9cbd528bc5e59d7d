package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/target"
)

// diffFlags are the flags of diff.
type diffFlags struct {
	*term.Span
	*term.Output
	files, old     []string
	from, selector string
	prune          bool
}

// NewDiffCommand returns the command diff.
func NewDiffCommand(k *kube.Factory) *cobra.Command {
	f := &diffFlags{}
	cmd := &cobra.Command{
		Use:   "diff -f FILE...",
		Short: "Print how a change of manifests affects the schedules of Gates",
		Long: `Print how a change of manifests affects the schedules of Gates: against the cluster, or with --old against other manifests, without a
cluster.

In a comparison with the cluster, Gates without a manifest do not change, and all Gates keep their requests. An exception that is unchanged
in the cluster keeps its approvals; other exceptions in the manifests count as approved. Warnings are printed to standard error.

A table has times in RFC 3339: in the zone of --timezone, or in UTC without it. Other formats are in UTC.

The exit code is 0 if nothing changes, 1 if anything changes, and 2 if there is an error.`,
		Example: `  # What a folder changes in the cluster in the next 30 days
  kubectl gate diff -f clusters/production

  # What a pull request changes, without a cluster
  git worktree add ../main main
  kubectl gate diff --old ../main/clusters/production -f clusters/production`,
		RunE: func(cmd *cobra.Command, args []string) error { return runDiff(cmd.Context(), k, f, args) },
	}
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "A file or folder with manifests, or - for standard input. Can be repeated; more files can be given as arguments.")
	cmd.Flags().StringArrayVar(&f.old, "old", nil, "A file or folder with the manifests before the change, instead of the cluster. Can be repeated.")
	cmd.Flags().StringVar(&f.from, "from", "", "The first instant that is compared, in RFC 3339 or such as \"monday 08:00\". Defaults to now.")
	f.Span = term.NewSpan(cmd, term.DefaultDays, maxDays, "From --from on: ")
	cmd.Flags().BoolVar(&f.prune, "prune", false, "Treat objects in the namespaces of the manifests as deleted if no manifest has them, as if Flux pruned them.")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "With --prune: only objects with these labels, such as kustomize.toolkit.fluxcd.io/name=gates.")
	f.Output = term.NewFormats(cmd, "")
	return cmd
}

func runDiff(ctx context.Context, k *kube.Factory, f *diffFlags, args []string) error {
	r, err := diffRange(k.Terminal, f)
	if err != nil {
		return err
	}
	zone, err := k.TableZone()
	if err != nil {
		return err
	}
	before, after, err := readCompared(ctx, k, f, args)
	if err != nil {
		return err
	}
	changes, doubts, err := preview.Diff(before, after, r)
	if err != nil {
		return err
	}
	warnAll(k.Terminal, doubts)
	if len(before.Gates()) == 0 && len(after.Gates()) == 0 {
		k.Warn("%s", noGatesInFiles)
	}
	if f.IsTable() {
		err = changes.Table(k.Out, zone)
	} else {
		err = printChanges(f.Output, k.Out, changes, r)
	}
	if err != nil {
		return err
	}
	if len(changes.Gates) > 0 {
		return term.ExitCode(term.ExitDiffers)
	}
	return nil
}

// diffRange validates the flags and returns the time range.
func diffRange(t *term.Terminal, f *diffFlags) (preview.Range, error) {
	r, err := term.ParseSpan(t, f.from, f.Span)
	switch {
	case err != nil:
		return r, err
	case len(f.files) == 0:
		return r, errors.New("no files: name them with -f")
	case f.prune && len(f.old) > 0:
		return r, errors.New("--prune cannot be combined with --old: objects that only the old manifests have always count as deleted")
	case f.selector != "" && !f.prune:
		return r, errors.New("--selector needs --prune")
	}
	return r, f.Validate()
}

// readCompared returns the Gates before and after the change.
func readCompared(ctx context.Context, k *kube.Factory, f *diffFlags, args []string) (before, after *preview.Set, err error) {
	if len(f.old) > 0 {
		namespace := cmp.Or(*k.Flags.Namespace, "default")
		if before, err = readManifests(k, f.old, nil, namespace); err == nil {
			after, err = readManifests(k, f.files, args, namespace)
		}
		return before, after, err
	}
	gone, err := f.gone()
	if err != nil {
		return nil, nil, err
	}
	c, err := k.Cluster()
	if err != nil {
		return nil, nil, err
	}
	manifests, err := readManifests(k, f.files, args, c.Namespace)
	if err != nil {
		return nil, nil, err
	}
	if err := manifests.Err(); err != nil {
		return nil, nil, err
	}
	if before, err = readClusterSet(ctx, c, manifests, gone); err != nil {
		return nil, nil, err
	}
	missing := slices.DeleteFunc(manifests.ConfigMaps(), func(name preview.ConfigMap) bool { return slices.Contains(before.ConfigMaps(), name) })
	_ = kube.AddConfigMaps(ctx, c, before, slices.Concat(before.ConfigMaps(), missing)) // the set records each error
	after = before.Without(func(obj metav1.Object) bool { return gone(obj) && !manifests.Has(obj) }).Applied(manifests)
	return before, after, addTargets(ctx, k, c, before, after)
}

// addTargets adds the objects that Gates with new targets may govern to the set after the change, so that they can be counted.
func addTargets(ctx context.Context, k *kube.Factory, c *kube.Cluster, before, after *preview.Set) error {
	refs := after.NewTargets(before)
	o, err := k.Objects(ctx, c)
	if err != nil {
		return err
	}
	scope := c.VerdictScope(ctx)
	scope.Reaches = check.Reach(o.Deployed)
	after.SetScope(scope)
	type list struct{ kind, namespace string }
	listed := map[list]bool{}
	for i := range refs {
		adapter, err := target.For(refs[i].APIVersion, refs[i].Kind)
		if err != nil {
			continue // there is already a warning about the kind
		}
		mapping, err := o.Mapper.RESTMapping(adapter.GroupKind())
		if meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return kube.NoCluster(err)
		}
		l := list{mapping.GroupVersionKind.String(), strings.TrimSuffix(refs[i].Namespace, v1alpha1.AnyName)}
		if listed[l] {
			continue
		}
		listed[l] = true
		if err := o.Each(ctx, mapping, l.namespace, "", func(obj *unstructured.Unstructured) { after.AddTargets(obj) }); err != nil {
			return err
		}
	}
	if refusal := o.Denied(); refusal != "" {
		k.Warn("%s: the objects that new selectors match are not counted", refusal)
	}
	return nil
}

// gone returns a filter for the objects of a cluster that count as deleted if they are not in the manifests.
func (f *diffFlags) gone() (func(metav1.Object) bool, error) {
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	return func(obj metav1.Object) bool { return f.prune && selector.Matches(labels.Set(obj.GetLabels())) }, nil
}

// readClusterSet returns the Gates of a cluster that are in the manifests or referred to by exceptions in the manifests. It also returns
// the Gates that the change deletes, or whose exceptions it deletes.
func readClusterSet(ctx context.Context, c *kube.Cluster, manifests *preview.Set, gone func(metav1.Object) bool) (*preview.Set, error) {
	names := manifests.Gates()
	var namespaces []string
	for _, name := range names {
		namespace, _, _ := strings.Cut(name, "/")
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	exceptions, err := c.Exceptions(ctx, namespaces)
	if err != nil {
		return nil, err
	}
	compared := map[string]bool{}
	for _, e := range exceptions {
		if gone(e) && !manifests.Has(e) {
			compared[e.Namespace+"/"+e.Spec.GateRef.Name] = true
		}
	}
	var gates []*v1alpha1.Gate
	for _, namespace := range namespaces {
		in := *c
		in.Namespace = namespace
		err := in.EachGate(ctx, kube.Scope{}, func(g *v1alpha1.Gate) {
			if compared[kube.FullName(g)] || gone(g) || slices.Contains(names, kube.FullName(g)) {
				compared[kube.FullName(g)] = true
				gates = append(gates, g.DeepCopy())
			}
		})
		if err != nil {
			return nil, err
		}
	}
	exceptions = slices.DeleteFunc(exceptions, func(e *v1alpha1.GateException) bool { return !compared[e.Namespace+"/"+e.Spec.GateRef.Name] })
	return preview.FromCluster(gates, exceptions), nil
}
