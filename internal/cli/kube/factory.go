// Package kube connects commands to a cluster. It contains the reads, scopes, names and error messages that commands share.
package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Factory contains the global flags, and connects to the cluster.
type Factory struct {
	*term.Terminal
	Flags *genericclioptions.ConfigFlags
	// SuspendKinds is the value of the flag, empty if it is not set.
	SuspendKinds []string
}

// Connect connects to the cluster and reads the clock, which most commands do first.
func (k *Factory) Connect() (c *Cluster, now time.Time, err error) {
	if now, err = k.Now(); err != nil {
		return nil, now, err
	}
	c, err = k.Cluster()
	return c, now, err
}

// Cluster returns a client for the cluster selected by the flags. It does not send a request yet.
func (k *Factory) Cluster() (*Cluster, error) {
	namespace, _, err := k.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, NoCluster(err)
	}
	config, err := k.Flags.ToRESTConfig()
	if err != nil {
		return nil, NoCluster(err)
	}
	config.QPS, config.Burst = -1, -1 // API Priority and Fairness limits requests. The client must not delay them in an emergency.
	config.WarningHandler = rest.NewWarningWriter(k.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	mapper, err := k.Flags.ToRESTMapper()
	if err != nil {
		return nil, NoCluster(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme(), Mapper: meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{staticMapper(), mapper}}})
	if err != nil {
		return nil, NoCluster(err)
	}
	return &Cluster{WithWatch: c, Namespace: namespace, RESTConfig: config, Role: "gate-viewer", Warn: k.Warn}, nil
}

// UseKinds registers the kinds that Gates hold in addition to the built-in kinds. They come from the flag, or from the controllers if the
// flag is not set.
func (k *Factory) UseKinds(controllers []check.Controller) error {
	if len(k.SuspendKinds) > 0 {
		added, err := target.ParseKinds(k.SuspendKinds)
		if err != nil {
			return fmt.Errorf("--suspend-kinds: %w", err)
		}
		target.SetKinds(added...)
		return nil
	}
	var values []string
	for _, c := range controllers {
		for _, value := range c.Kinds {
			// No controller starts with invalid kinds. If a kind has two definitions, the first one is used.
			if with := append(slices.Clone(values), value); !slices.Contains(values, value) {
				if added, err := target.ParseKinds(with); err == nil {
					values = with
					target.SetKinds(added...)
				}
			}
		}
	}
	return nil
}

// Objects returns a reader of the objects that Gates can hold.
func (k *Factory) Objects(ctx context.Context, c *Cluster) (*Objects, error) {
	mapper, err := k.Flags.ToRESTMapper()
	if err != nil {
		return nil, NoCluster(err)
	}
	o := &Objects{Cluster: c, Mapper: mapper, Refused: map[string][]string{}}
	o.Deployed, err = Controllers(ctx, c)
	o.kindsUnknown = err != nil || len(o.Deployed) == 0
	return o, k.UseKinds(o.Deployed)
}
