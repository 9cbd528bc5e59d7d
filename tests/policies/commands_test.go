package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// person is a user of the cluster.
type person struct{ *harness.Person }

// kubectl runs kubectl with these arguments, and returns its output. A single argument is split at spaces. NOW is replaced by the time to
// the nanosecond: with the same second as in the Gate, the request would not be a new one. The client library sends the requests of the
// commands that it supports, because a process for each of thousands of commands takes most of the time.
func (p *person) kubectl(ctx context.Context, namespace string, args ...string) (string, error) {
	if len(args) == 1 {
		args = strings.Fields(args[0])
	}
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "NOW", nowNano())
	}
	c, ok := parseCommand(args)
	if !ok {
		return p.Kubectl(ctx, namespace, args...)
	}
	config := rest.CopyConfig(p.Config)
	config.Impersonate.UserName = c.flags["as"]
	all, err := dynamic.NewForConfig(config)
	if err != nil {
		return "", err
	}
	out, err := c.run(ctx, all.Resource(c.resource).Namespace(namespace))
	if err != nil {
		return err.Error(), fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// kubectlCommand is a command of kubectl.
type kubectlCommand struct {
	verb     string
	resource schema.GroupVersionResource
	// name of the object, empty for all of them.
	name string
	// file is the object in a file.
	file *unstructured.Unstructured
	// pairs are the arguments of annotate and label.
	pairs []string
	// flags has the flags by name, without dashes.
	flags map[string]string
}

var (
	gates, gateExceptions   = v1alpha1.GroupVersion.WithResource("gates"), v1alpha1.GroupVersion.WithResource("gateexceptions")
	receivers, gatedSources = v1alpha1.GroupVersion.WithResource("gatereceivers"), v1alpha1.GroupVersion.WithResource("gatedsources")
	feeds, refreshes        = v1alpha1.GroupVersion.WithResource("calendarfeeds"), v1alpha1.GroupVersion.WithResource("machinecertificaterefreshes")
	kustomizations          = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	gitRepositories         = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	ociRepositories         = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "ocirepositories"}
)

// resources has the resources by the names that kubectl accepts.
var resources = map[string]schema.GroupVersionResource{
	"gate": gates, "gates": gates, "Gate": gates, "gtex": gateExceptions, "GateException": gateExceptions,
	"gatereceiver": receivers, "gatereceivers": receivers, "GateReceiver": receivers, "gtsrc": gatedSources, "GatedSource": gatedSources,
	"calendarfeed": feeds, "calendarfeeds": feeds, "CalendarFeed": feeds, "gtmcr": refreshes, "MachineCertificateRefresh": refreshes,
	"kustomization": kustomizations, "Kustomization": kustomizations, "gitrepository": gitRepositories, "GitRepository": gitRepositories,
	"OCIRepository": ociRepositories,
}

// parseCommand parses a command, and returns whether the client library can run it.
func parseCommand(args []string) (c kubectlCommand, ok bool) {
	c.flags = map[string]string{}
	var words []string
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case (arg == "-p" || arg == "-f") && i+1 < len(args):
			i++
			c.flags[arg[1:]] = args[i]
		case strings.HasPrefix(arg, "-"):
			name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			c.flags[name] = value
		default:
			words = append(words, arg)
		}
	}
	if len(words) == 0 || !slices.Contains([]string{"annotate", "label", "patch", "create", "apply", "replace", "delete", "get"}, words[0]) {
		return c, false
	}
	c.verb, words = words[0], words[1:]
	known := []string{"all", "as", "dry-run", "f", "field-manager", "force", "force-conflicts", "o", "overwrite", "p", "server-side", "subresource", "type", "validate", "wait"}
	for name := range c.flags {
		if !slices.Contains(known, name) {
			return c, false
		}
	}
	if path, ok := c.flags["f"]; ok {
		return c, c.read(path)
	}
	return c, c.names(words)
}

// read reads the object from a file, or from the argument itself, and returns whether its kind is supported.
func (c *kubectlCommand) read(path string) bool {
	content, err := []byte(path), error(nil)
	if !strings.HasPrefix(path, "{") {
		content, err = os.ReadFile(path)
	}
	c.file = &unstructured.Unstructured{}
	if err != nil || yaml.Unmarshal(content, &c.file.Object) != nil {
		return false
	}
	var known bool
	c.name = c.file.GetName()
	c.resource, known = resources[c.file.GetKind()]
	return known
}

// names parses the object and the pairs, and returns whether the kind is supported.
func (c *kubectlCommand) names(words []string) (known bool) {
	if len(words) == 0 {
		return false
	}
	resource, name, slash := strings.Cut(words[0], "/")
	words = words[1:]
	if _, all := c.flags["all"]; !slash && !all && len(words) > 0 {
		name, words = words[0], words[1:]
	}
	c.resource, known = resources[resource]
	c.name, c.pairs = name, words
	return known && (len(words) > 0) == (c.verb == "annotate" || c.verb == "label")
}

// run runs the command and returns its output. Like kubectl, it reads objects first unless they are in a file or are deleted by name.
func (c *kubectlCommand) run(ctx context.Context, as dynamic.ResourceInterface) (string, error) {
	objects := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: map[string]any{}}}}
	objects.Items[0].SetName(c.name)
	var err error
	switch {
	case c.file != nil:
		objects.Items[0] = *c.file
	case c.name == "":
		objects, err = as.List(ctx, metav1.ListOptions{})
	case c.verb != "delete":
		var obj *unstructured.Unstructured
		if obj, err = as.Get(ctx, c.name, metav1.GetOptions{}); err == nil {
			objects.Items[0] = *obj
		}
	}
	var out []string
	for i := 0; err == nil && i < len(objects.Items); i++ {
		var result *unstructured.Unstructured
		if result, err = c.do(ctx, as, objects.Items[i]); err != nil {
			break
		}
		content := []byte(result.GetName())
		if c.flags["o"] == "yaml" {
			unstructured.RemoveNestedField(result.Object, "metadata", "managedFields")
			content, err = yaml.Marshal(result.Object)
		}
		out = append(out, string(content))
	}
	return strings.Join(out, "\n"), err
}

func (c *kubectlCommand) do(ctx context.Context, as dynamic.ResourceInterface, obj unstructured.Unstructured) (*unstructured.Unstructured, error) {
	_, serverSide := c.flags["server-side"]
	manager, given := c.flags["field-manager"]
	if !given {
		manager = map[bool]string{true: "kubectl", false: "kubectl-" + c.verb}[serverSide]
	}
	var dryRun, subresource []string
	if c.flags["dry-run"] == "server" {
		dryRun = []string{metav1.DryRunAll}
	}
	if name, ok := c.flags["subresource"]; ok {
		subresource = []string{name}
	}
	validation := map[bool]string{true: metav1.FieldValidationIgnore, false: metav1.FieldValidationStrict}[c.flags["validate"] == "false"]
	create := metav1.CreateOptions{DryRun: dryRun, FieldManager: manager, FieldValidation: validation}
	patch := metav1.PatchOptions{DryRun: dryRun, FieldManager: manager}
	if c.verb == "apply" {
		patch.FieldValidation = validation
	}
	switch c.verb {
	case "get":
		return &obj, nil
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
		return as.Create(ctx, &obj, create)
	case "apply":
		if !serverSide {
			return applyClientSide(ctx, as, &obj, create, patch)
		}
		_, force := c.flags["force-conflicts"]
		patch.Force = &force
		content, err := obj.MarshalJSON()
		if err != nil {
			return nil, err
		}
		return as.Patch(ctx, obj.GetName(), types.ApplyPatchType, content, patch, subresource...)
	case "replace":
		if _, force := c.flags["force"]; force {
			if err := c.remove(ctx, as, &obj, metav1.DeleteOptions{}); err != nil {
				return nil, err
			}
			return as.Create(ctx, &obj, create)
		}
		return c.replace(ctx, as, &obj, metav1.UpdateOptions{DryRun: dryRun, FieldManager: manager, FieldValidation: validation}, subresource...)
	default:
		return &obj, c.remove(ctx, as, &obj, metav1.DeleteOptions{DryRun: dryRun})
	}
}

// applyClientSide merges the last applied configuration, the new one and the live object.
func applyClientSide(ctx context.Context, as dynamic.ResourceInterface, obj *unstructured.Unstructured, create metav1.CreateOptions, options metav1.PatchOptions) (*unstructured.Unstructured, error) {
	applied, err := obj.MarshalJSON()
	if err != nil {
		return nil, err
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(applied)
	obj.SetAnnotations(annotations)
	live, err := as.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return as.Create(ctx, obj, create)
	}
	if err != nil {
		return nil, err
	}
	modified, err1 := obj.MarshalJSON()
	current, err2 := live.MarshalJSON()
	patch, err3 := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), modified, current)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return as.Patch(ctx, obj.GetName(), types.MergePatchType, patch, options)
}

// metadata returns the patch of annotate and label.
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
	return json.Marshal(map[string]any{"metadata": map[string]any{field: changes}})
}

// replace overwrites the whole object, even if the controller writes it meanwhile.
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

// remove deletes an object and waits until it no longer exists, unless --wait=false is set.
func (c *kubectlCommand) remove(ctx context.Context, as dynamic.ResourceInterface, obj *unstructured.Unstructured, options metav1.DeleteOptions) error {
	if err := as.Delete(ctx, obj.GetName(), options); err != nil || c.flags["wait"] == "false" || len(options.DryRun) > 0 {
		return err
	}
	return harness.Eventually(ctx, harness.Patience, obj.GetName()+" is deleted", func() error {
		live, err := as.Get(ctx, obj.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && live.GetDeletionTimestamp() == nil:
			return nil
		case err != nil:
			return harness.Permanent(err)
		}
		return fmt.Errorf("%s is under deletion", obj.GetName())
	})
}

// stamp formats a time for a request.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// now is the time of requests in these tests, truncated so that it is not in the future.
func now() string { return stamp(time.Now()) }

// nowNano returns a different time at each call.
func nowNano() string { return time.Now().UTC().Format(time.RFC3339Nano) }
