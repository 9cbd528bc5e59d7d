package receivers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/endpoint"
	"github.com/fluxcd/gating-controller/internal/expression"
)

// The names of the variables in the expressions of a GateReceiver.
const (
	bodyVariable    = "req"
	headersVariable = "headers"
	claimsVariable  = "claims"
)

// secretHeaders are the headers whose values are empty in expressions, because errors of expressions are logged and returned. With a
// signature from the log, a reader of the log could repeat the request. The presence of a signature is not secret, and expressions may
// depend on it, because flux-event also accepts requests without a signature.
var secretHeaders = []string{
	"authorization", "proxy-authorization", "cookie", "x-gitlab-token",
	"x-signature", "x-hub-signature", "x-hub-signature-256", "webhook-signature",
}

// entry is a GateReceiver that is ready to accept webhooks.
type entry struct {
	key     types.NamespacedName
	created time.Time
	spec    *v1alpha1.GateReceiverSpec
	// credentials contains the tokens of the sender. It is empty for generic-oidc.
	credentials endpoint.Credentials
	verifier    verifier
	filter      *expression.Bool
	// action is spec.actionExpr, nil if spec.action is set instead.
	action *expression.String
	// targets is spec.targetsExpr, nil if it is not set.
	targets *expression.Strings
	limiter *rate.Limiter
	// broken is the reason why the receiver accepts no webhooks although it can verify senders, nil if it accepts them.
	broken error
}

// compile returns an entry without credentials. It returns no entry if the verifier is unsupported or invalid. If it returns both an
// entry and an error, the expressions are invalid.
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

// Key implements endpoint.Entry.
func (e *entry) Key() types.NamespacedName { return e.key }

// Created implements endpoint.Entry.
func (e *entry) Created() time.Time { return e.created }

// Paths implements endpoint.Entry.
func (e *entry) Paths() []string { return pathsOf(e.key, e.credentials.PathTokens()) }

// Inherit implements endpoint.Entry. A change of the receiver does not reset its rate limit.
func (e *entry) Inherit(before *entry) { e.limiter = before.limiter }

// Bearers implements endpoint.Entry. It returns the tokens that Flagger can use to act for the receiver.
func (e *entry) Bearers() []string {
	if e.spec.Type != v1alpha1.GenericReceiver {
		return nil
	}
	return e.credentials.Tokens
}

func (e *entry) compileExpressions() (err error) {
	if e.spec.Filter != "" {
		if e.filter, err = expression.NewBool(e.spec.Filter, expression.OfReceiver...); err != nil {
			return fmt.Errorf("filter: %w", err)
		}
	}
	switch {
	case (e.spec.Action == "") == (e.spec.ActionExpr == ""):
		return errors.New(msgOneAction)
	case e.spec.ActionExpr != "":
		if e.action, err = expression.NewString(e.spec.ActionExpr, expression.OfReceiver...); err != nil {
			return fmt.Errorf("actionExpr: %w", err)
		}
	case !isAction(e.spec.Action):
		return errors.New(msgActionForm)
	}
	if e.spec.TargetsExpr != "" {
		if e.targets, err = expression.NewStrings(e.spec.TargetsExpr, expression.OfReceiver...); err != nil {
			return fmt.Errorf("targetsExpr: %w", err)
		}
	}
	return nil
}

// checkPathOnly returns an error if the path is the only secret of the receiver and its spec could open Gates. The API server rejects
// such a spec, but may have stored one before this rule existed.
func (e *entry) checkPathOnly() error {
	if e.spec.Type != v1alpha1.GenericReceiver || e.spec.Action == v1alpha1.RequestClose && e.spec.ActionExpr == "" {
		return nil
	}
	return errors.New(msgPathOnlyCloses +
		msgPathOnlyRemedy)
}

func isAction(action v1alpha1.RequestAction) bool {
	return action == v1alpha1.RequestOpen || action == v1alpha1.RequestClose
}

// takes returns whether the receiver accepts an event.
func (e *entry) takes(event string) bool {
	return len(e.spec.Events) == 0 || slices.ContainsFunc(e.spec.Events, func(name string) bool { return strings.EqualFold(name, event) })
}

// decide returns the action and the targets that a webhook requests. The action is empty if it requests none.
func (e *entry) decide(ctx context.Context, header http.Header, hook *webhook) (r gateRequest, err error) {
	data := map[string]any{bodyVariable: hook.body, headersVariable: e.readable(header), claimsVariable: hook.claims}
	if hook.claims == nil {
		data[claimsVariable] = map[string]any{}
	}
	if e.filter != nil {
		if pass, err := e.filter.Evaluate(ctx, data); err != nil || !pass {
			return r, wrapped("filter", err)
		}
	}
	action := e.spec.Action
	if e.action != nil {
		result, err := e.action.Evaluate(ctx, data)
		if err != nil {
			return r, wrapped("actionExpr", err)
		}
		if action = v1alpha1.RequestAction(result); action != "" && !isAction(action) {
			// do not quote the value, which may be any part of the request
			return r, errors.New(msgActionExprForm)
		}
	}
	if action == "" {
		return r, nil
	}
	targets, err := e.limit(ctx, data)
	if err != nil || targets == nil && len(e.spec.Targets) > 0 {
		return r, wrapped("targetsExpr", err)
	}
	return gateRequest{action: action, targets: targets}, nil
}

// limit returns the targets that a webhook is limited to, nil if it is not limited or if the expression returns none.
func (e *entry) limit(ctx context.Context, data map[string]any) (all []v1alpha1.RequestTarget, err error) {
	if e.targets == nil {
		for _, t := range e.spec.Targets {
			all = append(all, v1alpha1.RequestTarget(t))
		}
		return all, nil
	}
	texts, err := e.targets.Evaluate(ctx, data)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		t, valid := annotations.ParseTarget(text)
		if !valid || !slices.ContainsFunc(e.spec.Targets, func(may v1alpha1.ReceiverTarget) bool {
			return may.Kind == t.Kind && (may.Name == t.Name || may.Name == v1alpha1.AnyName) &&
				cmp.Or(may.Namespace, e.key.Namespace) == cmp.Or(t.Namespace, e.key.Namespace)
		}) {
			return nil, errors.New(msgTargetsForm) // without the value, as for actionExpr
		}
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	if len(all) > v1alpha1.MaxRequestTargets {
		return nil, fmt.Errorf(msgTooManyTargets, v1alpha1.MaxRequestTargets)
	}
	return all, nil
}

func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// readable returns the headers that expressions can read. The values of a repeated header are joined, as in HTTP.
func (e *entry) readable(header http.Header) map[string]any {
	values := map[string]any{}
	for name, all := range maps.All(header) {
		if name = strings.ToLower(name); slices.Contains(secretHeaders, name) || strings.EqualFold(name, e.spec.Signature.GetHeader()) {
			all = nil
		}
		values[name] = strings.Join(all, ", ")
	}
	return values
}

// gatesFor returns the Gates that a webhook applies to.
func (e *entry) gatesFor(hook *webhook) []types.NamespacedName {
	var gates []types.NamespacedName
	for _, ref := range e.spec.GateRefs {
		if hook.gates == nil || slices.Contains(hook.gates, ref.Name) {
			gates = append(gates, types.NamespacedName{Namespace: e.key.Namespace, Name: ref.Name})
		}
	}
	return gates
}

// by returns the requester as recorded in the annotation.
func (e *entry) by() string { return v1alpha1.ReceiverRequester + e.key.String() }
