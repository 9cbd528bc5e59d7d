package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// charted returns the manifests of a release and its chart.
func charted(t *testing.T) (manifests, *chart.Chart) {
	t.Helper()
	s := here(t)
	m, err := s.manifestsOf(filepath.Join(t.TempDir(), "config"), "")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	file, err := s.packChart(m, out)
	if err != nil || file != "gating-controller-1.2.3.tgz" {
		t.Fatalf("%s, %v", file, err)
	}
	c, err := loader.LoadFile(filepath.Join(out, file))
	if err != nil {
		t.Fatal(err)
	}
	return m, c
}

// rendered returns the objects that Helm renders from a chart, by kind, namespace and name.
func rendered(t *testing.T, c *chart.Chart, namespace string, values map[string]any) map[string]map[string]any {
	t.Helper()
	cluster := chartutil.DefaultCapabilities.Copy()
	cluster.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "gating", Namespace: namespace}, cluster)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, strings.Split(files["gating-controller/templates/all.yaml"], "\n---\n")...)
}

func parsed(t *testing.T, documents ...string) map[string]map[string]any {
	t.Helper()
	objects := map[string]map[string]any{}
	for _, document := range documents {
		var o object
		var content map[string]any
		for _, into := range []any{&o, &content} {
			if err := yaml.Unmarshal([]byte(strings.TrimPrefix(strings.TrimSpace(document), "---\n")), into); err != nil {
				t.Fatalf("%v: %s", err, document)
			}
		}
		switch {
		case content == nil:
			continue
		case objects[o.key()] != nil:
			t.Errorf("two of %s", o.key())
		case o.Kind == "Deployment":
			_, _, controller := partsOf(content)
			for _, field := range []string{"args", "ports"} { // their order depends on the order of the add-ons
				list, _ := controller[field].([]any)
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
		objects[o.key()] = content
	}
	return objects
}

func TestChartMatchesKustomize(t *testing.T) {
	m, c := charted(t)
	names, err := m.addOns()
	if err != nil {
		t.Fatal(err)
	}
	sets := [][]string{nil, names}
	for _, name := range names {
		sets = append(sets, []string{name})
	}
	for _, chosen := range sets {
		values := map[string]any{}
		var documents []string
		for _, name := range chosen {
			values[name] = map[string]any{"enabled": true}
		}
		want, err := m.objects(chosen...)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range want {
			if o.Kind != "Namespace" {
				documents = append(documents, string(o.raw))
			}
		}
		compare(t, strings.Join(chosen, ","), rendered(t, c, "gating-system", values), parsed(t, documents...))
	}
}

// "flux uninstall" deletes cluster-wide objects with the label part-of=flux.
func TestChartObjectsHavePartOfLabel(t *testing.T) {
	m, c := charted(t)
	names, err := m.addOns()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	for _, name := range names {
		values[name] = map[string]any{"enabled": true}
	}
	for key, content := range rendered(t, c, "gating-system", values) {
		metadata, _ := content["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		if labels["app.kubernetes.io/part-of"] != "gating-controller" {
			t.Errorf("%s has the labels %v, want part-of=gating-controller", key, labels)
		}
	}
}

func compare(t *testing.T, name string, got, want map[string]map[string]any) {
	t.Helper()
	if len(want) < 10 {
		t.Errorf("with %q: only %d objects", name, len(want))
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if want[key] == nil {
			t.Errorf("with %q: the chart alone has %s", name, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if metadata, _ := got[key]["metadata"].(map[string]any); strings.HasPrefix(key, "CustomResourceDefinition ") {
			annotations, _ := metadata["annotations"].(map[string]any)
			if kept := annotations["helm.sh/resource-policy"] == "keep"; kept == strings.HasSuffix(key, "/"+gateLocks) {
				t.Errorf("with %q: Helm keeps %s: %t", name, key, kept)
			}
			delete(annotations, "helm.sh/resource-policy")
		}
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("with %q: %s is\n%v, not\n%v", name, key, got[key], want[key])
		}
	}
}

func TestChartValues(t *testing.T) {
	_, c := charted(t)
	objects := rendered(t, c, "flux-system", map[string]any{
		"image": map[string]any{"repository": "localhost:5000/mirror", "tag": "v9"}, "extraArgs": []any{"--concurrent=8"},
		"resources": map[string]any{"limits": map[string]any{"memory": "2Gi"}}, "crds": map[string]any{"install": false},
		"sharding": map[string]any{"enabled": true}, "policies": map[string]any{"enabled": true}, "zoneinfo": map[string]any{"configMap": "zoneinfo-2026f"},
	})
	deployments := 0
	for key, o := range objects {
		if strings.HasPrefix(key, "CustomResourceDefinition ") {
			t.Errorf("it has %s", key)
		}
		if strings.Contains(fmt.Sprint(o), "gating-system") {
			t.Errorf("%s is about another namespace: %v", key, o)
		}
		if !strings.HasPrefix(key, "Deployment ") {
			continue
		}
		deployments++
		_, _, controller := partsOf(o)
		args, _ := controller["args"].([]any)
		if controller["image"] != "localhost:5000/mirror:v9" || !slices.Contains(args, "--concurrent=8") ||
			fmt.Sprint(controller["resources"]) != "map[limits:map[memory:2Gi]]" {
			t.Errorf("%s: %v", key, controller)
		}
		_, pod, _ := partsOf(o)
		if !slices.Contains(args, "--zoneinfo=/zoneinfo/zoneinfo.zip") || fmt.Sprint(controller["volumeMounts"]) != "[map[mountPath:/zoneinfo name:zoneinfo readOnly:true]]" ||
			fmt.Sprint(pod["volumes"]) != "[map[configMap:map[name:zoneinfo-2026f] name:zoneinfo]]" {
			t.Errorf("%s has no time zone data: %v", key, pod)
		}
	}
	if deployments != 2 {
		t.Errorf("%d deployments", deployments)
	}
	if of := c.Metadata; of.Version != "1.2.3" || of.AppVersion != "v1.2.3" {
		t.Errorf("chart %+v", of)
	}
}

func TestUnsupportedAddOnIsError(t *testing.T) {
	deployment := func(pod, args string) []byte {
		return []byte("spec: {replicas: 1, template: {spec: {" + pod + "containers: [{args: [" + args + "], ports: [{containerPort: 1}]}]}}}")
	}
	for name, tc := range map[string]struct{ pod, args, want string }{
		"adds a flag":        {"", "a, b, c", ""},
		"changes the Pod":    {"hostNetwork: true, ", "a, b", "fields of the Deployment that the chart cannot set"},
		"replaces a flag":    {"", "a, c", "but the chart can only append"},
		"removes a flag":     {"", "a", "but the chart can only append"},
		"a flag comes first": {"", "c, a, b", "but the chart can only append"},
	} {
		if _, err := changeOf(deployment("", "a, b"), deployment(tc.pod, tc.args)); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An empty value or a tag without quotes has a reasonable meaning.
func TestChartAcceptsCommonValues(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123", 16)
	_, c := charted(t)
	for name, tc := range map[string]struct {
		values map[string]any
		image  string
	}{
		"nothing set": {map[string]any{"extraArgs": nil, "image": nil, "availability": nil, "resources": nil}, "fluxcd/gating-controller:v1.2.3"},
		"a number":    {map[string]any{"image": map[string]any{"tag": 9}}, "fluxcd/gating-controller:9"},
		"a port":      {map[string]any{"image": map[string]any{"repository": "localhost:5000/a"}}, "localhost:5000/a:v1.2.3"},
		"a digest":    {map[string]any{"image": map[string]any{"digest": digest}}, "fluxcd/gating-controller:v1.2.3@" + digest},
	} {
		_, _, controller := partsOf(rendered(t, c, "gating-system", tc.values)["Deployment gating-system/gating-controller"])
		if controller["image"] != tc.image {
			t.Errorf("%s: image %s, want %s", name, controller["image"], tc.image)
		}
	}
}

func TestChartChecksKubernetesVersionOfAddOn(t *testing.T) {
	_, c := charted(t)
	old := chartutil.DefaultCapabilities.Copy()
	old.KubeVersion = chartutil.KubeVersion{Version: "v1.35.3", Major: "1", Minor: "35"}
	for name, want := range map[string]string{"policies": "policies needs Kubernetes 1.36 or later, this is v1.35.3", "lock": "lock needs Kubernetes 1.36", "webhooks": ""} {
		all, err := chartutil.ToRenderValues(c, map[string]any{name: map[string]any{"enabled": true}}, chartutil.ReleaseOptions{Namespace: "a"}, old)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = engine.Render(c, all); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A typo in the values must be an error. Otherwise, Helm would silently omit an add-on.
func TestChartRefusesUnknownValues(t *testing.T) {
	_, c := charted(t)
	for name, values := range map[string]map[string]any{
		"an unknown value":     {"polices": map[string]any{"enabled": true}},
		"an unknown field":     {"ui": map[string]any{"enable": true}},
		"a value for a map":    {"policies": true},
		"a text for a boolean": {"lock": map[string]any{"enabled": "yes"}},
		"a tag for a digest":   {"image": map[string]any{"digest": "v1.2.3"}},
		"flags as one text":    {"extraArgs": "--concurrent=8"},
		"a flag without dash":  {"extraArgs": []any{"concurrent=8"}},
	} {
		if _, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "gating"}, nil); err == nil || !strings.Contains(err.Error(), "values don't meet the specifications of the schema") {
			t.Errorf("%s: %v", name, err)
		}
	}
	schema := map[string]any{}
	if err := yaml.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	known, _ := schema["properties"].(map[string]any)
	for value := range c.Values {
		if delete(known, value); known[value] != nil {
			t.Errorf("the schema lacks %s", value)
		}
	}
	if len(known) != 1 || known["global"] == nil {
		t.Errorf("the schema has more than values.yaml: %v", slices.Collect(maps.Keys(known)))
	}
}

// Artifact Hub reads annotations of the chart.
func TestChartDescribesItsDefinitions(t *testing.T) {
	_, c := charted(t)
	var listed []struct{ Kind, Version, Name string }
	if err := yaml.UnmarshalStrict([]byte(c.Metadata.Annotations["artifacthub.io/crds"]), &[]map[string]string{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(c.Metadata.Annotations["artifacthub.io/crds"]), &listed); err != nil {
		t.Fatal(err)
	}
	defined := rendered(t, c, "gating-system", nil)
	for _, l := range listed {
		spec, _ := defined["CustomResourceDefinition /"+l.Name]["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		if versions, _ := spec["versions"].([]any); names["kind"] != l.Kind || len(versions) != 1 || !strings.Contains(fmt.Sprint(versions[0]), "name:"+l.Version) {
			t.Errorf("%+v is not a kind of the chart", l)
		}
		delete(defined, "CustomResourceDefinition /"+l.Name)
	}
	for key := range defined {
		if strings.HasPrefix(key, "CustomResourceDefinition ") {
			t.Errorf("the annotation lacks %s", key)
		}
	}
}
