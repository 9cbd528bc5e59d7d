package validate

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/expression"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// rules maps kinds to checks that neither the schema nor CEL can perform, such as whether a cron expression ever fires.
var rules = map[string]func(content map[string]any) field.ErrorList{
	v1alpha1.GateKind:          ruleFor(gate.Validate),
	v1alpha1.GateExceptionKind: ruleFor(timetable.ValidateException),
	v1alpha1.GateReceiverKind:  ruleFor(receiverErrors),
}

// ruleFor returns a rule that decodes a manifest and checks it. It returns no errors for a manifest that cannot be decoded, because the
// schema already reports them.
func ruleFor[T any](check func(*T) field.ErrorList) func(map[string]any) field.ErrorList {
	return func(content map[string]any) field.ErrorList {
		obj := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj); err != nil {
			return nil
		}
		return check(obj)
	}
}

// codeErrors returns the errors found by the rules for a kind.
func codeErrors(kind string, content map[string]any) field.ErrorList {
	if rule, ok := rules[kind]; ok {
		return rule(content)
	}
	return nil
}

// receiverErrors compiles all expressions of a GateReceiver.
func receiverErrors(r *v1alpha1.GateReceiver) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	add := func(path *field.Path, text string, err error) {
		if err != nil {
			errs = append(errs, field.Invalid(path, text, err.Error()))
		}
	}
	if text := r.Spec.Filter; text != "" {
		_, err := expression.NewBool(text, expression.OfReceiver...)
		add(spec.Child("filter"), text, err)
	}
	if text := r.Spec.ActionExpr; text != "" {
		_, err := expression.NewString(text, expression.OfReceiver...)
		add(spec.Child("actionExpr"), text, err)
	}
	for i, provider := range r.Spec.OIDCProviders {
		path, names := spec.Child("oidcProviders").Index(i), map[string]bool{}
		for k, v := range provider.Variables {
			at := path.Child("variables").Index(k)
			if names[v.Name] {
				add(at.Child("name"), v.Name, errors.New("another variable has this name"))
			}
			names[v.Name] = true
			_, err := expression.NewValue(v.Expression, expression.OfProvider...)
			add(at.Child("expression"), v.Expression, err)
		}
		for k, v := range provider.Validations {
			_, err := expression.NewBool(v.Expression, expression.OfProvider...)
			add(path.Child("validations").Index(k).Child("expression"), v.Expression, err)
		}
	}
	return errs
}
