// Package expression compiles and evaluates the CEL expressions in specs, with the
// functions that Flux has.
package expression

import (
	"context"
	"fmt"
	"strings"
	"time"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/utils/lru"

	"github.com/fluxcd/pkg/runtime/cel"
)

// maxTime bounds an evaluation. What people write takes microseconds; only nested
// loops over a large object take longer, and a request waits for the result.
const maxTime = 250 * time.Millisecond

// maxCompiled is how many compiled expressions are kept. Compiling one takes about a
// millisecond, and a Gate is decided on a thousand times in that time.
const maxCompiled = 1024

var compiled = lru.New(maxCompiled)

type result struct {
	expression *cel.Expression
	err        error
}

// A Bool is a CEL expression of type bool.
type Bool struct{ expression *cel.Expression }

// A String is a CEL expression of type string.
type String struct{ expression *cel.Expression }

// A Value is a CEL expression of any type.
type Value struct{ expression *cel.Expression }

// NewBool compiles an expression of type bool over variables, each an object.
func NewBool(text string, variables ...string) (*Bool, error) {
	e, err := compile(text, celgo.BoolType, variables)
	if err != nil {
		return nil, err
	}
	return &Bool{e}, nil
}

// NewString compiles an expression of type string over variables, each an object.
func NewString(text string, variables ...string) (*String, error) {
	e, err := compile(text, celgo.StringType, variables)
	if err != nil {
		return nil, err
	}
	return &String{e}, nil
}

// NewValue compiles an expression of any type over variables, each an object.
func NewValue(text string, variables ...string) (*Value, error) {
	e, err := compile(text, nil, variables)
	if err != nil {
		return nil, err
	}
	return &Value{e}, nil
}

// Evaluate returns the value of the expression for the values of its variables.
func (e *Bool) Evaluate(ctx context.Context, data map[string]any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	return e.expression.EvaluateBoolean(ctx, data)
}

// Evaluate returns the value of the expression for the values of its variables.
func (e *String) Evaluate(ctx context.Context, data map[string]any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	return e.expression.EvaluateString(ctx, data)
}

// Evaluate returns the value of the expression for the values of its variables.
func (e *Value) Evaluate(ctx context.Context, data map[string]any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	return e.expression.Evaluate(ctx, data)
}

// compile returns the same for the same, so that a spec that is compiled at each
// decision costs nothing.
func compile(text string, output *celgo.Type, variables []string) (*cel.Expression, error) {
	key := fmt.Sprint(output) + "\x00" + strings.Join(variables, "\x00") + "\x00" + text
	if known, ok := compiled.Get(key); ok {
		if r, ok := known.(result); ok {
			return r.expression, r.err
		}
	}
	options := []cel.Option{cel.WithCompile(), cel.WithStructVariables(variables...)}
	if output != nil {
		options = append(options, cel.WithOutputType(output))
	}
	e, err := cel.NewExpression(text, options...)
	compiled.Add(key, result{e, err})
	return e, err
}
