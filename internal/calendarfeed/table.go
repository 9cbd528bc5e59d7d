package calendarfeed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/endpoint"
)

// entry is a CalendarFeed that is ready to be served.
type entry struct {
	obj    *v1alpha1.CalendarFeed
	key    types.NamespacedName
	tokens []string
	// selector selects Gates, nil if spec.gateRefs names them.
	selector labels.Selector
	limiter  *rate.Limiter
	page     *page
}

// Key implements endpoint.Entry.
func (e *entry) Key() types.NamespacedName { return e.key }

// Created implements endpoint.Entry.
func (e *entry) Created() time.Time { return e.obj.CreationTimestamp.Time }

// Paths implements endpoint.Entry.
func (e *entry) Paths() (paths []string) {
	for _, token := range e.tokens {
		paths = append(paths, e.obj.GetCalendarPath(token))
	}
	return paths
}

// Bearers implements endpoint.Entry.
func (*entry) Bearers() []string { return nil }

// Inherit implements endpoint.Entry. The rate limit and the cached content survive a change of the calendar.
func (e *entry) Inherit(before *entry) { e.limiter, e.page = before.limiter, before.page }

// Table holds the CalendarFeeds that are ready to be served. Each replica has its own Table.
type Table struct {
	// Secrets reads from the API server, because Secrets are not cached.
	Secrets client.Reader
	// Source is notified of deleted calendars.
	Source *Source

	*endpoint.Table[*entry]
}

// NewTable returns an empty Table.
func NewTable(secrets client.Reader, source *Source) *Table {
	return &Table{Secrets: secrets, Source: source, Table: endpoint.NewTable[*entry]()}
}

// Load makes a calendar ready and returns its path, empty if it has none. The error is an endpoint.Refused if the calendar or its Secret
// must change before a retry can help.
func (t *Table) Load(ctx context.Context, obj *v1alpha1.CalendarFeed) (string, error) {
	e, err := compile(obj)
	if err != nil {
		t.Put(e.key, nil, false)
		return "", endpoint.Refuse(v1alpha1.InvalidSpecReason, err)
	}
	if e.tokens, err = endpoint.Tokens(ctx, t.Secrets, types.NamespacedName{Namespace: obj.Namespace, Name: obj.Spec.SecretRef.Name}, "config/calendar-feed"); err != nil {
		refused := errors.As(err, new(*endpoint.Refused))
		if refused || !t.keep(e) {
			t.Put(e.key, nil, !refused)
		}
		return "", err
	}
	if other := t.Put(e.key, e, false); other != "" {
		return "", endpoint.Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf("the token results in the same path as that of CalendarFeed %s: use another token", other))
	}
	return e.Paths()[0], nil
}

// keep keeps the previous tokens of a calendar whose Secret temporarily cannot be read. It returns false if there are no previous tokens,
// or if their path belongs to another calendar.
func (t *Table) keep(e *entry) bool {
	before := t.Get(e.key)
	if before == nil || before.obj.Spec.SecretRef != e.obj.Spec.SecretRef {
		return false
	}
	e.tokens = before.tokens
	return t.Put(e.key, e, false) == ""
}

// Forget removes a deleted calendar.
func (t *Table) Forget(key types.NamespacedName) {
	t.Table.Forget(key)
	t.Source.unfollow(key)
}

// compile returns an entry without tokens. The entry is never nil.
func compile(obj *v1alpha1.CalendarFeed) (e *entry, err error) {
	e = &entry{
		obj: obj.DeepCopy(), key: client.ObjectKeyFromObject(obj),
		limiter: rate.NewLimiter(requestsPerSecond, burst), page: newPage(),
	}
	if (len(obj.Spec.GateRefs) == 0) == (obj.Spec.Selector == nil) {
		return e, errors.New("exactly one of gateRefs and selector must be set")
	}
	if obj.Spec.Selector != nil {
		if e.selector, err = metav1.LabelSelectorAsSelector(obj.Spec.Selector.Kubernetes()); err != nil {
			return e, fmt.Errorf("spec.selector: %w", err)
		}
	}
	return e, nil
}
