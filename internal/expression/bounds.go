package expression

import (
	"errors"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
)

const (
	// maxCost bounds an evaluation in the cost units of CEL, as in the API server. It corresponds to a second of the slowest operations, or
	// milliseconds of typical ones. An expression can visit tens of thousands of elements, but not all pairs of them.
	maxCost = 500_000

	// maxEffort bounds a single call of a function whose work or result is the product of its arguments, because CEL counts the cost only
	// after the call.
	maxEffort = 16 << 20
)

var errEffort = errors.New("operation would take too long or its result would be too long")

// efforts estimates the work of functions that can exhaust time or memory in a single call.
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
		return strings.Count(string(text), "%")<<20 + weight(args[1], 0)
	},
	"sets.contains":   pairs,
	"sets.equivalent": pairs,
	"sets.intersects": pairs,
	"indexOf":         product,
	"lastIndexOf":     product,
}

// scans estimates the work of functions that may do far more work than the sizes of their arguments and results indicate.
var scans = map[string]func(args ...ref.Val) int{"matches": scan, "indexOf": product, "lastIndexOf": product}

// counted lists text functions whose cost in CEL already grows with the length of the texts.
var counted = []string{
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.In, "contains", "startsWith", "endsWith",
}

// scan estimates the work of matching a regular expression: one step for each character and state, and about a hundred steps for each state
// to compile it.
func scan(args ...ref.Val) int {
	pattern, _ := args[1].(types.String)
	parsed, err := syntax.Parse(string(pattern), syntax.Perl)
	if err != nil {
		return 0 // an invalid pattern is refused without work
	}
	return (length(args[0]) + 100) * states(parsed)
}

// states returns the approximate number of states of a regular expression after expanding its repetitions: a{1000} has a thousand.
func states(r *syntax.Regexp) int {
	n := 1 + len(r.Rune)
	for _, sub := range r.Sub {
		n += states(sub)
	}
	if r.Op == syntax.OpRepeat {
		n *= max(1, r.Min, r.Max)
	}
	return n
}

func product(args ...ref.Val) int { return length(args[0]) * length(args[1]) }

// pairs estimates the work of comparing all elements of two lists.
func pairs(args ...ref.Val) int {
	work := weight(args[0], 0)
	if work > maxEffort {
		return work
	}
	return work / perValue * length(args[1])
}

// compared estimates the work of comparing two values. It is zero for values of different lengths, which differ without a comparison.
func compared(args ...ref.Val) int {
	if length(args[0]) != length(args[1]) {
		return 0
	}
	return weight(args[0], 0)
}

// searched estimates the work of searching a list. It is zero for a map, because a key needs only a lookup.
func searched(args ...ref.Val) int {
	if _, ok := args[1].(traits.Lister); !ok {
		return 0
	}
	return weight(args[1], 0)
}

// perValue is the work of visiting a value, in characters.
const perValue = 16

// weight returns others plus the work of visiting a value. An element counts as often as a list contains it. The count stops beyond
// maxEffort.
func weight(value ref.Val, others int) int {
	if others > maxEffort {
		return others
	}
	switch v := value.(type) {
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True && others <= maxEffort; {
			others = weight(it.Next(), others)
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True && others <= maxEffort; {
			key := it.Next()
			others = weight(v.Get(key), weight(key, others))
		}
	default:
		others += lengthOfText(value)
	}
	return others + perValue
}

// length returns the length of a text in bytes, and of a list or map in elements.
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

// bounded returns the environment that Flux uses for expressions in specs, except that no call exceeds maxEffort. The versions of libraries
// are fixed, so that an update does not add a function without an estimate.
var bounded = sync.OnceValues(func() (*cel.Env, error) {
	env, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(ext.StringsVersion(4)), ext.Sets(), ext.Encoders(ext.EncodersVersion(0)),
	)
	if err != nil {
		return nil, err
	}
	guarded, err := withZones(env)
	if err != nil {
		return nil, err
	}
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

// called returns a function that calls the implementation of an overload.
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

// guard returns a binding that calls a function only if its estimate is within maxEffort.
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

// limits returns the options that bound a program. They include no optimization, because that would compile all regular expressions in
// advance, without a bound on memory, and cache them.
func limits() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.InterruptCheckFrequency(100), cel.CostLimit(maxCost), cel.CostTracking(sizes{}), cel.CustomDecorator(guardOperations),
	}
}

// operations holds the functions whose overloads CEL does not allow a program to redeclare.
var operations = map[string]struct {
	effort func(args ...ref.Val) int
	call   functions.BinaryOp
}{
	overloads.Matches: {scan, func(text, pattern ref.Val) ref.Val {
		if text, ok := text.(traits.Matcher); ok {
			return text.Match(pattern)
		}
		return types.MaybeNoSuchOverloadErr(text)
	}},
	operators.Equals:    {compared, types.Equal},
	operators.NotEquals: {compared, func(a, b ref.Val) ref.Val { return types.Bool(types.Equal(a, b) != types.True) }},
	operators.In: {searched, func(value, in ref.Val) ref.Val {
		if in, ok := in.(traits.Container); ok {
			return in.Contains(value)
		}
		return types.MaybeNoSuchOverloadErr(in)
	}},
}

// guardOperations applies the bound of guard to operations.
func guardOperations(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	operation, ok := operations[call.Function()]
	if !ok {
		return i, nil
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		if operation.effort(args...) > maxEffort {
			return types.WrapErr(errEffort)
		}
		return operation.call(args[0], args[1])
	}), nil
}

// sizes adds the sizes of arguments and results to the cost, so that no text grows without bounds call by call, and repeated visits are not
// free.
type sizes struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (sizes) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	if effort := scans[function]; effort != nil {
		cost := 1 + uint64(effort(args...))/100
		return &cost
	}
	texts := 0
	for _, arg := range args {
		texts += lengthOfText(arg)
	}
	cost := 1 + uint64(texts+lengthOfText(result))/100
	switch result.(type) {
	case types.String, types.Bytes:
		return &cost
	case traits.Lister:
		if function == operators.Add {
			return nil // the lists are not copied
		}
		cost += uint64(length(result))
		return &cost
	}
	if texts == 0 || slices.Contains(counted, function) {
		return nil
	}
	return &cost
}

func lengthOfText(value ref.Val) int {
	switch value.(type) {
	case types.String, types.Bytes:
		return length(value)
	}
	return 0
}
