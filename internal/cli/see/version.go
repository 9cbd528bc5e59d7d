package see

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/version"
)

// Versions is the output of version. The JSON format is public.
type Versions struct {
	Client      clientVersion      `json:"client"`
	Controllers []check.Controller `json:"controllers"`
}

type clientVersion struct {
	Version      string `json:"version"`
	TimeZoneData string `json:"timeZoneData"`
}

// NewVersionCommand returns the command version.
func NewVersionCommand(k *kube.Factory) *cobra.Command {
	only := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this plugin and of the controllers in the cluster",
		Long: `Print the version of this plugin and of the controllers in the cluster.

It also prints the versions of their time zone data; a controller publishes its version in a label of its Lease.

If you may not list Deployments, the command prints only the version of the plugin, and a warning. If you may not list Leases, the time zone data of
the controllers is missing.`,
		Example: `  # Both
  kubectl gate version

  # Without a cluster
  kubectl gate version --client`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&only, "client", false, "Print only the version of this plugin, without connecting to a cluster.")
	out := term.NewOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := Versions{Client: clientVersion{version.Release(), tz.Version()}, Controllers: []check.Controller{}}
		if !only {
			found, err := readControllers(cmd.Context(), k)
			if err != nil {
				k.Warn("%s", term.OneLine(err.Error()))
			}
			v.Controllers = append(v.Controllers, found...)
		}
		if !out.IsTable() {
			return out.PrintReports(k.Out, term.VersionReport, []Versions{v})
		}
		rows := [][]string{{"plugin", v.Client.Version, "-", "time zone data " + v.Client.TimeZoneData}}
		for _, c := range v.Controllers {
			with := c.Image
			if c.TimeZoneData != "" {
				with += ", time zone data " + c.TimeZoneData
			}
			rows = append(rows, []string{c.Namespace + "/" + c.Name, cmp.Or(c.Version, "unknown"), strconv.FormatInt(c.Ready, 10) + "/" + strconv.FormatInt(c.Replicas, 10), with})
		}
		return out.Table(k.Out).Print([]string{"WHAT", "VERSION", "READY", "WITH"}, rows...)
	}
	return cmd
}

// readControllers returns the controllers of the cluster.
func readControllers(ctx context.Context, k *kube.Factory) ([]check.Controller, error) {
	c, err := k.Cluster()
	if err != nil {
		return nil, err
	}
	found, err := kube.Controllers(ctx, c)
	if err != nil {
		return nil, kube.NewCall("list", "deployments.apps", "", "all", "view").Explain(err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no Deployment with the label %s in any namespace", check.ControllerLabel)
	}
	leases := (&checkReader{cluster: c}).leases(ctx, found) // empty without permission to list them
	check.SetTimeZoneData(found, leases, k.Clock.Now())
	return found, nil
}
