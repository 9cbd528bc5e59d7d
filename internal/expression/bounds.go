package expression

import (
	"errors"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
)

const (
	// maxCost bounds an evaluation in the units of CEL, as the API server does. It is
	// a second of the slowest work, and milliseconds of the usual: tens of thousands of
	// elements, but not all pairs of them.
	maxCost = 500_000

	// maxEffort bounds a single call of a function whose work, or result, is the
	// product of what it is given: the cost is counted when it is done.
	maxEffort = 16 << 20
)

var errEffort = errors.New("operation would take too long or its result would be too long")

// efforts are the functions of which a single call can take all time or memory.
var efforts = map[string]func(args ...ref.Val) int{
	"replace": func(args ...ref.Val) int {
		return (length(args[0])/max(1, length(args[1])) + 1) * length(args[2])
	},
	"join": func(args ...ref.Val) int {
		if len(args) == 1 {
			return 0
		}
		return length(args[0]) * length(args[1])
	},
	"format": func(args ...ref.Val) int {
		text, _ := args[0].(types.String)
		return strings.Count(string(text), "%") << 20
	},
	"sets.contains":   product,
	"sets.equivalent": product,
	"sets.intersects": product,
}

func product(args ...ref.Val) int { return length(args[0]) * length(args[1]) }

// length is that of a text or bytes in bytes, and of a list or map in elements.
func length(value ref.Val) int {
	switch v := value.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Sizer:
		if size, ok := v.Size().(types.Int); ok {
			return int(size)
		}
	}
	return 0
}

// bounded returns the environment that Flux has for the expressions in its specs, in
// which no call takes more than maxEffort.
var bounded = sync.OnceValues(func() (*cel.Env, error) {
	env, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders(),
	)
	if err != nil {
		return nil, err
	}
	var guarded []cel.EnvOption
	for name, effort := range efforts {
		function := env.Functions()[name]
		bindings, err := function.Bindings()
		if err != nil {
			return nil, err
		}
		for _, overload := range function.OverloadDecls() {
			declare := cel.Overload
			if overload.IsMemberFunction() {
				declare = cel.MemberOverload
			}
			guarded = append(guarded, cel.Function(name, declare(overload.ID(), overload.ArgTypes(), overload.ResultType(),
				guard(called(overload.ID(), bindings), effort, len(overload.ArgTypes())))))
		}
	}
	return env.Extend(guarded...)
})

// called returns what calls the implementation of an overload.
func called(id string, bindings []*functions.Overload) functions.FunctionOp {
	for _, b := range bindings {
		switch {
		case b.Operator != id:
		case b.Unary != nil:
			return func(args ...ref.Val) ref.Val { return b.Unary(args[0]) }
		case b.Binary != nil:
			return func(args ...ref.Val) ref.Val { return b.Binary(args[0], args[1]) }
		default:
			return b.Function
		}
	}
	return func(...ref.Val) ref.Val { return types.NewErr("no such overload: %s", id) }
}

// guard calls a function only if it does not take too much.
func guard(call functions.FunctionOp, effort func(...ref.Val) int, arity int) cel.OverloadOpt {
	checked := func(args ...ref.Val) ref.Val {
		if effort(args...) > maxEffort {
			return types.WrapErr(errEffort)
		}
		return call(args...)
	}
	switch arity {
	case 1:
		return cel.UnaryBinding(func(a ref.Val) ref.Val { return checked(a) })
	case 2:
		return cel.BinaryBinding(func(a, b ref.Val) ref.Val { return checked(a, b) })
	default:
		return cel.FunctionBinding(checked)
	}
}

func limits() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.EvalOptions(cel.OptOptimize), cel.InterruptCheckFrequency(100), cel.CostLimit(maxCost), cel.CostTracking(sizes{}),
	}
}

// sizes counts what a call has made, too, so that no text grows beyond all bounds call
// by call.
type sizes struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (sizes) CallCost(function, _ string, _ []ref.Val, result ref.Val) *uint64 {
	switch result.(type) {
	case types.String, types.Bytes:
		cost := 1 + uint64(length(result))/100
		return &cost
	case traits.Lister:
		if function == operators.Add {
			return nil // the two lists are kept as they are
		}
		cost := 1 + uint64(length(result))
		return &cost
	}
	return nil
}
