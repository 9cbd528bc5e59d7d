package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/preview/files"
)

func gate(name string) string {
	return "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: " + name + "}\nspec: {default: opened}\n"
}

// folder writes files into a new folder.
func folder(t *testing.T, content map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range content {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// read returns the Gates of a folder, all faults, and the error, without the path of the folder.
func read(t *testing.T, path string) (gates []string, faults string, err error) {
	t.Helper()
	set := preview.NewSet("apps")
	err = files.Read(set, path, strings.NewReader(""))
	var invalid *preview.InvalidError
	if errors.As(set.Err(), &invalid) {
		for _, fault := range invalid.Faults {
			faults += strings.ReplaceAll(fault.String(), path+"/", "") + "\n"
		}
	}
	return set.Gates(), faults, err
}

func TestFolderIsReadRecursively(t *testing.T) {
	root := folder(t, map[string]string{
		"a.yaml": gate("a"), "deep/er/b.yml": gate("b"), "c.json": `{"apiVersion": "gating.toolkit.fluxcd.io/v1alpha1", "kind": "Gate", "metadata": {"name": "c"}, "spec": {"default": "opened"}}`,
		"values.yaml": "replicas: 1\n", "list.yaml": "- 1\n- 2\n", "README.md": gate("readme"), ".git/config.yaml": "{", ".hidden.yaml": "{", "empty.yaml": "",
		"other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
	})
	gates, faults, err := read(t, root)
	if want := []string{"apps/a", "apps/b", "apps/c"}; !slices.Equal(gates, want) || faults != "" || err != nil {
		t.Errorf("%q, %q, %v", gates, faults, err)
	}
}

func TestInvalidYAMLErrorNamesFile(t *testing.T) {
	_, faults, err := read(t, folder(t, map[string]string{"a.yaml": gate("a"), "deep/b.yaml": "spec: {", "c.yaml": strings.Replace(gate("c"), "opened", "ajar", 1)}))
	lines := strings.Split(faults, "\n")
	if err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], "c.yaml: apps/c: spec.default: ") || !strings.HasPrefix(lines[1], "deep/b.yaml: ") {
		t.Errorf("%q, %v", faults, err)
	}
}

func TestSymlinksToFilesAreRead(t *testing.T) {
	root := folder(t, map[string]string{"gates/a.yaml": gate("a"), "links/none": ""})
	for name, to := range map[string]string{"a.yaml": "../gates/a.yaml", "folder.yaml": "../gates"} {
		if err := os.Symlink(to, filepath.Join(root, "links", name)); err != nil {
			t.Fatal(err)
		}
	}
	if gates, faults, err := read(t, filepath.Join(root, "links")); !slices.Equal(gates, []string{"apps/a"}) || faults != "" || err != nil {
		t.Errorf("%q, %q, %v", gates, faults, err)
	}
}

func TestFolderWithKustomizationIsBuilt(t *testing.T) {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		root := folder(t, map[string]string{
			"base/" + name: "resources: [gate.yaml]\nnamePrefix: eu-\n", "base/gate.yaml": gate("a"), "base/unused.yaml": gate("unused"),
			"overlay/kustomization.yaml": "resources: [../base]\nnamespace: prod\npatches:\n- patch: |\n    - {op: replace, path: /spec/default, value: closed}\n  target: {kind: Gate}\n",
		})
		if gates, faults, err := read(t, filepath.Join(root, "overlay")); !slices.Equal(gates, []string{"prod/eu-a"}) || faults != "" || err != nil {
			t.Errorf("%s: %q, %q, %v", name, gates, faults, err)
		}
	}
}

func TestNestedKustomizationIsBuiltNotRead(t *testing.T) {
	root := folder(t, map[string]string{"a.yaml": gate("a"), "apps/kustomization.yaml": "resources: [b.yaml]\nnamespace: web\n", "apps/b.yaml": gate("b"), "apps/unused.yaml": gate("c")})
	if gates, faults, err := read(t, root); !slices.Equal(gates, []string{"apps/a", "web/b"}) || faults != "" || err != nil {
		t.Errorf("%q, %q, %v", gates, faults, err)
	}
}

// The addresses do not exist, so an attempt to connect would fail with another error.
func TestKustomizeLoadsNoRemoteResources(t *testing.T) {
	const inline = "transformers:\n- |-\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: x}\n  path: https://127.0.0.1:1/patch.yaml\n"
	for name, tc := range map[string]struct{ kustomization, address string }{
		"a file":                  {"resources: ['https://127.0.0.1:1/gate.yaml']", "https://127.0.0.1:1/gate.yaml"},
		"in capitals":             {"resources: ['HTTPS://127.0.0.1:1/gate.yaml']", "HTTPS://127.0.0.1:1/gate.yaml"},
		"a repository":            {"resources: ['ssh://git@127.0.0.1:1/repo.git']", "ssh://git@127.0.0.1:1/repo.git"},
		"a repository of a disk":  {"resources: ['file:///tmp/repo.git//base']", "file:///tmp/repo.git//base"},
		"an address of git":       {"resources: ['git@127.0.0.1:repo.git']", "git@127.0.0.1:repo.git"},
		"with a prefix":           {"resources: ['git::https://127.0.0.1:1/repo']", "git::https://127.0.0.1:1/repo"},
		"without a scheme":        {"resources: ['github.com/org/repo/base?ref=main']", "github.com/org/repo/base?ref=main"},
		"a base":                  {"bases: ['https://127.0.0.1:1/repo']", "https://127.0.0.1:1/repo"},
		"a component":             {"components: ['https://127.0.0.1:1/repo']", "https://127.0.0.1:1/repo"},
		"a patch":                 {"patches: [{path: 'https://127.0.0.1:1/patch.yaml'}]", "https://127.0.0.1:1/patch.yaml"},
		"a file of a ConfigMap":   {"configMapGenerator: [{name: a, files: ['key=https://127.0.0.1:1/x']}]", "https://127.0.0.1:1/x"},
		"a schema":                {"openapi: {path: 'https://127.0.0.1:1/schema.json'}", "https://127.0.0.1:1/schema.json"},
		"a transformer":           {inline, "https://127.0.0.1:1/patch.yaml"},
		"a transformer in a file": {"transformers: [transformer.yaml]", "https://127.0.0.1:1/other.yaml"},
		"in a base":               {"resources: [remote]", "https://127.0.0.1:1/base.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t, map[string]string{
				"kustomization.yaml": tc.kustomization + "\n", "remote/kustomization.yaml": "resources: ['https://127.0.0.1:1/base.yaml']\n",
				"transformer.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: https://127.0.0.1:1/other.yaml\n",
			})
			gates, _, err := read(t, root)
			if want := "refers to \"" + tc.address + "\", which is remote: only local files and folders are read"; err == nil || !strings.HasSuffix(err.Error(), want) || len(gates) > 0 {
				t.Errorf("%q, %v, want %s", gates, err, want)
			}
		})
	}
}

func TestUnusedURLIsIgnored(t *testing.T) {
	root := folder(t, map[string]string{
		"gate.yaml":          gate("a"),
		"kustomization.yaml": "resources: [gate.yaml]\ncommonAnnotations: {docs: 'https://127.0.0.1:1/docs'}\nimages: [{name: a, newName: github.com/a/b}]\nconfigMapGenerator: [{name: a, literals: ['url=https://127.0.0.1:1/']}]\n",
	})
	if gates, faults, err := read(t, root); !slices.Equal(gates, []string{"apps/a"}) || faults != "" || err != nil {
		t.Errorf("%q, %q, %v", gates, faults, err)
	}
}

func TestBuildErrorNamesFolder(t *testing.T) {
	for name, kustomization := range map[string]string{
		"a file that is not there": "resources: [missing.yaml]", "no YAML": "resources: [", "a file above": "resources: [../../../../etc/hostname]",
		"a chart": "helmCharts: [{name: a, repo: 'https://127.0.0.1:1/charts'}]", "a plug-in": "generators: [plugin.yaml]",
	} {
		root := folder(t, map[string]string{
			"kustomization.yaml": kustomization,
			"plugin.yaml":        "apiVersion: example.com/v1\nkind: Plugin\nmetadata:\n  name: x\n  annotations: {config.kubernetes.io/function: \"exec: {path: ./run.sh}\"}\n",
			"run.sh":             "#!/bin/sh\ntouch ran\n",
		})
		if err := os.Chmod(filepath.Join(root, "run.sh"), 0o700); err != nil {
			t.Fatal(err)
		}
		gates, _, err := read(t, root)
		if err == nil || !strings.HasPrefix(err.Error(), root+": ") || len(gates) > 0 {
			t.Errorf("%s: %q, %v", name, gates, err)
		}
		if _, err := os.Stat(filepath.Join(root, "ran")); err == nil {
			t.Errorf("%s: the plug-in ran", name)
		}
	}
}
