// Package annotations defines the grammar of the annotations that users make requests with, and lists all annotations of this project.
package annotations

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// MaxTime is the longest TIME/DURATION in bytes.
	MaxTime = 80
	// MaxRequest is the longest value of a request in bytes.
	MaxRequest = 2048
)

// Unlimited replaces the duration of a close request without end.
const Unlimited = "unlimited"

// A Value is the value of an annotation requestedAt: TIME[/DURATION][,key=value]... or TIME[/DURATION][,only=KIND/NAME]...
type Value struct {
	// At is in UTC.
	At time.Time
	// Duration is nil if the value has none, or if it is Unlimited.
	Duration  *v1alpha1.Duration
	Unlimited bool
	// Keys holds the value of each key.
	Keys map[string]string
	// Only lists the targets that the value is limited to, without duplicates. It is nil if it is not limited.
	Only []v1alpha1.RequestTarget
}

// A Form describes the form of values of an annotation.
type Form struct {
	// Duration permits a duration, and Unlimited permits the word unlimited instead.
	Duration, Unlimited bool
	// Only permits the repeated key only.
	Only bool
	// Keys are in the required order.
	Keys []Key
	// Example is a valid value.
	Example string
}

// A Key is a part of a Form.
type Key struct {
	// Name is the text before the equals sign. Placeholder represents the value in messages and docs.
	Name, Placeholder string
	// Optional keys come last.
	Optional bool
	// Rest lets the value extend to the end, including commas, which branch names may have. Such a key is the last one.
	Rest bool
	// Pattern matches every valid value.
	Pattern *regexp.Regexp
}

const timePattern = `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})`

// timeForm is RFC 3339. time.Parse is less strict: it accepts a comma before the fraction, and single digits.
var timeForm = regexp.MustCompile(`^` + timePattern + `$`)

var (
	number   = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
	round    = regexp.MustCompile(`^[0-9]{1,18}$`)
	uid      = regexp.MustCompile(`^[0-9a-f-]{36}$`)
	request  = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z$`)
	wave     = regexp.MustCompile(`^(` + v1alpha1.RestOfTargets + `|[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$`)
	only     = regexp.MustCompile(`^([A-Z][A-Za-z0-9]{0,62})/(?:([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)/)?([a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?)$`)
	revision = regexp.MustCompile(`^[^\s]{1,512}$`)
)

// The forms for all verbs. The policies in config/policies also contain the forms for approvals.
var (
	Open    = &Form{Duration: true, Only: true, Example: "2026-12-19T12:00:00Z/30m"}
	Close   = &Form{Duration: true, Unlimited: true, Only: true, Example: "2026-12-19T12:00:00Z/3d"}
	Pass    = &Form{Duration: true, Example: "2026-12-19T12:00:00Z/30m"}
	Proceed = &Form{Keys: []Key{{Name: "wave", Placeholder: "NAME", Optional: true, Pattern: wave}}, Example: "2026-12-19T12:00:00Z,wave=canary"}

	ApproveException = &Form{
		Keys:    []Key{{Name: "generation", Placeholder: "NUMBER", Pattern: number}, {Name: "uid", Placeholder: "UID", Pattern: uid}},
		Example: "2026-12-19T12:00:00Z,generation=3,uid=" + exampleUID,
	}
	ApproveRequest = &Form{
		Keys:    []Key{{Name: "request", Placeholder: "TIME", Pattern: request}, {Name: "uid", Placeholder: "UID", Pattern: uid}},
		Example: "2026-12-19T12:03:00Z,request=2026-12-19T12:00:00.000000Z,uid=" + exampleUID,
	}
	ApproveRevision = &Form{
		Keys: []Key{
			{Name: "round", Placeholder: "NUMBER", Pattern: round}, {Name: "uid", Placeholder: "UID", Pattern: uid},
			{Name: "revision", Placeholder: "REVISION", Rest: true, Pattern: revision},
		},
		Example: "2026-12-19T12:00:00Z,round=7,uid=" + exampleUID + ",revision=main@sha1:2f5b9f5c0a4a0f4b2e6c0b8b7b1c0e6f2b7f3a11",
	}
	Rollback = &Form{
		Keys: []Key{
			{Name: "uid", Placeholder: "UID", Pattern: uid}, {Name: "revision", Placeholder: "REVISION", Rest: true, Pattern: revision},
		},
		Example: "2026-12-19T12:00:00Z,uid=" + exampleUID + ",revision=main@sha1:2f5b9f5c0a4a0f4b2e6c0b8b7b1c0e6f2b7f3a11",
	}
)

const exampleUID = "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"

// String returns the form as docs and messages show it.
func (f *Form) String() string {
	text := "TIME"
	switch {
	case f.Unlimited:
		text += "[/DURATION|/" + Unlimited + "]"
	case f.Duration:
		text += "[/DURATION]"
	}
	for _, k := range f.Keys {
		item := "," + k.Name + "=" + k.Placeholder
		if k.Optional {
			item = "[" + item + "]"
		}
		text += item
	}
	if f.Only {
		text += "[,only=KIND/NAME]..."
	}
	return text
}

// A FormError is returned for a value that does not have the required form.
type FormError struct{ Form *Form }

func (e *FormError) Error() string {
	return fmt.Sprintf("must be %s, such as %s", e.Form, e.Form.Example)
}

// Parse parses a value. The error is a FormError. It refuses unknown, repeated and misplaced keys. It does not check the bounds of
// durations.
func (f *Form) Parse(value string) (Value, error) {
	head, rest, more := strings.Cut(value, ",")
	v, ok := f.parseTime(head)
	if !ok {
		return Value{}, &FormError{f}
	}
	for _, k := range f.Keys {
		text, found := strings.CutPrefix(rest, k.Name+"=")
		if !more || !found {
			if k.Optional {
				continue
			}
			return Value{}, &FormError{f}
		}
		rest, more = "", false
		if !k.Rest {
			text, rest, more = strings.Cut(text, ",")
		}
		if !k.Pattern.MatchString(text) {
			return Value{}, &FormError{f}
		}
		v.Keys[k.Name] = text
	}
	if more && f.Only && len(value) <= MaxRequest {
		v.Only, more = parseOnly(rest)
	}
	if more {
		return Value{}, &FormError{f}
	}
	return v, nil
}

// parseOnly parses only=TARGET[,only=TARGET]..., with at most v1alpha1.MaxRequestTargets different targets.
func parseOnly(text string) (all []v1alpha1.RequestTarget, invalid bool) {
	for item := range strings.SplitSeq(text, ",") {
		target, found := strings.CutPrefix(item, "only=")
		t, valid := ParseTarget(target)
		if !found || !valid {
			return nil, true
		}
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all, len(all) > v1alpha1.MaxRequestTargets
}

// ParseTarget parses KIND/NAME or KIND/NAMESPACE/NAME, with the kind as in manifests. It returns false if the text is invalid.
func ParseTarget(text string) (v1alpha1.RequestTarget, bool) {
	parts := only.FindStringSubmatch(text)
	if parts == nil {
		return v1alpha1.RequestTarget{}, false
	}
	return v1alpha1.RequestTarget{Kind: parts[1], Namespace: parts[2], Name: parts[3]}, true
}

// parseTime parses TIME[/DURATION].
func (f *Form) parseTime(head string) (Value, bool) {
	instant, duration, lasts := strings.Cut(head, "/")
	at, err := time.Parse(time.RFC3339Nano, instant)
	if err != nil || len(head) > MaxTime || !timeForm.MatchString(instant) || lasts && !f.Duration {
		return Value{}, false
	}
	v := Value{At: at.UTC(), Keys: map[string]string{}}
	if !lasts {
		return v, true
	}
	if v.Unlimited = f.Unlimited && duration == Unlimited; v.Unlimited {
		return v, true
	}
	d, err := v1alpha1.ParseDuration(duration)
	v.Duration = &v1alpha1.Duration{Duration: d}
	return v, err == nil
}

// Format returns the value in the form. Parse accepts it if all keys are valid.
func (f *Form) Format(v Value) string {
	text := v.At.UTC().Format(time.RFC3339Nano)
	switch {
	case v.Unlimited:
		text += "/" + Unlimited
	case v.Duration != nil:
		text += "/" + v.Duration.String()
	}
	if what := f.FormatKeys(v.Keys); what != "" {
		text += "," + what
	}
	for _, t := range v.Only {
		text += ",only=" + t.String()
	}
	return text
}

// FormatKeys returns the part of a value after TIME[/DURATION] and its comma. Approvals are stamped with it.
func (f *Form) FormatKeys(keys map[string]string) string {
	var items []string
	for _, k := range f.Keys {
		if text, ok := keys[k.Name]; ok {
			items = append(items, k.Name+"="+text)
		}
	}
	return strings.Join(items, ",")
}
