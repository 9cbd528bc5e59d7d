package webauth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/ui"
)

// Creator creates reviews. Nothing else is ever created by it.
type Creator interface {
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// Reviews are what the API server says who somebody is and what they may do. It has no token, only digests.
type Reviews struct {
	creator Creator
	clock   clock.PassiveClock
	log     logr.Logger
	metrics *Metrics

	people    *memory[*person]
	decisions *memory[bool]
	// nobody has the tokens of nobody. However many there are, they push out no person.
	nobody *memory[bool]
	// askers say how often the API server is asked what a person may do.
	askers *memory[*rate.Limiter]
	// slots has a value for each review that goes on, underway has one for all who ask the same.
	slots     chan struct{}
	underway  singleflight.Group
	strangers *rate.Limiter
}

// person is somebody whom the API server knows.
type person struct {
	authorizationv1.SubjectAccessReviewSpec
	// key is the same for the same person with the same rights. It differs between tokens of a service account, which have an ID each.
	key string
}

// name is the same for all tokens of a person.
func (p *person) name() string { return fmt.Sprintf("%q %q", p.User, p.UID) }

// NewReviews returns Reviews that a client asks for.
func NewReviews(creator Creator, clock clock.PassiveClock, log logr.Logger, metrics *Metrics) *Reviews {
	return &Reviews{
		creator: creator, clock: clock, log: log, metrics: metrics, people: newMemory[*person](maxTokens), nobody: newMemory[bool](maxTokens), askers: newMemory[*rate.Limiter](maxTokens), decisions: newMemory[bool](maxDecisions),
		slots: make(chan struct{}, maxReviews), strangers: rate.NewLimiter(strangersPerSecond, strangersAtOnce),
	}
}

// tokenOf returns the bearer token of a request, empty if it has none.
func tokenOf(r *http.Request) (string, error) {
	sent := r.Header.Values("Authorization")
	if len(sent) > 1 {
		return "", refuse(http.StatusUnauthorized, "there is more than one header Authorization")
	}
	if len(sent) == 0 {
		return "", nil
	}
	scheme, token, _ := strings.Cut(sent[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", nil // such as the password that an ingress has asked for
	}
	if token = strings.TrimSpace(token); token == "" || len(token) > maxToken {
		return "", refuse(http.StatusUnauthorized, "the token is empty or too long")
	}
	return token, nil
}

func refuse(code int, format string, args ...any) error {
	return ui.Refused{Code: code, Cause: fmt.Errorf(format, args...)}
}

// Identify asks the API server whose token it is, unless it has said so in the last seconds.
func (v *Reviews) Identify(ctx context.Context, token string) (*person, error) {
	digest := sha256.Sum256([]byte(token))
	key, now := string(digest[:]), v.clock.Now()
	who, known, counts := v.people.get(key, now)
	if _, _, refused := v.nobody.get(key, now); refused {
		who, counts = nil, true
	}
	if !counts {
		if !known && !v.strangers.AllowN(now, 1) {
			return nil, refuse(http.StatusTooManyRequests, "too many tokens are sent that nobody knows")
		}
		asked, err := v.ask(ctx, "token "+key, func(ctx context.Context) (any, error) { return v.reviewToken(ctx, key, token) })
		if err != nil {
			return nil, err
		}
		who, _ = asked.(*person)
	}
	if who == nil {
		return nil, refuse(http.StatusUnauthorized, "the cluster does not know your token, or it has expired")
	}
	return who, nil
}

// reviewToken asks the API server whose token it is, nil for nobody's.
func (v *Reviews) reviewToken(ctx context.Context, key, token string) (*person, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := v.create(ctx, "token", review); err != nil {
		return nil, err
	}
	var who *person
	if review.Status.Authenticated {
		user := review.Status.User
		who = &person{SubjectAccessReviewSpec: authorizationv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{}}}
		for name, values := range user.Extra {
			who.Extra[name] = authorizationv1.ExtraValue(values)
		}
		raw, err := json.Marshal(user)
		if err != nil {
			return nil, err
		}
		digest := sha256.Sum256(raw)
		who.key = string(digest[:])
	}
	v.metrics.reviewed("token", who != nil)
	if who == nil {
		v.nobody.put(key, true, v.clock.Now())
	} else {
		v.people.put(key, who, v.clock.Now())
	}
	return who, nil
}

// May returns whether somebody may do something. The attributes are those of a resource.
func (v *Reviews) May(ctx context.Context, who *person, a authorizationv1.ResourceAttributes) (bool, error) {
	key, now := fmt.Sprintf("%s%q", who.key, []string{a.Verb, a.Group, a.Resource, a.Namespace, a.Name}), v.clock.Now()
	if may, _, counts := v.decisions.get(key, now); counts {
		return may, nil
	}
	limiter := v.askers.touch(who.name(), rate.NewLimiter(accessPerSecond, accessAtOnce), now)
	if !limiter.AllowN(now, 1) {
		return false, refuse(http.StatusTooManyRequests, "you ask for too much at once")
	}
	asked, err := v.ask(ctx, "access "+key, func(ctx context.Context) (any, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: *who.DeepCopy()}
		review.Spec.ResourceAttributes = &a
		if err := v.create(ctx, "access", review); err != nil {
			return false, err
		}
		may := review.Status.Allowed && !review.Status.Denied
		v.metrics.reviewed("access", may)
		v.decisions.put(key, may, v.clock.Now())
		return may, nil
	})
	may, _ := asked.(bool)
	return may && err == nil, err
}

// ask asks once for all who want to know the same. A viewer who leaves does not keep the others from the answer.
func (v *Reviews) ask(ctx context.Context, key string, review func(context.Context) (any, error)) (any, error) {
	asked := v.underway.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		return review(ctx)
	})
	select {
	case result := <-asked:
		return result.Val, result.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errNobodySays is for a viewer about whom the API server says nothing. The error is in the log: it may name things that a viewer must not know.
var errNobodySays = ui.Refused{Code: http.StatusServiceUnavailable, Cause: errors.New("the cluster does not say now what you may see, so you see nothing")}

func (v *Reviews) create(ctx context.Context, kind string, review client.Object) error {
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return errNobodySays
	}
	if err := v.creator.Create(ctx, review); err != nil {
		v.metrics.failed(kind)
		v.log.Error(err, "The API server does not say what a viewer may see, is config/ui installed?", "review", kind)
		return errNobodySays
	}
	return nil
}
