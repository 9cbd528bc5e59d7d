package validate

import (
	"cmp"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// types maps JSON types to their names in messages.
var types = map[string]string{"string": "a string", "boolean": "true or false", "integer": "a whole number", "int": "a whole number", "number": "a number", "object": "a map of fields", "array": "a list"}

var (
	wrongType     = regexp.MustCompile(`must be of type ([a-z-]+)(?:32|64)?: "[a-z0-9]*"$`)
	notATime      = regexp.MustCompile(`must be of type date-time: `)
	inBody        = regexp.MustCompile(`^\S+ in body `)
	failedRule    = regexp.MustCompile(`(?s)^.* evaluating rule: `)
	example       = regexp.MustCompile(` \(e\.g\. .*$`)
	tooFewItems   = regexp.MustCompile(`^should have at least (\d+) items$`)
	wrongMetadata = regexp.MustCompile(`cannot unmarshal \S+ into Go struct field ObjectMeta\.(\S+) of type (\S+)`)
)

// reword replaces Go and schema terms in an error with terms for users. content is the manifest with the error.
func reword(e *field.Error, content map[string]any) {
	if found := wrongMetadata.FindStringSubmatch(e.Detail); found != nil {
		e.Field, e.BadValue, e.Detail = "metadata."+found[1], field.OmitValueType{}, "must be "+cmp.Or(types[found[2]], "a map of strings")+inQuotes(found[2])
		return
	}
	if failedRule.MatchString(e.Detail) {
		e.Detail, e.BadValue = failedRule.ReplaceAllString(e.Detail, ""), valueAt(content, stepsIn(e.Field))
	}
	switch e.BadValue.(type) {
	case map[string]any, []any, nil:
		if e.Type != field.ErrorTypeDuplicate {
			e.BadValue = field.OmitValueType{}
		}
	}
	e.Detail = inBody.ReplaceAllString(example.ReplaceAllString(e.Detail, ""), "")
	switch found := wrongType.FindStringSubmatch(e.Detail); {
	case notATime.MatchString(e.Detail):
		e.BadValue, e.Detail = valueAt(content, stepsIn(e.Field)), "must be a time in RFC 3339 such as 2026-12-19T00:00:00Z"
	case found != nil:
		e.Type, e.BadValue, e.Detail = field.ErrorTypeInvalid, field.OmitValueType{}, "must be "+types[found[1]]+inQuotes(found[1])
	case tooFewItems.MatchString(e.Detail):
		e.BadValue, e.Detail = field.OmitValueType{}, tooFewItems.ReplaceAllString(e.Detail, "must have at least $1 item")
	case strings.HasPrefix(e.Detail, "should match '"): // only values in selectors have a pattern, because a CEL rule for them would cost too much
		e.Detail = "must be the value of a label, such as critical: empty, or letters, digits, dashes, underscores and dots that begin and end with a letter or digit"
	case e.Detail == "should be at least 1 chars long":
		e.BadValue, e.Detail = field.OmitValueType{}, "must not be empty"
	case e.Type == field.ErrorTypeRequired && e.Detail == "":
		e.Detail = e.Field[strings.LastIndexAny(e.Field, ".")+1:] + " must be set"
	}
}

// inQuotes returns advice for a value that must be a string, because YAML reads 8 and yes as other types.
func inQuotes(kind string) string {
	if kind == "string" {
		return ", put it in quotes"
	}
	return ""
}
