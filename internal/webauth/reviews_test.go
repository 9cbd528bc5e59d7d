package webauth

import (
	"fmt"
	"sync"
	"testing"

	"golang.org/x/time/rate"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// Two requests of a user at the same time must not get a limiter each.
func TestConcurrentRequestsOfAUserShareALimiter(t *testing.T) {
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
