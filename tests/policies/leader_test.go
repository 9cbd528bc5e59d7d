package policies

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// The process of these tests runs without leader election, which needs a Pod.
func TestTheControllerMayElectALeader(t *testing.T) {
	w := newWorld(t)
	account := w.as("system:serviceaccount:gating-system:gating-controller")
	config, err := clientcmd.BuildConfigFromFlags("", account.Kubeconfig)
	w.Must(err)
	clients, err := kubernetes.NewForConfig(config)
	w.Must(err)
	for _, identity := range []string{"first", "second"} { // the second finds the lease
		lock := &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Name: "gating-controller-leader-election", Namespace: harness.RuntimeNamespace},
			Client:    clients.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}
		ctx, cancel := context.WithTimeout(w.Context(), harness.Patience)
		elected := false
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					defer cancel()
					elected = nil == harness.Eventually(ctx, harness.Patience, "the lease is renewed", func() error {
						record, _, err := lock.Get(ctx)
						if err == nil && (record.HolderIdentity != identity || !record.RenewTime.After(record.AcquireTime.Time)) {
							err = errors.New("not yet")
						}
						return err
					})
				},
				OnStoppedLeading: func() {},
			},
		})
		cancel()
		if !elected {
			t.Errorf("%s was not elected", identity)
		}
	}
}
