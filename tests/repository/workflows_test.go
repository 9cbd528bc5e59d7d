package repository

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow has the fields of a GitHub workflow that matter here.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Steps []struct{ Uses, Run string }
	}
}

// A published action may change under its tag, so workflows must pin its digest. They must run the same make targets as contributors.
func TestWorkflowsPinActionsAndRunMakeTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	isPinned, target := regexp.MustCompile(`^[\w.-]+/[\w.-]+@[0-9a-f]{40}$`), regexp.MustCompile(`\bmake ([a-z]+)\b`)
	for name, want := range map[string][]string{"test.yaml": {"verify", "test"}, "release.yaml": {"verify", "test", "release"}} {
		raw, err := os.ReadFile(filepath.Join(root, ".github", "workflows", name))
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(raw, &w); err != nil {
			t.Fatal(err)
		}
		if len(w.Permissions) != 1 {
			t.Errorf("%s has the permissions %v, want one", name, w.Permissions)
		}
		var ran []string
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				if step.Uses != "" && !isPinned.MatchString(step.Uses) {
					t.Errorf("%s uses %s, which is not pinned by its digest", name, step.Uses)
				}
				for _, found := range target.FindAllStringSubmatch(step.Run, -1) {
					ran = append(ran, found[1])
				}
			}
		}
		if !slices.Equal(ran, want) {
			t.Errorf("%s runs make %s, want %s", name, strings.Join(ran, ", "), strings.Join(want, ", "))
		}
		for _, of := range ran {
			if !strings.Contains(string(makefile), "\n"+of+": ") {
				t.Errorf("%s runs make %s, which the Makefile lacks", name, of)
			}
		}
	}
}
