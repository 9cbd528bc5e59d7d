package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/validate"
)

// Kind is a kind of our API group in an argument such as gate/production.
type Kind struct {
	// Word is the word before the slash. Kind is the kind in the API.
	Word, Kind string
}

// The kinds that can be used in arguments.
var (
	GateKind      = Kind{"gate", v1alpha1.GateKind}
	ExceptionKind = Kind{"exception", v1alpha1.GateExceptionKind}
	SourceKind    = Kind{"source", v1alpha1.GatedSourceKind}
)

// is returns whether a text refers to the kind. The text may be its word, its kind, its resource, or the resource with the group, as
// printed by -o name.
func (k Kind) is(text string) bool {
	text, lower := strings.ToLower(strings.TrimSuffix(text, "."+api.Group)), strings.ToLower(k.Kind)
	return slices.Contains([]string{k.Word, lower, lower + "s"}, text)
}

// splitName splits [KIND/][NAMESPACE/]NAME. If there are two parts, the first one is a kind if isKind returns true for it, otherwise a
// namespace.
func splitName(arg string, isKind func(string) bool) (kind, namespace, name string, err error) {
	parts := strings.Split(arg, "/")
	switch {
	case slices.Contains(parts, "") || len(parts) > 3:
		return "", "", "", fmt.Errorf("%q is not a name: use NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME", arg)
	case len(parts) == 3:
		return parts[0], parts[1], parts[2], nil
	case len(parts) == 2 && isKind(parts[0]):
		return parts[0], "", parts[1], nil
	case len(parts) == 2:
		return "", parts[0], parts[1], nil
	}
	return "", "", parts[0], nil
}

// ParseName parses the name of an object of one of the accepted kinds. A name without a kind refers to a Gate.
func ParseName(arg, namespace string, accepted ...Kind) (Kind, client.ObjectKey, error) {
	kind, in, name, err := splitName(arg, isAnyKind)
	if err != nil {
		return Kind{}, client.ObjectKey{}, err
	}
	if in != "" {
		namespace = in
	}
	found := GateKind
	if kind != "" {
		i := slices.IndexFunc(accepted, func(k Kind) bool { return k.is(kind) })
		if i < 0 {
			return Kind{}, client.ObjectKey{}, unsupportedKind(kind, "", wordsIn(accepted))
		}
		found = accepted[i]
	}
	return found, client.ObjectKey{Namespace: namespace, Name: name}, nil
}

// isAnyKind returns whether a text before a slash is a kind rather than a namespace, even if no command accepts that kind.
func isAnyKind(text string) bool {
	return slices.ContainsFunc([]Kind{GateKind, ExceptionKind, SourceKind}, func(k Kind) bool { return k.is(text) }) ||
		indexOfKind(slices.Concat(validate.Kinds(), KindNames()), text) >= 0
}

// indexOfKind returns the index of the kind that a text names in any case, as singular or plural, -1 if there is none.
func indexOfKind(kinds []string, text string) int {
	lower := strings.ToLower(text)
	return slices.IndexFunc(kinds, func(kind string) bool {
		kind = strings.ToLower(kind)
		return lower == kind || lower == kind+"s"
	})
}

// unsupportedKind returns the error for a kind that a command does not accept. near is the kind that the user probably meant, empty if
// unknown.
func unsupportedKind(kind, near string, accepted []string) error {
	if near != "" {
		return fmt.Errorf("unsupported kind %q: did you mean %q?", kind, near)
	}
	all := make([]string, len(accepted))
	for i, word := range accepted {
		all[i] = strings.ToLower(word) + "/NAME"
	}
	text := all[len(all)-1]
	if len(all) > 1 {
		text = strings.Join(all[:len(all)-1], ", ") + " or " + text
	}
	return fmt.Errorf("unsupported kind %q: use %s", kind, text)
}

// wordsIn returns the words of kinds.
func wordsIn(kinds []Kind) []string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = k.Word
	}
	return words
}

// ParseObjectName parses KIND/[NAMESPACE/]NAME or KIND NAME, for any kind.
func ParseObjectName(args []string) (kind, namespace, name string, err error) {
	switch {
	case len(args) == 1:
		return parseObject(args[0])
	case len(args) == 2 && !strings.Contains(args[0]+args[1], "/"):
		return parseObject(args[0] + "/" + args[1])
	}
	return parseObject("")
}

// parseObject parses KIND/[NAMESPACE/]NAME.
func parseObject(arg string) (kind, namespace, name string, err error) {
	kind, namespace, name, err = splitName(arg, func(string) bool { return true })
	if kind == "" || err != nil {
		return "", "", "", errors.New("name one object, as KIND/NAME, such as kustomization/apps")
	}
	return kind, namespace, name, nil
}

// ParseTargets parses KIND/NAME or KIND/NAMESPACE/NAME for kinds that Gates can hold. The name can be * for all objects of the kind.
func ParseTargets(args []string) (refs []v1alpha1.TargetReference, err error) {
	for _, arg := range args {
		kind, namespace, name, err := parseObject(arg)
		if err != nil {
			return nil, err
		}
		names := KindNames()
		i := indexOfKind(names, kind)
		if i < 0 {
			return nil, unsupportedKind(kind, nearest(strings.ToLower(kind), names), names)
		}
		refs = append(refs, v1alpha1.TargetReference{Kind: names[i], Namespace: namespace, Name: name})
	}
	return refs, nil
}
