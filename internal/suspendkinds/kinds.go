// Package suspendkinds generates the manifests for the kinds of --suspend-kinds, based on the manifests in config for the built-in kinds.
package suspendkinds

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/config"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Resource is a kind and its resource in the API server.
type Resource struct {
	target.Kind
	// Plural is the name of the resource, such as cronjobs.
	Plural string
	// HasConditions is true if the controller writes conditions into the status of the objects.
	HasConditions bool
}

// Guess returns a resource with the regular plural of a kind, which is the resource name of most kinds.
func Guess(k target.Kind) Resource {
	plural, _ := meta.UnsafeGuessKindToResource(k.WithVersion(""))
	return Resource{Kind: k, Plural: plural.Resource, HasConditions: !k.IsBuiltIn()}
}

// object is a manifest.
type object = map[string]any

// suffix is appended to the names of generated objects.
const suffix = "-kinds"

// Role returns the ClusterRole of the controller for kinds, and its binding.
func Role(resources []Resource) ([]byte, error) {
	objects, err := read("suspend-kinds/role.yaml", "suspend-kinds/role_binding.yaml")
	if err != nil {
		return nil, err
	}
	var rules []any
	for _, r := range resources {
		rules = append(rules, rule(r.Group, r.Plural, "get", "list", "watch", "patch"))
		if r.HasConditions {
			rules = append(rules, rule(r.Group, r.Plural+"/status", "get", "patch"))
		}
	}
	objects[0]["rules"] = rules
	return write(objects)
}

func rule(group, resource string, verbs ...string) object {
	return object{"apiGroups": []string{group}, "resources": []string{resource}, "verbs": verbs}
}

// Lock returns the policies of config/lock for kinds. There is a separate set of policies for each field, because they read and write
// that field.
func Lock(resources []Resource) ([]byte, error) {
	byField := map[string][]Resource{}
	var fields []string
	for _, r := range resources {
		if byField[r.Field] == nil {
			fields = append(fields, r.Field)
		}
		byField[r.Field] = append(byField[r.Field], r)
	}
	slices.Sort(fields)
	var all []object
	for _, field := range fields {
		objects, err := read("lock/hold.yaml", "lock/delete.yaml", "lock/overlay.yaml")
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(field, "spec.")
		rename(objects, suffix+"-"+kebab(name))
		for _, o := range objects {
			if err := match(o, byField[field]); err != nil {
				return nil, err
			}
			o["spec"] = holdBy(o["spec"], name)
			if text := fmt.Sprint(o["spec"]); name != "suspend" && leftover.MatchString(text) {
				return nil, fmt.Errorf("%v contains suspend in an unexpected place: %s", o["metadata"], leftover.FindString(text))
			}
		}
		all = append(all, objects...)
	}
	return write(all)
}

// perPolicy bounds the number of kinds in one policy on targets, because each kind may be held and watched, and a policy can have 24
// checks.
const perPolicy = 12

// Policies returns the policies of config/policies on targets for kinds.
func Policies(resources []Resource) ([]byte, error) {
	var all []object
	for i, part := range slices.Collect(slices.Chunk(resources, perPolicy)) {
		objects, err := read("policies/target_verb.yaml")
		if err != nil {
			return nil, err
		}
		name := suffix
		if i > 0 {
			name = fmt.Sprintf("%s-%d", suffix, i+1)
		}
		rename(objects, name)
		if err := know(objects, part); err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return write(all)
}

// read reads manifests from config.
func read(paths ...string) (objects []object, err error) {
	for _, path := range paths {
		raw, err := config.Files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), len(raw))
		for {
			var o object
			if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("config/%s: %w", path, err)
			}
			if o != nil {
				objects = append(objects, o)
			}
		}
	}
	return objects, nil
}

// write writes manifests with a separator line between them.
func write(objects []object) ([]byte, error) {
	var all bytes.Buffer
	for _, o := range objects {
		raw, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		all.WriteString("---\n")
		all.Write(raw)
	}
	return all.Bytes(), nil
}

// rename appends a suffix to the names of objects, and to references between them.
func rename(objects []object, added string) {
	for _, o := range objects {
		metadata, _ := o["metadata"].(object)
		metadata["name"] = fmt.Sprint(metadata["name"], added)
		if spec, _ := o["spec"].(object); spec["policyName"] != nil {
			spec["policyName"] = fmt.Sprint(spec["policyName"], added)
		}
	}
}

// match sets the kinds that a policy matches, with the operations of the built-in kinds.
func match(o object, resources []Resource) error {
	spec, _ := o["spec"].(object)
	constraints, ok := spec["matchConstraints"].(object)
	if !ok {
		return nil // this is a binding
	}
	before, _ := constraints["resourceRules"].([]any)
	var operations any
	for _, item := range before {
		r, _ := item.(object)
		if operations != nil && fmt.Sprint(operations) != fmt.Sprint(r["operations"]) {
			return fmt.Errorf("the rules of %v have different operations", o["metadata"])
		}
		operations = r["operations"]
	}
	var rules []any
	for _, r := range resources {
		rules = append(rules, object{"apiGroups": []any{r.Group}, "apiVersions": []any{"*"}, "resources": []any{r.Plural}, "operations": operations})
	}
	constraints["resourceRules"] = rules
	return nil
}

// suspend matches the last part of spec.suspend in expressions: as a field, in managed fields, and in the path of a JSON patch.
var suspend = regexp.MustCompile(`(\bspec\.\??|\bf:|/spec/)suspend\b`)

// leftover matches any other use of the word suspend.
var leftover = regexp.MustCompile(`.{0,40}\bsuspend\b.{0,40}`)

// holdBy replaces spec.suspend in a part of a policy with another field.
func holdBy(part any, field string) any {
	switch part := part.(type) {
	case string:
		return suspend.ReplaceAllString(part, "${1}"+field)
	case object:
		for name := range part {
			part[name] = holdBy(part[name], field)
		}
	case []any:
		for i := range part {
			part[i] = holdBy(part[i], field)
		}
	}
	return part
}

// know replaces the list of built-in kinds in the policy on targets.
func know(objects []object, resources []Resource) error {
	for _, o := range objects {
		spec, _ := o["spec"].(object)
		variables, _ := spec["variables"].([]any)
		for _, item := range variables {
			if v, _ := item.(object); v["name"] == "kinds" {
				rows := make([]string, len(resources))
				for i, r := range resources {
					rows[i] = fmt.Sprintf("  ['%s', '%s', '%s']", r.Kind.Kind, plural(r), r.Group)
				}
				v["expression"] = "[\n" + strings.Join(rows, ",\n") + "\n]"
				return nil
			}
		}
	}
	return errors.New("config/policies/target_verb.yaml has no variable kinds")
}

// plural returns the resource name with the capitals of its kind, which the policy converts to lower case.
func plural(r Resource) string {
	n := 0
	for n < min(len(r.Kind.Kind), len(r.Plural)) && strings.ToLower(r.Kind.Kind[n:n+1]) == r.Plural[n:n+1] {
		n++
	}
	return cmp.Or(r.Kind.Kind[:n]+r.Plural[n:], r.Plural)
}

// kebab converts camel case to a part of an object name. Different names have different results.
func kebab(name string) string {
	return strings.ToLower(regexp.MustCompile(`([A-Z])`).ReplaceAllString(name, "-$1"))
}
