package repository

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Readers must find everything that the controller may read, and all clients that may reach it.
func TestPermissionsPageListsIngressAndSecretReaders(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "secure", "permissions.md"))
	if err != nil {
		t.Fatal(err)
	}
	config, policies, readers := filepath.Join(root, "config"), 0, 0
	named := func(what string) {
		if !strings.Contains(string(page), "`"+what+"`") {
			t.Errorf("docs/secure/permissions.md does not mention %s", what)
		}
	}
	err = filepath.WalkDir(config, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var obj struct {
				Kind     string
				Metadata struct{ Name string }
				Rules    []struct{ Resources []string }
			}
			if yaml.Unmarshal([]byte(document), &obj) != nil {
				continue // has another form
			}
			if obj.Kind == "NetworkPolicy" {
				policies++
				named(obj.Metadata.Name)
			}
			for _, rule := range obj.Rules {
				if strings.Contains(strings.Join(rule.Resources, " "), "secrets") {
					readers++
					named("config/" + filepath.Base(filepath.Dir(path)))
				}
			}
		}
		return nil
	})
	if err != nil || policies < 5 || readers < 2 {
		t.Errorf("%d policies, %d roles: %v", policies, readers, err)
	}
}
