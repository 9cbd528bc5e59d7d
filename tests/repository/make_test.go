package repository

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMakeCheckRunsAllPureTests compares PURE in the Makefile with the direct and indirect imports of each package's tests.
func TestMakeCheckRunsAllPureTests(t *testing.T) {
	pure := goList(t, strings.Fields(makeVariable(t, "PURE"))...)
	tested, all := 0, goList(t, "-test", "./...")
	for path, p := range all {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 || strings.Contains(path, " ") { // the package as compiled for its tests
			continue
		}
		tested++
		_, checked := pure[path]
		needs := slices.ContainsFunc(all[path+".test"].Deps, startsAnAPIServer)
		switch {
		case needs && checked:
			t.Errorf("%s is in PURE of the Makefile, but its tests can start an API server", path)
		case !needs && !checked:
			t.Errorf("%s is not in PURE of the Makefile, but its tests need no API server", path)
		}
	}
	if tested < 20 {
		t.Errorf("only %d packages have tests", tested)
	}
}

func startsAnAPIServer(path string) bool {
	return path == module+"tests/harness" || strings.HasSuffix(path, "/pkg/envtest")
}

// goPackage has fields of the output of "go list -json".
type goPackage struct {
	ImportPath                      string
	TestGoFiles, XTestGoFiles, Deps []string
}

func goList(t *testing.T, arguments ...string) map[string]goPackage {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,TestGoFiles,XTestGoFiles,Deps"}, arguments...)...)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]goPackage{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// makeVariable returns the value of a variable in the Makefile.
func makeVariable(t *testing.T, name string) string {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, value, found := strings.Cut(string(makefile), "\n"+name+" := ")
	value, _, _ = strings.Cut(value, "\n")
	if !found || value == "" {
		t.Fatalf("the Makefile does not set %s", name)
	}
	return value
}

func TestRepeatStopsAtFirstFailure(t *testing.T) {
	for name, c := range map[string]struct {
		make, runs string
		code       int
		want       []string
	}{
		"all pass":     {"exit 0", "2", 0, []string{"run 1: passed in 0m0", "run 2: passed in 0m0", "all passed"}},
		"the second":   {`[[ ! -e $LOGS/2.log ]] || { echo "--- FAIL: TestX"; exit 2; }`, "3", 1, []string{"run 1: passed", "run 2: FAILED", "--- FAIL: TestX"}},
		"not a number": {"exit 0", "often", 2, []string{"one argument, how often"}},
		"zero":         {"exit 0", "0", 2, []string{"one argument, how often"}},
		"no argument":  {"exit 0", "", 2, []string{"one argument, how often"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, "make"), []byte("#!/usr/bin/env bash\n"+c.make+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			repeat := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "tests", "repeat.sh"), c.runs)
			repeat.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "LOGS="+t.TempDir())
			out, err := repeat.CombinedOutput()
			if code := repeat.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, not %d: %v", code, c.code, err)
			}
			text := string(out)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
			if strings.Contains(text, "run 3") || c.code != 0 && strings.Contains(text, "all passed") {
				t.Errorf("it continues after a failure:\n%s", out)
			}
		})
	}
}

// assets runs a copy of tests/tools/assets.sh with substitutes for build.sh and go.
func assets(t *testing.T, build, goes string) *exec.Cmd {
	t.Helper()
	folder := t.TempDir()
	script, err := os.ReadFile(filepath.Join(root, "tests", "tools", "assets.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"tests/tools/assets.sh": string(script), "tests/tools/build.sh": "#!/usr/bin/env bash\n" + build, "bin/go": "#!/usr/bin/env bash\n" + goes,
		"theirs/etcd": "", "theirs/kubectl": "", "theirs/kube-apiserver": "#!/usr/bin/env bash\necho Kubernetes v1.36.0",
		"partial/etcd": "", "old/etcd": "", "old/kubectl": "", "old/kube-apiserver": "#!/usr/bin/env bash\necho Kubernetes v1.32.9",
	} {
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, path), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), filepath.Join(folder, "tests", "tools", "assets.sh"))
	run.Dir = folder
	run.Env = []string{"PATH=" + filepath.Join(folder, "bin") + ":" + os.Getenv("PATH"), "HOME=" + folder}
	return run
}

func TestDemoNamesItsControlPlane(t *testing.T) {
	for name, c := range map[string]struct {
		build, goes, named string
		// made is a file in the cache.
		made            string
		folder, message string
	}{
		"named":                          {named: "theirs", folder: "theirs", message: "Control plane: that of KUBEBUILDER_ASSETS, Kubernetes v1.36.0"},
		"named, but incomplete":          {named: "partial", message: "KUBEBUILDER_ASSETS is partial, which has no kube-apiserver"},
		"named, but too old":             {named: "old", message: "It is too old: the controller needs Kubernetes 1.34 or later"},
		"downloaded":                     {goes: "echo theirs", folder: "theirs", message: "Control plane: downloaded by setup-envtest, Kubernetes v1.36.0"},
		"not downloadable":               {goes: "exit 1", build: "echo /built", folder: "/built/bin", message: "Control plane: built here, because setup-envtest cannot"},
		"built before":                   {goes: "echo theirs", build: "echo /built", made: ".cache/tools/current/bin/kube-apiserver", folder: "/built/bin"},
		"neither downloadable nor built": {goes: "exit 1", build: "echo broken >&2; exit 1", message: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := assets(t, c.build, c.goes)
			if c.named != "" {
				run.Env = append(run.Env, "KUBEBUILDER_ASSETS="+c.named)
			}
			if c.made != "" {
				path := filepath.Join(run.Dir, c.made)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			var stderr strings.Builder
			run.Stderr = &stderr
			out, err := run.Output()
			if got := strings.TrimSpace(string(out)); got != c.folder || (err == nil) != (c.folder != "") {
				t.Errorf("the folder is %q, want %q: %v %s", got, c.folder, err, stderr.String())
			}
			if !strings.Contains(stderr.String(), c.message) {
				t.Errorf("got message %q, want %q", stderr.String(), c.message)
			}
		})
	}
}
