package webauth

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Concurrent requests of a user must share a limiter.
func TestConcurrentRequestsOfUserShareLimiter(t *testing.T) {
	t.Parallel()
	reviews, begin := newPages(t, nil).viewers.Reviews, make(chan struct{})
	limiters := make([]*rate.Limiter, 1600)
	var group sync.WaitGroup
	for i := range limiters {
		group.Go(func() {
			<-begin
			limiters[i] = reviews.rate(&user{SubjectAccessReviewSpec: authorizationv1.SubjectAccessReviewSpec{User: fmt.Sprint(i / 8)}})
		})
	}
	close(begin)
	group.Wait()
	for i, limiter := range limiters {
		if limiter != limiters[i/8*8] {
			t.Fatal("two requests of a user have different limiters")
		}
	}
}

// hanging is an API server that does not respond to reviews of one user.
type hanging struct {
	user    string
	pending atomic.Int32
}

func (h *hanging) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	review := obj.(*authorizationv1.SubjectAccessReview) //nolint:forcetypeassert // the test creates nothing else
	if review.Spec.User == h.user {
		h.pending.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}
	review.Status.Allowed = true
	return nil
}

func TestUserLeavesHalfOfReviewsToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &hanging{user: "greedy"}
		reviews := NewReviews(server, clock.RealClock{}, logr.Discard(), MustMakeMetrics(prometheus.NewRegistry()))
		of := func(name string) *user {
			return &user{SubjectAccessReviewSpec: authorizationv1.SubjectAccessReviewSpec{User: name}}
		}
		var group sync.WaitGroup
		for i := range 2 * maxReviews {
			group.Go(func() {
				_, _ = reviews.May(t.Context(), of("greedy"), authorizationv1.ResourceAttributes{Name: fmt.Sprint(i)})
			})
		}
		synctest.Wait()
		if n := server.pending.Load(); n != maxReviews/2 {
			t.Errorf("%d reviews of one user are pending", n)
		}
		if may, err := reviews.May(t.Context(), of("modest"), authorizationv1.ResourceAttributes{}); !may || err != nil || server.pending.Load() != maxReviews/2 {
			t.Errorf("another user waits: %v", err)
		}
		group.Wait()
	})
}
