package expression

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/fluxcd/gating-controller/internal/tz"
)

// zoned lists the functions of timestamps that take a time zone. CEL looks up the name of the zone on the machine, whereas inZone looks it
// up in the built-in data.
var zoned = []string{
	overloads.TimeGetFullYear, overloads.TimeGetMonth, overloads.TimeGetDayOfYear, overloads.TimeGetDayOfMonth,
	overloads.TimeGetDate, overloads.TimeGetDayOfWeek, overloads.TimeGetHours, overloads.TimeGetMinutes,
	overloads.TimeGetSeconds, overloads.TimeGetMilliseconds,
}

// inZone returns a binding for a function of a timestamp and a time zone. If the zone is given by name, it calls the function with the
// wall-clock time of the zone as UTC.
func inZone(call functions.FunctionOp) cel.OverloadOpt {
	return cel.BinaryBinding(func(at, zone ref.Val) ref.Val {
		t, isTime := at.(types.Timestamp)
		name, isText := zone.(types.String)
		if !isTime || !isText || strings.Contains(string(name), ":") {
			return call(at, zone) // an offset
		}
		location, err := tz.Load(string(name))
		if err != nil {
			return types.WrapErr(err)
		}
		_, offset := t.In(location).Zone()
		return call(types.Timestamp{Time: t.Time.Add(time.Duration(offset) * time.Second)}, types.String("UTC"))
	})
}

// withZones returns options that redeclare all overloads with a time zone.
func withZones(env *cel.Env) (options []cel.EnvOption, err error) {
	for _, name := range zoned {
		function := env.Functions()[name]
		bindings, err := function.Bindings()
		if err != nil {
			return nil, err
		}
		for _, overload := range function.OverloadDecls() {
			if len(overload.ArgTypes()) != 2 {
				continue
			}
			options = append(options, cel.Function(name, cel.MemberOverload(overload.ID(), overload.ArgTypes(), overload.ResultType(),
				inZone(called(overload.ID(), bindings)))))
		}
	}
	if len(options) != len(zoned) {
		return nil, fmt.Errorf("%d of %d functions take a time zone", len(options), len(zoned))
	}
	return options, nil
}
