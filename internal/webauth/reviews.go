package webauth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/limit"
	"github.com/fluxcd/gating-controller/internal/ui"
)

// Creator creates reviews. It is used for nothing else.
type Creator interface {
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// Reviews authenticates and authorizes users with the API server, and caches the results. It stores only digests of tokens.
type Reviews struct {
	creator Creator
	clock   clock.PassiveClock
	log     logr.Logger
	metrics *Metrics

	// users stores the users of valid tokens. invalid stores all other tokens separately, so that they cannot evict users.
	users, invalid, decisions *cache.LRUExpireCache

	slots *limit.Limiter
	// pending shares a review among concurrent requests that need the same review.
	pending singleflight.Group
	// unknown limits the reviews of unknown tokens, and rates has a rate.Limiter for the access reviews of each user.
	unknown *rate.Limiter
	mu      sync.Mutex
	rates   *cache.LRUExpireCache
}

// user is an authenticated user, with the attributes for access reviews.
type user struct {
	authorizationv1.SubjectAccessReviewSpec
	// key identifies a user and their permissions. It differs between the tokens of a service account, because each token has an ID.
	key      string
	reviewed time.Time
}

// name returns the name and the UID of the user, which are the same for all tokens of a user.
func (u *user) name() string { return fmt.Sprintf("%q %q", u.User, u.UID) }

// NewReviews returns Reviews that use creator to create reviews.
func NewReviews(creator Creator, clock clock.PassiveClock, log logr.Logger, metrics *Metrics) *Reviews {
	stores := func(most int) *cache.LRUExpireCache { return cache.NewLRUExpireCacheWithClock(most, clock) }
	return &Reviews{
		creator: creator, clock: clock, log: log, metrics: metrics,
		users: stores(maxTokens), invalid: stores(maxTokens), decisions: stores(maxDecisions), rates: stores(maxTokens),
		slots: limit.New(maxReviews, maxReviews/2, 0, 0), unknown: rate.NewLimiter(unknownPerSecond, unknownBurst),
	}
}

// bearerToken returns the bearer token of a request, empty if the request has no token or uses another scheme. It returns an error if the
// token is empty or too long, or if there is more than one Authorization header.
func bearerToken(r *http.Request) (string, error) {
	sent := r.Header.Values("Authorization")
	if len(sent) > 1 {
		return "", refuse(http.StatusUnauthorized, msgTwoTokens)
	}
	if len(sent) == 0 {
		return "", nil
	}
	scheme, token, _ := strings.Cut(sent[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", nil // such as a password for the ingress
	}
	if token = strings.TrimSpace(token); token == "" || len(token) > maxToken {
		return "", refuse(http.StatusUnauthorized, msgTokenSize)
	}
	return token, nil
}

func refuse(code int, format string, args ...any) error {
	return ui.Refused{Code: code, Cause: fmt.Errorf(format, args...)}
}

// Identify returns the user of a token. The TokenReview is at most reviewAge old.
func (v *Reviews) Identify(ctx context.Context, token string) (*user, error) {
	digest := sha256.Sum256([]byte(token))
	key, now := string(digest[:]), v.clock.Now()
	stored, known := v.users.Get(key)
	found, _ := stored.(*user)
	if _, isInvalid := v.invalid.Get(key); isInvalid {
		found = nil
	} else if !known || now.Sub(found.reviewed) >= reviewAge {
		if !known && !v.unknown.AllowN(now, 1) {
			return nil, refuse(http.StatusTooManyRequests, msgTooManyUnknown)
		}
		reviewed, err := v.once(ctx, "token "+key, func(ctx context.Context) (any, error) { return v.reviewToken(ctx, key, token) })
		if err != nil {
			return nil, err
		}
		found, _ = reviewed.(*user)
	}
	if found == nil {
		return nil, refuse(http.StatusUnauthorized, msgTokenRejected)
	}
	return found, nil
}

// reviewToken creates a TokenReview and caches the result. It returns nil if the token is invalid.
func (v *Reviews) reviewToken(ctx context.Context, key, token string) (*user, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := v.create(ctx, "", "token", review); err != nil {
		return nil, err
	}
	v.metrics.reviewed("token", review.Status.Authenticated)
	if !review.Status.Authenticated {
		v.invalid.Add(key, true, reviewAge)
		return nil, nil
	}
	info := review.Status.User
	raw, err := json.Marshal(info)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(raw)
	found := &user{key: string(digest[:]), reviewed: v.clock.Now(), SubjectAccessReviewSpec: authorizationv1.SubjectAccessReviewSpec{
		User: info.Username, UID: info.UID, Groups: info.Groups, Extra: map[string]authorizationv1.ExtraValue{},
	}}
	for name, values := range info.Extra {
		found.Extra[name] = authorizationv1.ExtraValue(values)
	}
	v.users.Add(key, found, knownAge)
	return found, nil
}

// May returns whether a user may access a resource. The SubjectAccessReview is at most reviewAge old.
func (v *Reviews) May(ctx context.Context, u *user, a authorizationv1.ResourceAttributes) (bool, error) {
	key := fmt.Sprintf("%s%q", u.key, []string{a.Verb, a.Group, a.Resource, a.Namespace, a.Name})
	if may, ok := v.decisions.Get(key); ok {
		return may == true, nil
	}
	if !v.rate(u).AllowN(v.clock.Now(), 1) {
		return false, refuse(http.StatusTooManyRequests, msgTooManyRequests)
	}
	reviewed, err := v.once(ctx, "access "+key, func(ctx context.Context) (any, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: *u.DeepCopy()}
		review.Spec.ResourceAttributes = &a
		if err := v.create(ctx, u.name(), "access", review); err != nil {
			return false, err
		}
		may := review.Status.Allowed && !review.Status.Denied
		v.metrics.reviewed("access", may)
		v.decisions.Add(key, may, reviewAge)
		return may, nil
	})
	may, _ := reviewed.(bool)
	return may && err == nil, err
}

// rate returns the limiter of a user's access reviews.
func (v *Reviews) rate(u *user) *rate.Limiter {
	v.mu.Lock()
	defer v.mu.Unlock()
	stored, _ := v.rates.Get(u.name())
	limiter, ok := stored.(*rate.Limiter)
	if !ok {
		limiter = rate.NewLimiter(accessPerSecond, accessBurst)
		v.rates.Add(u.name(), limiter, knownAge)
	}
	return limiter
}

// once runs a review, or waits for the result if the same review is already running. A canceled request does not cancel the review for
// other requests.
func (v *Reviews) once(ctx context.Context, key string, review func(context.Context) (any, error)) (any, error) {
	shared := v.pending.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		return review(ctx)
	})
	select {
	case result := <-shared:
		return result.Val, result.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errUnreviewed is returned if a review fails. The cause is only logged, because it may contain names that the viewer must not see.
var errUnreviewed = ui.Refused{Code: http.StatusServiceUnavailable, Cause: errors.New(msgUnreviewed)}

// create creates a review within the limits of a user. For token reviews, the user is empty, because it is not known yet.
func (v *Reviews) create(ctx context.Context, user, kind string, review client.Object) error {
	end, err := v.slots.Begin(ctx, user)
	if err != nil {
		return errUnreviewed
	}
	defer end(0)
	if err := v.creator.Create(ctx, review); err != nil {
		v.metrics.failed(kind)
		v.log.Error(err, "failed to review the access of a viewer, is config/ui installed?", "review", kind)
		return errUnreviewed
	}
	return nil
}
