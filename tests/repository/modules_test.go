package repository

import (
	"encoding/json"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goMod has fields of a go.mod.
type goMod struct {
	Require []struct {
		Path, Version string
		Indirect      bool
	}
}

func readGoMod(t *testing.T, folder string) (m goMod) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", filepath.Join(root, folder, "go.mod")).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// With other versions, the benchmarks would measure those instead of the versions of the product.
func TestBenchUsesProductVersions(t *testing.T) {
	versions := map[string]string{}
	for _, r := range readGoMod(t, ".").Require {
		versions[r.Path] = r.Version
	}
	same := 0
	for _, r := range readGoMod(t, "tests/bench").Require {
		switch want, shared := versions[r.Path]; {
		case shared && r.Version != want:
			t.Errorf("tests/bench/go.mod requires %s %s, the product %s: write the version into it and run go mod tidy", r.Path, r.Version, want)
		case shared:
			same++
		}
	}
	if same < 40 {
		t.Errorf("only %d modules are the same", same)
	}
}

func TestProductDoesNotRequireBenchModules(t *testing.T) {
	direct := 0
	for _, r := range readGoMod(t, ".").Require {
		if r.Indirect {
			continue
		}
		direct++
		if r.Path == "github.com/prometheus/client_model" || r.Path == "github.com/prometheus/common" {
			t.Errorf("only tests/bench may require %s: to compare metrics, prometheus/testutil suffices", r.Path)
		}
	}
	if direct == 0 {
		t.Error("the product requires nothing")
	}
}

// The tools also have modules, for building third-party programs.
func TestMakeKnowsAllModules(t *testing.T) {
	modules := strings.Fields(makeVariable(t, "MODULES"))
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if entry.Name() != "go.mod" {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if !strings.HasPrefix(folder, "tests/tools") && !slices.Contains(modules, folder) {
			t.Errorf("MODULES in the Makefile does not have %s", folder)
		}
		modules = slices.DeleteFunc(modules, func(module string) bool { return module == folder })
		return err
	})
	if err != nil || len(modules) > 0 {
		t.Errorf("MODULES in the Makefile has %q, which are not modules: %v", modules, err)
	}
}
