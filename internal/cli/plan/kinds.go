package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/suspendkinds"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Parts of the output of the command kinds.
const (
	RolePart     = "role"
	LockPart     = "lock"
	PoliciesPart = "policies"
)

type kindsFlags struct {
	with    []string
	offline bool
}

// NewKindsCommand returns the command kinds.
func NewKindsCommand(k *kube.Factory) *cobra.Command {
	f := &kindsFlags{}
	cmd := &cobra.Command{
		Use:   "kinds GROUP/KIND[=spec.FIELD]...",
		Short: "Print the manifests that the cluster needs for more kinds that Gates hold",
		Long: `Print the manifests that the cluster needs for more kinds that Gates hold, as in the flag --suspend-kinds of the controller.

It prints the role of the controller, and the policies of the lock and of config/policies if the cluster has them. The output replaces the output of
earlier runs, so list all kinds each time. The command changes nothing: apply the output after you have read it.

The command reads the names of the resources from the cluster, and checks that the field exists. With --offline it guesses the names.`,
		Example: `  # Add CronJobs and Argo Rollouts
  kubectl gate kinds batch/CronJob argoproj.io/Rollout=spec.paused | kubectl apply --server-side -f -

  # Write the manifests to a file for Git, without access to a cluster
  kubectl gate kinds batch/CronJob --offline --with role,lock,policies > kinds.yaml`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().StringSliceVar(&f.with, "with", nil, "The parts to print: role, lock, policies. Defaults to the role, and to the other parts that the cluster has.")
	cmd.Flags().BoolVar(&f.offline, "offline", false, "Without a cluster: guess the names of resources, and print only the role unless --with is set.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		added, err := target.ParseKinds(args)
		if err != nil {
			return err
		}
		for _, part := range f.with {
			if !slices.Contains([]string{RolePart, LockPart, PoliciesPart}, part) {
				return fmt.Errorf("--with=%s: use role, lock or policies", part)
			}
		}
		resources, parts, err := readResources(cmd.Context(), k, f, added)
		if err != nil {
			return err
		}
		return printKinds(k.Terminal, resources, parts)
	}
	return cmd
}

// readResources returns the resources of the added kinds, and the parts to print.
func readResources(ctx context.Context, k *kube.Factory, f *kindsFlags, added []target.Kind) (resources []suspendkinds.Resource, parts []string, err error) {
	if f.offline {
		for _, k := range added {
			resources = append(resources, suspendkinds.Guess(k))
		}
		if parts = f.with; len(parts) == 0 {
			parts = []string{RolePart}
		}
		return resources, parts, nil
	}
	c, err := k.Cluster()
	if err != nil {
		return nil, nil, err
	}
	mapper, err := k.Flags.ToRESTMapper()
	if err != nil {
		return nil, nil, kube.NoCluster(err)
	}
	for _, k := range added {
		r, err := readResource(ctx, c, mapper, k)
		if err != nil {
			return nil, nil, err
		}
		resources = append(resources, r)
	}
	if len(f.with) > 0 {
		return resources, f.with, nil
	}
	parts = []string{RolePart}
	for part, policy := range map[string]string{LockPart: "gate-delete", PoliciesPart: "gate-target-verb"} {
		has, err := hasPolicy(ctx, c, policy)
		if err != nil {
			return nil, nil, err
		}
		if has {
			parts = append(parts, part)
		}
	}
	return resources, parts, nil
}

// readResource returns the resource of a kind. It returns an error if Gates cannot hold the kind.
func readResource(ctx context.Context, c *kube.Cluster, mapper meta.RESTMapper, k target.Kind) (r suspendkinds.Resource, err error) {
	mapping, err := mapper.RESTMapping(k.GroupKind)
	switch {
	case meta.IsNoMatchError(err):
		return r, fmt.Errorf("this cluster has no kind %s of %s: install it first, or use --offline", k.Kind, k.Group)
	case err != nil:
		return r, kube.NoCluster(err)
	}
	dc, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig)
	if err != nil {
		return r, kube.NoCluster(err)
	}
	path := "/openapi/v3/apis/" + mapping.GroupVersionKind.GroupVersion().String()
	document, err := dc.RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return r, kube.DiscoveryCall(path).Explain(err)
	}
	found, err := target.FindSchema(document, mapping.GroupVersionKind)
	if err != nil {
		return r, err
	}
	if fault := k.Fault(found, mapping.Scope.Name() == meta.RESTScopeNameNamespace); fault != "" {
		return r, errors.New(fault)
	}
	return suspendkinds.Resource{Kind: k, Plural: mapping.Resource.Resource, HasConditions: !k.IsBuiltIn() && found.AcceptsConditions()}, nil
}

// hasPolicy returns whether the named admission policy is installed in the cluster.
func hasPolicy(ctx context.Context, c *kube.Cluster, name string) (bool, error) {
	policy := &unstructured.Unstructured{}
	policy.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"})
	err := c.Get(ctx, client.ObjectKey{Name: name}, policy)
	if apierrors.IsForbidden(err) {
		return false, errors.New("you may not get validatingadmissionpolicies, which show whether the cluster has the lock and the policies: choose the parts with --with")
	}
	return err == nil, client.IgnoreNotFound(err)
}

// printKinds prints the parts for kinds, in a fixed order.
func printKinds(t *term.Terminal, resources []suspendkinds.Resource, parts []string) error {
	var all bytes.Buffer
	for _, part := range []struct {
		name string
		make func([]suspendkinds.Resource) ([]byte, error)
	}{{RolePart, suspendkinds.Role}, {LockPart, suspendkinds.Lock}, {PoliciesPart, suspendkinds.Policies}} {
		if !slices.Contains(parts, part.name) {
			continue
		}
		text, err := part.make(resources)
		if err != nil {
			return err
		}
		all.Write(text)
	}
	_, err := all.WriteTo(t.Out)
	return err
}
