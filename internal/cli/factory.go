package cli

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
	"github.com/fluxcd/gating-controller/internal/target"
)

// begin connects to the cluster and reads the clock, as most commands do first.
func (s *session) begin() (c *cluster, now time.Time, err error) {
	if now, err = s.now(); err != nil {
		return nil, now, err
	}
	c, err = s.cluster()
	return c, now, err
}

// cluster connects to the cluster that the flags name. Nothing is asked yet.
func (s *session) cluster() (*cluster, error) {
	namespace, _, err := s.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, noCluster(err)
	}
	config, err := s.config.ToRESTConfig()
	if err != nil {
		return nil, noCluster(err)
	}
	config.QPS, config.Burst = -1, -1 // the API server shares itself out fairly; an emergency does not wait here
	config.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	mapper, err := s.config.ToRESTMapper()
	if err != nil {
		return nil, noCluster(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme(), Mapper: meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{ourKinds(), mapper}}})
	if err != nil {
		return nil, noCluster(err)
	}
	return &cluster{WithWatch: c, namespace: namespace, config: config, role: "gate-viewer", warn: s.warn}, nil
}

// learn has this program know the kinds that were added to those that are built in: those of its flag, or those of controllers.
func (s *session) learn(controllers []check.Controller) error {
	if len(s.suspendKinds) > 0 {
		added, err := target.ParseKinds(s.suspendKinds)
		if err != nil {
			return fmt.Errorf("--suspend-kinds: %w", err)
		}
		target.SetKinds(added...)
		return nil
	}
	var values []string
	for _, c := range controllers {
		for _, value := range c.Kinds {
			// No controller runs with what cannot be read, and nobody can have two meanings of one name.
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

// objects returns what reads objects of a cluster.
func (s *session) objects(ctx context.Context, c *cluster) (*objects, error) {
	mapper, err := s.config.ToRESTMapper()
	if err != nil {
		return nil, noCluster(err)
	}
	o := &objects{cluster: c, mapper: mapper, refused: map[string][]string{}}
	o.deployed, err = readDeployments(ctx, c)
	o.blind = err != nil || len(o.deployed) == 0
	return o, s.learn(o.deployed)
}

// session is what all commands have in common.
type session struct {
	*terminal
	config *genericclioptions.ConfigFlags
	// suspendKinds is the value of the flag, empty if it is not set.
	suspendKinds []string
}
