package receivers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Table has the GateReceivers that are ready to take webhooks. Each replica has its
// own.
type Table struct {
	// Secrets reads from the API server: Secrets are in no cache.
	Secrets client.Reader

	mu      sync.RWMutex
	entries map[types.NamespacedName]*entry
	// paths has entries by the digest of a path, so that the time of a look-up says
	// nothing about the existing paths.
	paths map[[sha256.Size]byte]*entry
	// holders are the entries of type generic by the digest of a token, so that the time
	// of a look-up says nothing about the existing tokens, or how many there are.
	holders map[[sha256.Size]byte]map[*entry]bool
	// unsettled are receivers that may or may not be able to become ready.
	unsettled map[types.NamespacedName]bool
	// settled are all receivers that were looked at, including the unsettled ones.
	settled map[types.NamespacedName]bool
}

// NewTable returns an empty Table.
func NewTable(secrets client.Reader) *Table {
	return &Table{
		Secrets: secrets, entries: map[types.NamespacedName]*entry{},
		paths: map[[sha256.Size]byte]*entry{}, holders: map[[sha256.Size]byte]map[*entry]bool{},
		unsettled: map[types.NamespacedName]bool{}, settled: map[types.NamespacedName]bool{},
	}
}

// Refused is an error that a retry cannot fix.
type Refused struct {
	reason string
	error
}

// Reason returns the reason in CamelCase for the condition Ready.
func (r *Refused) Reason() string { return r.reason }

// Load makes a receiver ready and returns the path of its webhook, if it has one. The
// error is a Refused if the receiver or its Secret has to change first. After any error
// nothing is requested.
func (t *Table) Load(ctx context.Context, obj *v1alpha1.GateReceiver) (string, error) {
	key := client.ObjectKeyFromObject(obj)
	e, invalid := compile(obj)
	if e == nil {
		t.put(key, nil, false)
		return "", &Refused{v1alpha1.InvalidCELExpressionReason, invalid}
	}
	var err error
	if e.tokens, err = t.tokens(ctx, e); err != nil {
		refused := errors.As(err, new(*Refused))
		if refused || !t.keep(e) {
			t.put(key, nil, !refused)
		}
		return "", err
	}
	paths := pathsOf(key, e.tokens)
	if other := t.put(key, e, false); other != "" {
		return "", &Refused{v1alpha1.TokenNotFoundReason, fmt.Errorf("the token gives the path of GateReceiver %s: use another one", other)}
	}
	if invalid != nil {
		return paths[0], &Refused{v1alpha1.InvalidCELExpressionReason, invalid}
	}
	return paths[0], nil
}

// keep lets a receiver go on with the tokens that it had if its Secret cannot be read just
// now. Nothing is requested before the Secret can be read again.
func (t *Table) keep(e *entry) bool {
	t.mu.RLock()
	before := t.entries[e.key]
	t.mu.RUnlock()
	if before == nil || before.spec.SecretRef == nil || *before.spec.SecretRef != *e.spec.SecretRef {
		return false
	}
	e.tokens = before.tokens
	return t.put(e.key, e, false) == ""
}

// Forget removes a receiver.
func (t *Table) Forget(key types.NamespacedName) {
	t.put(key, nil, false)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.settled, key)
}

// put replaces an entry, nil for none. It returns the receiver that already has one of the
// paths.
func (t *Table) put(key types.NamespacedName, e *entry, unsettled bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled[key] = true
	delete(t.unsettled, key)
	if unsettled {
		t.unsettled[key] = true
	}
	before := t.entries[key]
	t.drop(before)
	if e == nil {
		return ""
	}
	// All replicas must agree on the owner of a path, no matter in which order they look.
	for _, digest := range e.paths() {
		if other := t.paths[digest]; other != nil && !e.before(other) {
			return other.key.String()
		}
	}
	for _, digest := range e.paths() {
		t.drop(t.paths[digest])
	}
	if before != nil {
		e.limiter = before.limiter
	}
	t.add(e)
	return ""
}

func (t *Table) add(e *entry) {
	t.entries[e.key] = e
	for _, digest := range e.paths() {
		t.paths[digest] = e
	}
	for _, digest := range e.bearerTokens() {
		if t.holders[digest] == nil {
			t.holders[digest] = map[*entry]bool{}
		}
		t.holders[digest][e] = true
	}
}

// drop removes an entry, nil for none.
func (t *Table) drop(e *entry) {
	if e == nil {
		return
	}
	delete(t.entries, e.key)
	for _, digest := range e.paths() {
		delete(t.paths, digest)
	}
	for _, digest := range e.bearerTokens() {
		if delete(t.holders[digest], e); len(t.holders[digest]) == 0 {
			delete(t.holders, digest)
		}
	}
}

// find returns the receiver of a path, nil if there is none. certain is false if there may
// be one anyway.
func (t *Table) find(path string) (e *entry, certain bool) {
	digest := sha256.Sum256([]byte(path))
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.paths[digest], len(t.unsettled) == 0
}

// bearers returns the receivers of type generic that have a token and a Gate, in order
// of their names. certain is false if there may be more.
func (t *Table) bearers(token string, gate types.NamespacedName) (found []*entry, certain bool) {
	digest := sha256.Sum256([]byte(token))
	t.mu.RLock()
	defer t.mu.RUnlock()
	for e := range t.holders[digest] {
		if slices.Contains(e.wanted(&webhook{}), gate) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *entry) int { return strings.Compare(a.key.Name, b.key.Name) })
	return found, len(t.unsettled) == 0
}

// looked returns whether a receiver was looked at.
func (t *Table) looked(key types.NamespacedName) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.settled[key]
	return ok
}

// pathsOf returns the paths of a receiver, one for each token.
func pathsOf(key types.NamespacedName, tokens []string) []string {
	obj := &v1alpha1.GateReceiver{}
	obj.Name, obj.Namespace = key.Name, key.Namespace
	if len(tokens) == 0 {
		tokens = []string{""} // generic-oidc has none
	}
	paths := make([]string, len(tokens))
	for i, token := range tokens {
		paths[i] = obj.GetWebhookPath(token)
	}
	return paths
}

// tokens returns those that are valid now, the current one first.
func (t *Table) tokens(ctx context.Context, e *entry) ([]string, error) {
	if e.spec.SecretRef == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	name := types.NamespacedName{Namespace: e.key.Namespace, Name: e.spec.SecretRef.Name}
	if wrong := validation.NameIsDNSSubdomain(name.Name, false); len(wrong) > 0 {
		// A retry would not fix it, and all unknown paths would be answered with 503.
		return nil, &Refused{v1alpha1.TokenNotFoundReason, fmt.Errorf("secret '%s' cannot exist: %s", name, wrong[0])}
	}
	err := t.Secrets.Get(ctx, name, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &Refused{v1alpha1.TokenNotFoundReason, fmt.Errorf("secret '%s' does not exist", name)}
	case apierrors.IsForbidden(err):
		return nil, &Refused{v1alpha1.TokenNotFoundReason, fmt.Errorf("secret '%s' cannot be read, is config/webhooks installed? %w", name, err)}
	case err != nil:
		return nil, fmt.Errorf("secret '%s' cannot be read: %w", name, err)
	}
	tokens := []string{string(secret.Data[v1alpha1.ReceiverTokenKey]), string(secret.Data[v1alpha1.ReceiverPreviousTokenKey])}
	if tokens[0] == "" {
		return nil, &Refused{v1alpha1.TokenNotFoundReason, fmt.Errorf("invalid '%s' secret data: required field 'token'", name)}
	}
	return slices.DeleteFunc(slices.Compact(tokens), func(token string) bool { return token == "" }), nil
}
