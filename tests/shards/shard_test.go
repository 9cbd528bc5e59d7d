package shards

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/leaderelection"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// key is the label of Gates that selects their shard.
const key = "sharding.fluxcd.io/key"

// ofReplicas are flags of a replica. A standby takes over soon, and only the machine limits the rate of requests.
var ofReplicas = []string{
	"--enable-leader-election", "--leader-election-lease-duration=8s", "--leader-election-renew-deadline=6s", "--leader-election-retry-period=1s",
	"--kube-api-qps=1000", "--kube-api-burst=2000", "--no-cross-namespace-refs=false",
}

// shard has two replicas with the same selector of Gates.
type shard struct {
	selector, label string
	replicas        []*replica
}

type replica struct {
	*harness.Process
	metrics string
}

// fill starts missing replicas.
func (s *shard) fill(ctx context.Context) error {
	s.replicas = slices.DeleteFunc(s.replicas, (*replica).exited)
	for len(s.replicas) < 2 {
		metrics := harness.FreeAddress()
		p, err := cluster.StartGatingController(ctx, append([]string{"--metrics-addr=" + metrics, "--watch-label-selector=" + s.selector}, ofReplicas...)...)
		if err != nil {
			return err
		}
		s.replicas = append(s.replicas, &replica{Process: p, metrics: metrics})
	}
	return nil
}

func (r *replica) exited() bool {
	select {
	case <-r.Exited():
		return true
	default:
		return false
	}
}

// stop stops all replicas, and deletes the lease of the shard.
func (s *shard) stop() error {
	var errs []error
	for _, r := range s.replicas {
		errs = append(errs, r.Stop())
	}
	return errors.Join(errs...)
}

// leader returns the leading replica, nil if there is none yet.
func (s *shard) leader(ctx context.Context) *replica {
	for _, r := range s.replicas {
		if series, err := r.series(ctx); err == nil && series[`leader_election_master_status{name="`+s.lease()+`"}`] == 1 {
			return r
		}
	}
	return nil
}

// lease returns the name of the lease of the shard.
func (s *shard) lease() string {
	return leaderelection.GenerateID(v1alpha1.FieldManager+"-leader-election", s.selector)
}

// heldBy returns the holder of the shard's lease, and how often the holder has changed.
func (s *shard) heldBy(ctx context.Context) (string, int32, error) {
	lease := &coordinationv1.Lease{}
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: harness.RuntimeNamespace, Name: s.lease()}, lease)
	return ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.LeaseTransitions, 0), err
}

// series returns the metrics of a replica by name and labels.
func (r *replica) series(ctx context.Context) (map[string]float64, error) {
	if r.exited() {
		return nil, errors.New("the process has ended")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // reading is finished
	series := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if i := strings.LastIndex(lines.Text(), " "); i > 0 {
			series[lines.Text()[:i]], _ = strconv.ParseFloat(lines.Text()[i+1:], 64) // comments cannot be parsed
		}
	}
	return series, nil
}

// requests returns how many requests of a method the leader of a shard has sent.
func (w *world) requests(s *shard, method string) int {
	w.Helper()
	total := 0.0
	series, err := w.leads(s).series(w.Context())
	w.Must(err)
	for name, value := range series {
		if strings.HasPrefix(name, "rest_client_requests_total{") && strings.Contains(name, `method="`+method+`"`) {
			total += value
		}
	}
	return int(total)
}

// leads waits for the leader of a shard, and returns it.
func (w *world) leads(s *shard) *replica {
	w.Helper()
	var leader *replica
	w.Eventually("shard "+s.label+" has a leader", func() error {
		if leader = s.leader(w.Context()); leader == nil {
			return errors.New("none of the replicas is the leader")
		}
		return nil
	})
	return leader
}

// refill restarts missing replicas at the end of a test.
func (w *world) refill(s *shard) {
	w.Helper()
	w.Cleanup(func() {
		if err := s.fill(context.WithoutCancel(w.Context())); err != nil {
			w.Error(err)
		}
	})
}

// selectors returns the selectors of the Deployments in config/sharding, by the name of the shard.
func selectors() (map[string]string, error) {
	deployments, err := deployments("config/sharding")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, d := range deployments {
		name := strings.TrimPrefix(strings.TrimPrefix(d.Name, "gating-controller"), "-")
		found[name] = selectorOf(&d)
	}
	if len(found) != 2 || found[""] == "" || found["shard1"] == "" {
		return nil, fmt.Errorf("the selectors are %v", found)
	}
	return found, nil
}

// selectorOf returns the effective selector, which is the last one.
func selectorOf(d *appsv1.Deployment) string {
	selector := ""
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if value, ok := strings.CutPrefix(arg, "--watch-label-selector="); ok {
			selector = value
		}
	}
	return selector
}
