package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api"
)

// change is the change of the controller Deployment by an add-on. The template of the chart applies it.
type change struct {
	Args                      []any `json:"args,omitempty"`
	Ports                     []any `json:"ports,omitempty"`
	Replicas                  any   `json:"replicas,omitempty"`
	TopologySpreadConstraints any   `json:"topologySpreadConstraints,omitempty"`
}

// object is an object from kustomize, with its YAML.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name, Namespace string
	} `json:"metadata"`
	raw []byte
}

func (o *object) key() string { return o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name }

// writeChart writes the Helm chart into a folder: config/chart, with the objects that kustomize builds from the other folders of config.
func (s source) writeChart(m manifests, folder string) error {
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(s.root, "config", "chart"))); err != nil {
		return err
	}
	if err := s.setVersion(filepath.Join(folder, "Chart.yaml")); err != nil {
		return err
	}
	base, err := m.objects()
	if err != nil {
		return err
	}
	files := map[string][]object{}
	for _, o := range base {
		switch o.Kind {
		case "Namespace": // Helm creates it
		case "CustomResourceDefinition":
			files["crds"] = append(files["crds"], o)
		default:
			files["default"] = append(files["default"], o)
		}
	}
	names, err := m.addOns()
	if err != nil {
		return err
	}
	changes := map[string]change{}
	for _, name := range names {
		if changes[name], files[name], err = m.added(name, base); err != nil {
			return err
		}
	}
	for name, objects := range files {
		if err := writeObjects(filepath.Join(folder, "files", name+".yaml"), objects); err != nil {
			return err
		}
	}
	raw, err := yaml.Marshal(changes)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "files", "changes.yaml"), raw, 0o644) //nolint:gosec // for all to read
}

// packChart writes the chart into a folder in the format of "helm package", and returns the name of the file.
func (s source) packChart(m manifests, out string) (string, error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := s.writeChart(m, filepath.Join(folder, program)); err != nil {
		return "", err
	}
	packed, err := s.pack(folder)
	if err != nil {
		return "", err
	}
	name := program + "-" + s.chartVersion() + ".tgz"
	return name, os.WriteFile(filepath.Join(out, name), packed, 0o644) //nolint:gosec // for all to read
}

// writeChartOnly writes the chart into a folder, without the other files of a release.
func (s source) writeChartOnly(out string) error {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	m, err := s.manifestsOf(filepath.Join(folder, "config"), s.repository)
	if err != nil {
		return err
	}
	_, err = s.packChart(m, out)
	return err
}

// chartVersion returns the version without the leading v, as Helm requires.
func (s source) chartVersion() string { return strings.TrimPrefix(s.version, "v") }

// setVersion sets the version of a chart.
func (s source) setVersion(path string) error {
	raw, err := os.ReadFile(path) //nolint:gosec // of the repository
	if err != nil {
		return err
	}
	chart := map[string]any{}
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		return err
	}
	chart["version"], chart["appVersion"] = s.chartVersion(), s.version
	if raw, err = yaml.Marshal(chart); err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644) //nolint:gosec // for all to read
}

// objects returns the objects of config/default with add-ons.
func (m manifests) objects(addOns ...string) ([]object, error) {
	k := kustomize.Kustomization{Resources: []string{"../default"}}
	for _, addOn := range addOns {
		component, err := m.isComponent(addOn)
		if err != nil {
			return nil, err
		}
		if component {
			k.Components = append(k.Components, "../"+addOn)
		} else {
			k.Resources = append(k.Resources, "../"+addOn)
		}
	}
	raw, err := yaml.Marshal(k)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(m.folder, "with-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), raw, 0o600); err != nil {
		return nil, err
	}
	if raw, err = m.render(filepath.Base(folder)); err != nil {
		return nil, err
	}
	var all []object
	for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		o := object{raw: bytes.TrimSpace(document)}
		if err := yaml.Unmarshal(document, &o); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// added returns how an add-on changes the controller Deployment, and the objects that it adds.
func (m manifests) added(addOn string, base []object) (c change, added []object, err error) {
	with, err := m.objects(addOn)
	if err != nil {
		return c, nil, err
	}
	for _, o := range with {
		i := slices.IndexFunc(base, func(b object) bool { return b.key() == o.key() })
		switch {
		case i < 0:
			added = append(added, o)
		case bytes.Equal(base[i].raw, o.raw):
		case o.Kind != "Deployment":
			return c, nil, fmt.Errorf("config/%s changes %s, but the chart can only change the Deployment", addOn, o.key())
		default:
			if c, err = changeOf(base[i].raw, o.raw); err != nil {
				return c, nil, fmt.Errorf("config/%s: %w", addOn, err)
			}
		}
	}
	for _, b := range base {
		if !slices.ContainsFunc(with, func(o object) bool { return o.key() == b.key() }) {
			return c, nil, fmt.Errorf("config/%s removes %s, but the chart cannot remove objects", addOn, b.key())
		}
	}
	return c, added, nil
}

// changeOf returns the change of a Deployment. It returns an error if the chart cannot apply it.
func changeOf(before, after []byte) (c change, err error) {
	var from, to map[string]any
	if err := yaml.Unmarshal(before, &from); err != nil {
		return c, err
	}
	if err := yaml.Unmarshal(after, &to); err != nil {
		return c, err
	}
	old, oldPod, oldController := partsOf(from)
	spec, pod, controller := partsOf(to)
	for field, list := range map[string]*[]any{"args": &c.Args, "ports": &c.Ports} {
		was, _ := oldController[field].([]any)
		is, _ := controller[field].([]any)
		if len(is) < len(was) || !reflect.DeepEqual(is[:len(was)], was) {
			return c, fmt.Errorf("it changes %s of the controller, but the chart can only append to them: got %v, want %v first", field, is, was)
		}
		*list = is[len(was):]
		oldController[field] = is
	}
	if !reflect.DeepEqual(old["replicas"], spec["replicas"]) {
		c.Replicas = spec["replicas"]
		old["replicas"] = c.Replicas
	}
	if constraints := pod["topologySpreadConstraints"]; constraints != nil {
		c.TopologySpreadConstraints = constraints
		oldPod["topologySpreadConstraints"] = constraints
	}
	if !reflect.DeepEqual(from, to) {
		return c, fmt.Errorf("it changes fields of the Deployment that the chart cannot set: got %v, want %v", to, from)
	}
	return c, nil
}

// partsOf returns the spec of a Deployment, the spec of its Pods, and the controller container.
func partsOf(deployment map[string]any) (spec, pod, controller map[string]any) {
	spec, _ = deployment["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	pod, _ = template["spec"].(map[string]any)
	containers, _ := pod["containers"].([]any)
	controller, _ = containers[0].(map[string]any)
	return spec, pod, controller
}

// keep is the annotation that stops Helm from deleting an object.
const keep = "  annotations:\n    helm.sh/resource-policy: keep\n"

// gateLocks is the name of the only CRD that Helm may delete: the controller can write all of its objects again.
const gateLocks = "gatelocks." + api.InternalGroup

// writeObjects writes objects to a file. It annotates CRDs so that Helm never deletes them, except gateLocks.
func writeObjects(path string, objects []object) error {
	var file bytes.Buffer
	for i, o := range objects {
		if i > 0 {
			file.WriteString("---\n")
		}
		raw := o.raw
		if o.Kind == "CustomResourceDefinition" && o.Metadata.Name != gateLocks {
			if raw = bytes.Replace(raw, []byte("\n  annotations:\n"), []byte("\n"+keep), 1); len(raw) == len(o.raw) {
				return fmt.Errorf("%s has no annotations, to which that for Helm is added", o.key())
			}
		}
		file.Write(append(raw, '\n'))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // for all to read
		return err
	}
	return os.WriteFile(path, file.Bytes(), 0o644) //nolint:gosec // for all to read
}
