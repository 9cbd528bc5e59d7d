package receivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// Responses of Flagger's load tester.
const (
	flaggerOK        = "OK"
	flaggerApproved  = "Approved"
	flaggerForbidden = "Forbidden"
)

// flaggerOpens is the response to a request to open. Flagger cannot sign its requests.
const flaggerOpens = "Forbidden: open the gate with kubectl gate open, or with a GateReceiver whose type verifies its sender, such as generic-hmac"

// rollbackPrefix is the prefix of the name of the Gate that decides about a rollback, as in the load tester. Rollbacks use a separate
// Gate, so that permission for a rollout does not permit a rollback.
const rollbackPrefix = "rollback."

// Flagger serves the manual gating endpoints of Flagger's load tester. Checks are served from a cache. A close needs the token of a
// GateReceiver of type generic, which then makes the request. These endpoints never open a Gate.
type Flagger struct {
	// Handler enforces the limits and makes requests. It is not the handler of webhooks, so the two do not share limits.
	Handler *Handler
	// Gates reads from a cache.
	Gates client.Reader
	// AllowCrossNamespaceRefs permits a canary to use Gates in other namespaces.
	AllowCrossNamespaceRefs bool
}

// flaggerEndpoint is a path of the load tester.
type flaggerEndpoint struct {
	// action is the requested action, empty for a check.
	action v1alpha1.RequestAction
	// prefix is the prefix of the name of the Gate.
	prefix string
}

var flaggerEndpoints = map[string]flaggerEndpoint{
	"/gate/check":     {},
	"/gate/open":      {action: v1alpha1.RequestOpen},
	"/gate/close":     {action: v1alpha1.RequestClose},
	"/rollback/check": {prefix: rollbackPrefix},
	"/rollback/open":  {action: v1alpha1.RequestOpen, prefix: rollbackPrefix},
	"/rollback/close": {action: v1alpha1.RequestClose, prefix: rollbackPrefix},
}

// ServeHTTP implements http.Handler.
func (f *Flagger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer f.Handler.recovered(w)
	endpoint, known := flaggerEndpoints[r.URL.Path]
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		respond(w, http.StatusMethodNotAllowed, "")
		return
	case r.URL.Path == "/gate/approve":
		respond(w, http.StatusOK, flaggerOK)
		return
	case r.URL.Path == "/gate/halt":
		respond(w, http.StatusForbidden, flaggerForbidden)
		return
	case !known:
		respond(w, http.StatusNotFound, "")
		return
	}
	if refused := acceptable(w, r, smallBodyBytes); refused != nil {
		respond(w, refused.code, "")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, smallBodyBytes))
	if err != nil {
		respond(w, unreadable(err).code, "")
		return
	}
	canary, err := canaryOf(body)
	if err != nil {
		respond(w, http.StatusBadRequest, "")
		return
	}
	if endpoint.action == "" {
		f.check(w, r, canary, endpoint)
		return
	}
	f.request(w, r, canary, endpoint)
}

// canary is a request from Flagger.
type canary struct {
	name, namespace string
	metadata        map[string]string
	// fields contains all fields of the request except the token.
	fields map[string]any
}

// canaryOf parses a request. It reads each field once, by its exact name, so that the expressions of receivers see the values that are
// used.
func canaryOf(body []byte) (*canary, error) {
	fields, err := parseObject(body)
	if err != nil {
		return nil, err
	}
	c := &canary{metadata: map[string]string{}, fields: fields}
	for name, field := range map[string]*string{"name": &c.name, "namespace": &c.namespace} {
		value, ok := c.fields[name].(string)
		if !ok && c.fields[name] != nil {
			return nil, fmt.Errorf(msgNotText, name)
		}
		*field = value
	}
	metadata, ok := c.fields["metadata"].(map[string]any)
	if !ok && c.fields["metadata"] != nil {
		return nil, errors.New(msgMetadataForm)
	}
	for name, value := range metadata {
		if c.metadata[name], ok = value.(string); !ok {
			return nil, errors.New(msgMetadataText)
		}
	}
	delete(metadata, "token")
	return c, nil
}

// gate returns the Gate that a canary refers to. It returns false for a Gate that cannot exist, or that the canary must not use.
func (f *Flagger) gate(c *canary, endpoint flaggerEndpoint) (types.NamespacedName, bool) {
	key := types.NamespacedName{Namespace: c.namespace, Name: c.name}
	if named := c.metadata["gate"]; named != "" {
		key.Name = named
		if namespace, name, qualified := strings.Cut(named, "/"); qualified {
			key = types.NamespacedName{Namespace: namespace, Name: name}
		}
	}
	key.Name = endpoint.prefix + key.Name
	// In a cache key, a name with a slash would point to another namespace.
	possible := len(validation.IsDNS1123Label(key.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(key.Name)) == 0
	return key, possible && (key.Namespace == c.namespace || f.AllowCrossNamespaceRefs)
}

// check responds whether a Gate is open. If that is unknown, it responds that the Gate is closed. This also applies to rollbacks, so that
// nothing is rolled back.
func (f *Flagger) check(w http.ResponseWriter, r *http.Request, c *canary, endpoint flaggerEndpoint) {
	key, ok := f.gate(c, endpoint)
	if !ok || !f.open(r.Context(), key) {
		respond(w, http.StatusForbidden, flaggerForbidden)
	} else {
		respond(w, http.StatusOK, flaggerApproved)
	}
	// Flagger checks every few seconds.
	if debug := f.Handler.Log.V(1); ok && debug.Enabled() {
		debug.Info("Gate checked", "path", r.URL.Path, "gate", key.String(), "remote", r.RemoteAddr)
	}
}

// open returns whether a Gate is open in the cache.
func (f *Flagger) open(ctx context.Context, key types.NamespacedName) bool {
	g := &v1alpha1.Gate{}
	if err := f.Gates.Get(ctx, key, g, client.UnsafeDisableDeepCopy); err != nil {
		if !apierrors.IsNotFound(err) {
			f.Handler.Log.Error(err, "A gate could not be read from the cache", "gate", key.String())
		}
		return false
	}
	return gate.ReportedOpen(g, f.Handler.Clock.Now())
}

// request serves the paths that request to open or close a Gate.
func (f *Flagger) request(w http.ResponseWriter, r *http.Request, c *canary, endpoint flaggerEndpoint) {
	ctx, cancel := context.WithTimeout(r.Context(), responseTimeout)
	defer cancel()
	a := &response{code: http.StatusForbidden, text: flaggerForbidden}
	switch key, ok := f.gate(c, endpoint); {
	case endpoint.action == v1alpha1.RequestOpen:
		a.text, a.details = flaggerOpens, []any{"path", r.URL.Path}
	case ok:
		a = f.close(ctx, r, c, key)
		a.details = append([]any{"path", r.URL.Path, "gate", key.String()}, a.details...)
	}
	f.Handler.Metrics.count(a.from, a.code)
	f.Handler.log(r, a)
	switch {
	case a.code == http.StatusOK:
		respond(w, http.StatusAccepted, "")
	case a.code == http.StatusNotFound || errors.Is(a.err, errNoGate):
		respond(w, http.StatusForbidden, flaggerForbidden)
	default:
		respond(w, a.code, a.text)
	}
}

// close requests a close through the first matching receiver whose action is to close. If there is none, it returns the refusal of one of
// the receivers, or Forbidden if they request something else.
func (f *Flagger) close(ctx context.Context, r *http.Request, c *canary, key types.NamespacedName) *response {
	token := c.token(r.Header)
	bearers, certain := f.Handler.Table.bearersFor(token, key)
	if len(bearers) == 0 && !certain {
		return busy()
	}
	result := &response{code: http.StatusForbidden, text: flaggerForbidden}
	for _, e := range bearers {
		in := &incoming{path: pathsOf(e.key, []string{token})[0], header: r.Header, tokens: e.credentials.Tokens, now: f.Handler.Clock.Now()}
		hook := &webhook{reason: c.reason(), body: c.fields}
		wanted, refused := f.Handler.decide(ctx, e, in, hook)
		switch {
		case refused != nil:
			result, result.from = refused, e.key
			continue
		case wanted.action != v1alpha1.RequestClose:
			continue
		}
		result = f.Handler.put(ctx, e, in, hook, wanted, []types.NamespacedName{key})
		result.from = e.key
		if result.code == http.StatusOK && wanted.targets == nil && !f.isClosed(ctx, key) {
			return &response{code: http.StatusServiceUnavailable, text: msgCloseNotVisible, from: e.key}
		}
		return result
	}
	return result
}

// isClosed waits until checks report that a Gate is closed, because a check must not contradict a confirmed close.
func (f *Flagger) isClosed(ctx context.Context, key types.NamespacedName) bool {
	return wait.PollUntilContextCancel(ctx, cacheInterval, true, func(ctx context.Context) (bool, error) {
		return !f.open(ctx, key), nil
	}) == nil
}

// token returns the token of the sender, empty if there is none or it is too long. Flagger cannot set a header.
func (c *canary) token(header http.Header) string {
	token := bearer(header)
	if token == "" {
		token = c.metadata["token"]
	}
	if len(token) > maxTokenBytes {
		return ""
	}
	return token
}

// reason returns the reason in the request.
func (c *canary) reason() string {
	if reason := text(c.fields, "reason", "message"); reason != "" {
		return reason
	}
	metadata, _ := c.fields["metadata"].(map[string]any)
	return text(metadata, "reason", "message")
}
