package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// person is a user of the cluster who knows kubectl.
type person struct{ *harness.Person }

// kubectl does as this person what kubectl does with these arguments, and returns what it
// prints. Known commands are done by the client library, in the requests that kubectl
// sends: a process for each of thousands of attacks takes most of the time.
func (p *person) kubectl(ctx context.Context, namespace string, args ...string) (string, error) {
	c, ok := parseCommand(args)
	if !ok {
		return p.Kubectl(ctx, namespace, args...)
	}
	all, err := dynamic.NewForConfig(p.Config)
	if err != nil {
		return "", err
	}
	out, err := c.run(ctx, all.Resource(v1alpha1.GroupVersion.WithResource(c.resource)).Namespace(namespace))
	if err != nil {
		return err.Error(), fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// kubectlCommand is a command of kubectl.
type kubectlCommand struct {
	verb string
	// resource and name of the object, name is empty for all of them.
	resource, name string
	// file is the object in a file.
	file *unstructured.Unstructured
	// pairs are those of annotate and label.
	pairs []string
	// flags by their name without dashes.
	flags map[string]string
}

// resources by the names that kubectl knows.
var resources = map[string]string{
	"gate": "gates", "gates": "gates", "Gate": "gates",
	"gtex": "gateexceptions", "gateexception": "gateexceptions", "gateexceptions": "gateexceptions", "GateException": "gateexceptions",
	"gatereceiver": "gatereceivers", "gatereceivers": "gatereceivers", "GateReceiver": "gatereceivers",
}

// flagsOf are those that are known of a verb.
var flagsOf = map[string][]string{
	"annotate": {"overwrite", "all", "dry-run", "resource-version", "field-manager"},
	"label":    {"overwrite", "all", "dry-run", "resource-version", "field-manager"},
	"patch":    {"type", "p", "subresource", "dry-run", "field-manager"},
	"create":   {"f", "dry-run", "o", "validate", "field-manager"},
	"apply":    {"f", "server-side", "force-conflicts", "dry-run", "validate", "subresource", "field-manager"},
	"replace":  {"f", "dry-run", "validate", "subresource", "field-manager"},
	"delete":   {"all", "wait"},
}

// parseCommand returns whether it knows a command.
func parseCommand(args []string) (c kubectlCommand, ok bool) {
	c.flags = map[string]string{}
	var words []string
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-p" || arg == "-f":
			if i++; i == len(args) {
				return c, false
			}
			c.flags[arg[1:]] = args[i]
		case strings.HasPrefix(arg, "-"):
			name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			c.flags[name] = value
		default:
			words = append(words, arg)
		}
	}
	if len(words) == 0 {
		return c, false
	}
	c.verb, words = words[0], words[1:]
	known, ok := flagsOf[c.verb]
	for name := range c.flags {
		ok = ok && slices.Contains(known, name)
	}
	if _, serverSide := c.flags["server-side"]; !ok || c.verb == "apply" && !serverSide || c.flags["o"] != "" && c.flags["o"] != "jsonpath={.metadata.name}" {
		return c, false
	}
	if kind := c.flags["type"]; c.verb == "patch" && kind != "merge" && kind != "json" {
		return c, false
	}
	if path, ok := c.flags["f"]; ok {
		return c, len(words) == 0 && c.read(path)
	}
	return c, c.names(words)
}

// read reads the object in a file, and returns whether it knows the kind.
func (c *kubectlCommand) read(path string) bool {
	content, err := os.ReadFile(path)
	c.file = &unstructured.Unstructured{}
	if err != nil || yaml.Unmarshal(content, &c.file.Object) != nil {
		return false
	}
	c.resource = resources[c.file.GetKind()]
	return c.resource != ""
}

// names takes the object and the pairs from words, and returns whether it knows the kind.
func (c *kubectlCommand) names(words []string) bool {
	if len(words) == 0 {
		return false
	}
	resource, name, slash := strings.Cut(words[0], "/")
	words = words[1:]
	_, all := c.flags["all"]
	if !slash && !all {
		if len(words) == 0 {
			return false
		}
		name, words = words[0], words[1:]
	}
	c.resource, c.name, c.pairs = resources[resource], name, words
	return c.resource != "" && (len(words) > 0) == (c.verb == "annotate" || c.verb == "label")
}

// run does the command and returns what is printed.
func (c *kubectlCommand) run(ctx context.Context, as dynamic.ResourceInterface) (string, error) {
	objects, err := c.objects(ctx, as)
	if err != nil {
		return "", err
	}
	var out []string
	for _, obj := range objects {
		result, err := c.do(ctx, as, obj)
		if err != nil {
			return "", err
		}
		if c.flags["o"] != "" {
			out = append(out, result.GetName())
		}
	}
	return strings.Join(out, "\n"), nil
}

// objects returns those that the command is about. Like kubectl, it reads them first unless
// they are in a file or are deleted by name.
func (c *kubectlCommand) objects(ctx context.Context, as dynamic.ResourceInterface) ([]unstructured.Unstructured, error) {
	switch {
	case c.file != nil:
		return []unstructured.Unstructured{*c.file}, nil
	case c.name == "":
		list, err := as.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	case c.verb == "delete":
		obj := unstructured.Unstructured{Object: map[string]any{}}
		obj.SetName(c.name)
		return []unstructured.Unstructured{obj}, nil
	default:
		obj, err := as.Get(ctx, c.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return []unstructured.Unstructured{*obj}, nil
	}
}

func (c *kubectlCommand) do(ctx context.Context, as dynamic.ResourceInterface, obj unstructured.Unstructured) (*unstructured.Unstructured, error) {
	manager, given := c.flags["field-manager"]
	if !given {
		manager = map[bool]string{true: "kubectl", false: "kubectl-" + c.verb}[c.verb == "apply"]
	}
	var dryRun, subresource []string
	if c.flags["dry-run"] == "server" {
		dryRun = []string{metav1.DryRunAll}
	}
	if name, ok := c.flags["subresource"]; ok {
		subresource = []string{name}
	}
	validation := map[bool]string{true: metav1.FieldValidationIgnore, false: metav1.FieldValidationStrict}[c.flags["validate"] == "false"]
	patch := metav1.PatchOptions{DryRun: dryRun, FieldManager: manager}
	switch c.verb {
	case "annotate", "label":
		content, err := c.metadata(&obj)
		if err != nil {
			return nil, err
		}
		return as.Patch(ctx, obj.GetName(), types.MergePatchType, content, patch)
	case "patch":
		kind := map[string]types.PatchType{"merge": types.MergePatchType, "json": types.JSONPatchType}[c.flags["type"]]
		return as.Patch(ctx, obj.GetName(), kind, []byte(c.flags["p"]), patch, subresource...)
	case "create":
		return as.Create(ctx, &obj, metav1.CreateOptions{DryRun: dryRun, FieldManager: manager, FieldValidation: validation})
	case "apply":
		_, force := c.flags["force-conflicts"]
		patch.Force, patch.FieldValidation = &force, validation
		content, err := obj.MarshalJSON()
		if err != nil {
			return nil, err
		}
		return as.Patch(ctx, obj.GetName(), types.ApplyPatchType, content, patch, subresource...)
	case "replace":
		return c.replace(ctx, as, &obj, metav1.UpdateOptions{DryRun: dryRun, FieldManager: manager, FieldValidation: validation}, subresource...)
	default:
		return nil, c.remove(ctx, as, &obj)
	}
}

// metadata is the patch of annotate and label.
func (c *kubectlCommand) metadata(obj *unstructured.Unstructured) ([]byte, error) {
	field, has := "annotations", obj.GetAnnotations()
	if c.verb == "label" {
		field, has = "labels", obj.GetLabels()
	}
	changes := map[string]any{}
	_, overwrite := c.flags["overwrite"]
	for _, pair := range c.pairs {
		key, value, set := strings.Cut(pair, "=")
		switch old, there := has[key]; {
		case !set:
			changes[strings.TrimSuffix(pair, "-")] = nil
		case there && old != value && !overwrite:
			return nil, fmt.Errorf("--overwrite is false but %s has a value already", key)
		default:
			changes[key] = value
		}
	}
	metadata := map[string]any{field: changes}
	if version, ok := c.flags["resource-version"]; ok {
		metadata["resourceVersion"] = version
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}

// replace overwrites all that is there, also what the controller writes meanwhile.
func (c *kubectlCommand) replace(ctx context.Context, as dynamic.ResourceInterface, obj *unstructured.Unstructured, options metav1.UpdateOptions, subresource ...string) (*unstructured.Unstructured, error) {
	for {
		if live, err := as.Get(ctx, obj.GetName(), metav1.GetOptions{}); err == nil {
			obj.SetResourceVersion(live.GetResourceVersion())
		}
		if stored, err := as.Update(ctx, obj, options, subresource...); !apierrors.IsConflict(err) {
			return stored, err
		}
	}
}

// remove deletes an object and waits until it is gone, unless nobody waits.
func (c *kubectlCommand) remove(ctx context.Context, as dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
	if err := as.Delete(ctx, obj.GetName(), metav1.DeleteOptions{}); err != nil || c.flags["wait"] == "false" {
		return err
	}
	return harness.Eventually(ctx, harness.Patience, obj.GetName()+" is gone", func() error {
		live, err := as.Get(ctx, obj.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && live.GetDeletionTimestamp() == nil:
			return nil
		case err != nil:
			return harness.Permanent(err)
		}
		return errors.New("it is there")
	})
}
