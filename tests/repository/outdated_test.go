package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutdatedReportsLaggingModulesAndNeverFails(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "tests", "tools", "outdated.sh"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	files := map[string]string{
		"tests/tools/outdated.sh": string(script),
		"go.mod":                  "module example.com/ours\n\ngo 1.26.0\n\nrequire (\n\texample.com/current v1.0.0\n\texample.com/lagging v1.0.0 // Go 1.99\n)\n",
	}
	for module, newest := range map[string]string{"current": "v1.0.0", "lagging": "v1.2.0"} {
		at := "proxy/example.com/" + module + "/@v/"
		files[at+"list"] = "v1.0.0\n" + newest + "\n"
		for _, version := range []string{"v1.0.0", newest} {
			files[at+version+".mod"] = "module example.com/" + module + "\n"
			files[at+version+".info"] = `{"Version":"` + version + `"}`
		}
	}
	for path, text := range files {
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, path), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", "cd '"+folder+"' && git init -q && git add go.mod").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, c := range map[string]struct{ proxy, want string }{
		"proxy":      {"file://" + filepath.Join(folder, "proxy"), "go.mod: example.com/lagging v1.0.0, v1.2.0 is newer: Go 1.99\n"},
		"no network": {"http://127.0.0.1:1", "go.mod: not checked: no network\n"},
	} {
		run := exec.CommandContext(t.Context(), filepath.Join(folder, "tests", "tools", "outdated.sh"), "outdated")
		run.Env = append(os.Environ(), "GOPROXY="+c.proxy, "GOFLAGS=-mod=mod -modcacherw", "GOSUMDB=off", "GOMODCACHE="+filepath.Join(folder, strings.ReplaceAll(name, " ", "")))
		out, err := run.CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("%s: %v, got %q, want %q", name, err, out, c.want)
		}
	}
}
