package receivers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/endpoint"
)

// Table holds the GateReceivers that are ready to accept webhooks. Each replica has its own Table.
type Table struct {
	// Secrets reads from the API server, because Secrets are not cached.
	Secrets client.Reader

	*endpoint.Table[*entry]
}

// NewTable returns an empty Table.
func NewTable(secrets client.Reader) *Table {
	return &Table{Secrets: secrets, Table: endpoint.NewTable[*entry]()}
}

// Refused is an error that a retry cannot fix.
type Refused = endpoint.Refused

// Load makes a receiver ready and returns the path of its webhook, if it has one. The error is a Refused if the receiver or its Secret
// must be changed first. After an error, the receiver opens no Gate.
func (t *Table) Load(ctx context.Context, obj *v1alpha1.GateReceiver) (string, error) {
	key := client.ObjectKeyFromObject(obj)
	e, invalid := compile(obj)
	if e == nil {
		t.Put(key, nil, false)
		return "", endpoint.Refuse(v1alpha1.InvalidCELExpressionReason, invalid)
	}
	var err error
	if e.credentials, err = t.credentials(ctx, e); err != nil {
		refused := errors.As(err, new(*Refused))
		if refused || !t.keep(e) {
			t.Put(key, nil, !refused)
		}
		return "", err
	}
	paths := e.Paths()
	if other := t.Put(key, e, false); other != "" {
		return "", endpoint.Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf(msgPathTaken, other))
	}
	if invalid != nil {
		return paths[0], endpoint.Refuse(v1alpha1.InvalidCELExpressionReason, invalid)
	}
	if err := e.checkPathOnly(); err != nil {
		return paths[0], endpoint.Refuse(v1alpha1.InvalidSpecReason, err)
	}
	return paths[0], nil
}

// keep keeps the previous tokens of a receiver if its Secret temporarily cannot be read. The receiver makes no requests until the Secret
// can be read again.
func (t *Table) keep(e *entry) bool {
	before := t.Get(e.key)
	if before == nil || before.spec.SecretRef == nil || *before.spec.SecretRef != *e.spec.SecretRef {
		return false
	}
	e.credentials = before.credentials
	return t.Put(e.key, e, false) == ""
}

// bearersFor returns the receivers of type generic that have the given token and Gate, sorted by name. certain is false if there may be
// more.
func (t *Table) bearersFor(token string, gate types.NamespacedName) (found []*entry, certain bool) {
	found, certain = t.FindBearers(token)
	found = slices.DeleteFunc(found, func(e *entry) bool { return !slices.Contains(e.gatesFor(&webhook{}), gate) })
	slices.SortFunc(found, func(a, b *entry) int { return strings.Compare(a.key.Name, b.key.Name) })
	return found, certain
}

// pathsOf returns the paths of a receiver, one for each token.
func pathsOf(key types.NamespacedName, tokens []string) []string {
	obj := &v1alpha1.GateReceiver{}
	obj.Name, obj.Namespace = key.Name, key.Namespace
	if len(tokens) == 0 {
		tokens = []string{""} // generic-oidc has no tokens
	}
	paths := make([]string, len(tokens))
	for i, token := range tokens {
		paths[i] = obj.GetWebhookPath(token)
	}
	return paths
}

// credentials returns the current credentials. The error is a Refused if the type of the receiver cannot use them.
func (t *Table) credentials(ctx context.Context, e *entry) (endpoint.Credentials, error) {
	if e.spec.SecretRef == nil {
		return endpoint.Credentials{}, nil
	}
	name := types.NamespacedName{Namespace: e.key.Namespace, Name: e.spec.SecretRef.Name}
	c, err := endpoint.ReadCredentials(ctx, t.Secrets, name, "config/webhooks")
	if err != nil {
		return c, err
	}
	if err := usable(e.spec.Type, c); err != nil {
		return endpoint.Credentials{}, endpoint.Refuse(v1alpha1.TokenNotFoundReason, fmt.Errorf("invalid '%s' secret data: %w", name, err))
	}
	return c, nil
}

// usable returns an error if receivers of a type cannot verify webhooks with the tokens in a Secret. A signing token must not be ignored,
// because a webhook would then need only one of two configured proofs.
func usable(kind string, c endpoint.Credentials) (err error) {
	switch kind {
	case v1alpha1.GenericReceiver, v1alpha1.AlertmanagerReceiver:
		if len(c.SigningTokens) > 0 {
			err = fmt.Errorf(msgNoSignature, kind, v1alpha1.ReceiverSigningTokenKey)
		}
	case v1alpha1.GitLabReceiver:
		_, err = signingKeys(c.SigningTokens)
	case v1alpha1.StandardWebhooksReceiver:
		_, err = signingKeys(c.SigningKeys())
	}
	return err
}
