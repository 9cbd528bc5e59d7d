package target

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api"
)

// defaultField is the field that suspends objects of an added kind by default.
const defaultField = "spec.suspend"

// Kind is a kind that an administrator adds to the built-in ones. A boolean field suspends its objects.
type Kind struct {
	schema.GroupKind
	// Field is the path of the field, such as spec.suspend.
	Field string
}

// String returns the kind in the form that ParseKinds accepts.
func (k Kind) String() string {
	text := k.Group + "/" + k.Kind
	if k.Field != defaultField {
		text += "=" + k.Field
	}
	return text
}

// IsBuiltIn returns whether the kind is part of Kubernetes and has no CRD. The group of a CRD always has a dot.
func (k Kind) IsBuiltIn() bool { return !strings.Contains(k.Group, ".") }

// path returns the field names in Field.
func (k Kind) path() []string { return strings.Split(k.Field, ".") }

var (
	groupForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	kindForm  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	fieldForm = regexp.MustCompile(`^spec\.[a-z][A-Za-z0-9]*$`)
)

// ParseKinds parses kinds of the form group/Kind or group/Kind=spec.field. The field is spec.suspend by default. Duplicates count once.
// Kinds must have different names, even in different groups, because GateLocks identify kinds by name.
func ParseKinds(values []string) ([]Kind, error) {
	var kinds []Kind
	for _, value := range values {
		k, err := parseKind(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", value, err)
		}
		if slices.Contains(kinds, k) {
			continue
		}
		for _, other := range kinds {
			if other.GroupKind == k.GroupKind {
				return nil, fmt.Errorf(msgKindTwice, value, k.Kind, k.Group, other.Field)
			} else if other.Kind == k.Kind {
				return nil, fmt.Errorf(msgKindName, value, other)
			}
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

func parseKind(value string) (Kind, error) {
	name, field, named := strings.Cut(value, "=")
	if !named {
		field = defaultField
	}
	parts := strings.Split(name, "/")
	k := Kind{schema.GroupKind{Group: parts[0], Kind: parts[len(parts)-1]}, field}
	switch {
	case len(parts) == 3:
		return k, fmt.Errorf(msgKindVersion, k.Group, k.Kind)
	case len(parts) != 2 || !groupForm.MatchString(k.Group):
		return k, errors.New(msgKindForm)
	case !kindForm.MatchString(k.Kind):
		return k, fmt.Errorf(msgKindCase, k.Kind)
	case k.Group == "core" || k.Group == "v1":
		return k, errors.New(msgKindCore)
	case k.Group == api.Group: // a Gate must not hold a Gate
		return k, errors.New(msgKindGate)
	case !fieldForm.MatchString(field):
		return k, fmt.Errorf(msgKindField, field)
	}
	for _, a := range builtIn {
		if gk := a.GroupKind(); gk == k.GroupKind {
			return k, fmt.Errorf(msgKindBuiltIn, gk.Kind, gk.Group)
		} else if gk.Kind == k.Kind {
			return k, fmt.Errorf(msgKindBuiltInName, gk.Kind, gk.Group)
		}
	}
	return k, nil
}

// SetKinds replaces the added kinds. Call it before All, For and Of, because it does not change results that they have already returned.
func SetKinds(kinds ...Kind) {
	t := table{adapters: map[schema.GroupKind]Adapter{}, added: map[schema.GroupKind]Kind{}}
	for _, a := range builtIn {
		t.add(a)
	}
	for _, k := range kinds {
		t.add(suspendable{groupKind: k.GroupKind, field: k.path()})
		t.added[k.GroupKind] = k
	}
	registry.Store(&t)
}

// Added returns an added kind by group and kind. It returns false if the kind was not added.
func Added(kind schema.GroupKind) (Kind, bool) {
	k, ok := registry.Load().added[kind]
	return k, ok
}

// AddedKinds returns the added kinds, sorted by group and kind.
func AddedKinds() []Kind {
	var kinds []Kind
	for _, k := range registry.Load().added {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b Kind) int { return strings.Compare(a.GroupKind.String(), b.GroupKind.String()) })
	return kinds
}
