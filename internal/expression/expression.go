// Package expression compiles and evaluates the CEL expressions in specs, with the same functions as Flux.
package expression

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/utils/lru"
)

// maxTime bounds an evaluation. Typical expressions take microseconds. Only nested loops over a large object take longer, and a request
// waits for the result. This limit ends only the innermost loop, whereas maxCost ends the whole evaluation.
const maxTime = 250 * time.Millisecond

// maxCompiled bounds the cache of compiled expressions. Compiling an expression takes about a millisecond, a thousand times as long as a
// decision on a Gate.
const maxCompiled = 1024

var compiled = lru.New(maxCompiled)

type result struct {
	program *program
	err     error
}

// A Bool is a CEL expression of type bool.
type Bool struct{ program *program }

// A String is a CEL expression of type string.
type String struct{ program *program }

// A Strings is a CEL expression of type list(string).
type Strings struct{ program *program }

// A Value is a CEL expression of any type.
type Value struct{ program *program }

// NewBool compiles an expression of type bool with the given variables, each of which is an object.
func NewBool(text string, variables ...string) (*Bool, error) {
	e, err := compile(text, cel.BoolType, variables)
	if err != nil {
		return nil, err
	}
	return &Bool{e}, nil
}

// NewString compiles an expression of type string with the given variables, each of which is an object.
func NewString(text string, variables ...string) (*String, error) {
	e, err := compile(text, cel.StringType, variables)
	if err != nil {
		return nil, err
	}
	return &String{e}, nil
}

// NewStrings compiles an expression of type list(string) with the given variables, each of which is an object.
func NewStrings(text string, variables ...string) (*Strings, error) {
	e, err := compile(text, cel.ListType(cel.StringType), variables)
	if err != nil {
		return nil, err
	}
	return &Strings{e}, nil
}

// NewValue compiles an expression of any type with the given variables, each of which is an object.
func NewValue(text string, variables ...string) (*Value, error) {
	e, err := compile(text, nil, variables)
	if err != nil {
		return nil, err
	}
	return &Value{e}, nil
}

// Evaluate returns the value of the expression for the values of its variables.
func (e *Bool) Evaluate(ctx context.Context, data map[string]any) (bool, error) {
	value, err := e.program.evaluate(ctx, data)
	if err != nil {
		return false, err
	}
	result, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("failed to evaluate CEL expression as boolean: '%s'", e.program.text)
	}
	return bool(result), nil
}

// Evaluate returns the value of the expression for the values of its variables.
func (e *String) Evaluate(ctx context.Context, data map[string]any) (string, error) {
	value, err := e.program.evaluate(ctx, data)
	if err != nil {
		return "", err
	}
	result, ok := value.(types.String)
	if !ok {
		return "", fmt.Errorf("failed to evaluate CEL expression as string: '%s'", e.program.text)
	}
	return string(result), nil
}

// Evaluate returns the value of the expression for the values of its variables.
func (e *Strings) Evaluate(ctx context.Context, data map[string]any) ([]string, error) {
	value, err := e.program.evaluate(ctx, data)
	if err != nil {
		return nil, err
	}
	result, err := value.ConvertToNative(reflect.TypeFor[[]string]())
	texts, ok := result.([]string)
	if err != nil || !ok {
		return nil, fmt.Errorf("failed to evaluate CEL expression as list of strings: '%s'", e.program.text)
	}
	return texts, nil
}

// Evaluate returns the value of the expression for the values of its variables.
func (e *Value) Evaluate(ctx context.Context, data map[string]any) (any, error) {
	value, err := e.program.evaluate(ctx, data)
	if err != nil {
		return nil, err
	}
	return value.Value(), nil
}

// program is a compiled expression.
type program struct {
	text string
	cel.Program
}

func (p *program) evaluate(ctx context.Context, data map[string]any) (ref.Val, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	value, _, err := p.ContextEval(ctx, data)
	if err != nil {
		return nil, fmt.Errorf("failed to evaluate the CEL expression '%s': %w", p.text, err)
	}
	return value, nil
}

// compile returns a program, from the cache if possible, because specs are compiled at each decision.
func compile(text string, output *cel.Type, variables []string) (*program, error) {
	key := fmt.Sprint(output) + "\x00" + strings.Join(variables, "\x00") + "\x00" + text
	if known, ok := compiled.Get(key); ok {
		if r, ok := known.(result); ok {
			return r.program, r.err
		}
	}
	p, err := compileUncached(text, output, variables)
	compiled.Add(key, result{p, err})
	return p, err
}

func compileUncached(text string, output *cel.Type, variables []string) (*program, error) {
	env, err := bounded()
	if err != nil {
		return nil, fmt.Errorf("failed to create CEL environment: %w", err)
	}
	var declared []cel.EnvOption
	for _, name := range variables {
		declared = append(declared, cel.Variable(name, cel.ObjectType("google.protobuf.Struct")))
	}
	if env, err = env.Extend(declared...); err != nil {
		return nil, fmt.Errorf("failed to create CEL environment: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("failed to parse the CEL expression '%s': %s", text, issues.String())
	}
	if got := ast.OutputType(); output != nil && !output.IsExactType(got) && (output.Kind() != cel.ListKind || !got.IsAssignableType(output)) {
		return nil, fmt.Errorf("CEL expression output type mismatch: expected %s, got %s", output, got)
	}
	p, err := env.Program(ast, limits()...)
	if err != nil {
		return nil, fmt.Errorf("failed to create CEL program: %w", err)
	}
	return &program{text, p}, nil
}
