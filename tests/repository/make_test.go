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

// TestMakeCheckRunsAllTestsThatNeedNoAPIServer compares PURE in the Makefile with what
// the tests of each package import, also through others.
func TestMakeCheckRunsAllTestsThatNeedNoAPIServer(t *testing.T) {
	pure := goList(t, strings.Fields(makeVariable(t, "PURE"))...)
	tested, all := 0, goList(t, "-test", "./...")
	for path, p := range all {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 || strings.Contains(path, " ") { // the package as its tests compile it
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
		t.Errorf("%d packages have tests: are these all?", tested)
	}
}

func startsAnAPIServer(path string) bool {
	return path == module+"tests/harness" || strings.HasSuffix(path, "/pkg/envtest")
}

// goPackage is what "go list -json" says of a package.
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

// makeVariable returns what the Makefile sets a variable to.
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

func TestRepeatStopsAtTheFirstRunThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		make, runs string
		code       int
		want       []string
	}{
		"all pass":        {"exit 0", "2", 0, []string{"run 1: passed in 0m0", "run 2: passed in 0m0", "all passed"}},
		"the second":      {`[[ ! -e $LOGS/2.log ]] || { echo "--- FAIL: TestX"; exit 2; }`, "3", 1, []string{"run 1: passed", "run 2: FAILED", "--- FAIL: TestX"}},
		"no number":       {"exit 0", "often", 2, []string{"one argument, how often"}},
		"not even once":   {"exit 0", "0", 2, []string{"one argument, how often"}},
		"nothing is said": {"exit 0", "", 2, []string{"one argument, how often"}},
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
				t.Errorf("it goes on after a failure:\n%s", out)
			}
		})
	}
}

// assets is a copy of tests/tools/assets.sh, beside a build.sh and before a go that do what a test says.
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

func TestTheDemoSaysWhoseControlPlaneItTakes(t *testing.T) {
	for name, c := range map[string]struct {
		build, goes, named string
		// made is what lies in the cache.
		made         string
		folder, says string
	}{
		"named":           {named: "theirs", folder: "theirs", says: "Control plane: that of KUBEBUILDER_ASSETS, Kubernetes v1.36.0"},
		"named, not all":  {named: "partial", says: "KUBEBUILDER_ASSETS is partial, which has no kube-apiserver"},
		"named, too old":  {named: "old", says: "It is too old: the controller needs Kubernetes 1.34 or later"},
		"downloaded":      {goes: "echo theirs", folder: "theirs", says: "Control plane: downloaded by setup-envtest, Kubernetes v1.36.0"},
		"not to be had":   {goes: "exit 1", build: "echo /built", folder: "/built/bin", says: "Control plane: built here, because setup-envtest cannot"},
		"built before":    {goes: "echo theirs", build: "echo /built", made: ".cache/tools/current/bin/kube-apiserver", folder: "/built/bin"},
		"nothing for now": {goes: "exit 1", build: "echo broken >&2; exit 1", says: "broken"},
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
			var says strings.Builder
			run.Stderr = &says
			out, err := run.Output()
			if got := strings.TrimSpace(string(out)); got != c.folder || (err == nil) != (c.folder != "") {
				t.Errorf("the folder is %q, want %q: %v %s", got, c.folder, err, says.String())
			}
			if !strings.Contains(says.String(), c.says) {
				t.Errorf("it says %q, want %q", says.String(), c.says)
			}
		})
	}
}
