package receivers

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/expression"
)

// What expressions of a GateReceiver read.
const (
	bodyVariable    = "req"
	headersVariable = "headers"
	claimsVariable  = "claims"
)

// secretHeaders are empty for expressions, whose errors are logged and answered. With a
// signature, who reads the log could send the same once more. That there is one is no
// secret, and flux-event takes what has none.
var secretHeaders = []string{
	"authorization", "proxy-authorization", "cookie", "x-gitlab-token",
	"x-signature", "x-hub-signature", "x-hub-signature-256", "webhook-signature",
}

// entry is a GateReceiver that is ready to take webhooks.
type entry struct {
	key      types.NamespacedName
	created  time.Time
	spec     *v1alpha1.GateReceiverSpec
	tokens   []string
	verifier verifier
	filter   *expression.Bool
	// action is nil if spec.action is no expression.
	action  *expression.String
	limiter *rate.Limiter
	// broken says why the receiver takes nothing although it can verify a sender.
	broken error
}

// compile returns an entry without tokens, nil if it could not verify anybody.
func compile(obj *v1alpha1.GateReceiver) (*entry, error) {
	e := &entry{
		key: types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}, created: obj.CreationTimestamp.Time,
		spec: obj.Spec.DeepCopy(), limiter: rate.NewLimiter(requestsPerSecond, burst),
	}
	var err error
	if e.verifier, err = verifierOf(e.spec); err != nil {
		return nil, err
	}
	e.broken = e.compileExpressions()
	return e, e.broken
}

// before returns whether a path that both have is that of this one: the older one's.
func (e *entry) before(other *entry) bool {
	if order := e.created.Compare(other.created); order != 0 {
		return order < 0
	}
	return e.key.String() < other.key.String()
}

func (e *entry) compileExpressions() (err error) {
	if e.spec.Filter != "" {
		if e.filter, err = expression.NewBool(e.spec.Filter, bodyVariable, headersVariable, claimsVariable); err != nil {
			return fmt.Errorf("filter: %w", err)
		}
	}
	if !isAction(e.spec.Action) {
		if e.action, err = expression.NewString(e.spec.Action, bodyVariable, headersVariable, claimsVariable); err != nil {
			return fmt.Errorf("action must be open, close or an expression: %w", err)
		}
	}
	return nil
}

func isAction(text string) bool {
	return text == string(v1alpha1.RequestOpen) || text == string(v1alpha1.RequestClose)
}

// takes returns whether an event is among those of the receiver.
func (e *entry) takes(event string) bool {
	return len(e.spec.Events) == 0 || slices.ContainsFunc(e.spec.Events, func(name string) bool { return strings.EqualFold(name, event) })
}

// decide returns what a webhook asks for, empty for nothing.
func (e *entry) decide(ctx context.Context, header http.Header, hook *webhook) (v1alpha1.RequestAction, error) {
	data := map[string]any{bodyVariable: hook.body, headersVariable: readable(header), claimsVariable: hook.claims}
	if hook.claims == nil {
		data[claimsVariable] = map[string]any{}
	}
	if e.filter != nil {
		if pass, err := e.filter.Evaluate(ctx, data); err != nil || !pass {
			return "", wrapped("filter", err)
		}
	}
	if e.action == nil {
		return v1alpha1.RequestAction(e.spec.Action), nil
	}
	action, err := e.action.Evaluate(ctx, data)
	if err != nil {
		return "", wrapped("action", err)
	}
	if action != "" && !isAction(action) {
		// What it is instead may be anything of what was sent.
		return "", fmt.Errorf("action is none of 'open', 'close' and ''")
	}
	return v1alpha1.RequestAction(action), nil
}

func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// readable returns the headers that expressions read. Of several with one name it
// has all, as HTTP joins them.
func readable(header http.Header) map[string]any {
	values := map[string]any{}
	for name, all := range maps.All(header) {
		if name = strings.ToLower(name); slices.Contains(secretHeaders, name) {
			all = nil
		}
		values[name] = strings.Join(all, ", ")
	}
	return values
}

// wanted returns the Gates that a webhook is for.
func (e *entry) wanted(hook *webhook) []types.NamespacedName {
	var gates []types.NamespacedName
	for _, ref := range e.spec.Gates {
		if hook.gates == nil || slices.Contains(hook.gates, ref.Name) {
			gates = append(gates, types.NamespacedName{Namespace: e.key.Namespace, Name: ref.Name})
		}
	}
	return gates
}

// by is who a request is from, in the words of an annotation.
func (e *entry) by() string { return v1alpha1.ReceiverRequester + e.key.String() }
