package repository

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

var (
	read        = []string{"get", "list", "watch"}
	hold        = []string{"get", "list", "watch", "patch"}
	pin         = []string{"get", "list", "watch", "create", "patch"}
	writeStatus = []string{"get", "patch"}
)

// mayDo lists the verbs that the controller may have in the cluster, by resource and group. Secrets are not among them: config/activation,
// config/calendar-feed and config/webhooks have roles for those.
var mayDo = map[string][]string{
	"events.":     {"create", "patch"},
	"namespaces.": read,
	"validatingadmissionpolicies.admissionregistration.k8s.io":       {"get"},
	"validatingadmissionpolicybindings.admissionregistration.k8s.io": {"get"},
	"customresourcedefinitions.apiextensions.k8s.io":                 read,
	"gates.gating.toolkit.fluxcd.io":                                 {"get", "list", "watch", "patch", "open", "close"},
	"gates/status.gating.toolkit.fluxcd.io":                          writeStatus,
	"gateexceptions.gating.toolkit.fluxcd.io":                        {"get", "list", "watch", "patch", "delete"},
	"gateexceptions/status.gating.toolkit.fluxcd.io":                 writeStatus,
	"gatereceivers.gating.toolkit.fluxcd.io":                         hold,
	"gatereceivers/status.gating.toolkit.fluxcd.io":                  writeStatus,
	"calendarfeeds.gating.toolkit.fluxcd.io":                         hold,
	"calendarfeeds/status.gating.toolkit.fluxcd.io":                  writeStatus,
	"gatedsources.gating.toolkit.fluxcd.io":                          read,
	"gatedsources/status.gating.toolkit.fluxcd.io":                   writeStatus,
	"gatelocks.internal.gating.toolkit.fluxcd.io":                    {"get", "list", "watch", "create", "update"},
	"certificates.cert-manager.io":                                   hold,
	"certificates/status.cert-manager.io":                            writeStatus,
	"kustomizations.kustomize.toolkit.fluxcd.io":                     hold,
	"kustomizations/status.kustomize.toolkit.fluxcd.io":              writeStatus,
	"helmreleases.helm.toolkit.fluxcd.io":                            hold,
	"helmreleases/status.helm.toolkit.fluxcd.io":                     writeStatus,
	"gitrepositories.source.toolkit.fluxcd.io":                       pin,
	"gitrepositories/status.source.toolkit.fluxcd.io":                writeStatus,
	"ocirepositories.source.toolkit.fluxcd.io":                       pin,
	"ocirepositories/status.source.toolkit.fluxcd.io":                writeStatus,
	"buckets.source.toolkit.fluxcd.io":                               hold,
	"buckets/status.source.toolkit.fluxcd.io":                        writeStatus,
	"helmrepositories.source.toolkit.fluxcd.io":                      hold,
	"helmrepositories/status.source.toolkit.fluxcd.io":               writeStatus,
	"helmcharts.source.toolkit.fluxcd.io":                            pin,
	"helmcharts/status.source.toolkit.fluxcd.io":                     writeStatus,
	"imagerepositories.image.toolkit.fluxcd.io":                      hold,
	"imagerepositories/status.image.toolkit.fluxcd.io":               writeStatus,
	"imagepolicies.image.toolkit.fluxcd.io":                          hold,
	"imagepolicies/status.image.toolkit.fluxcd.io":                   writeStatus,
	"imageupdateautomations.image.toolkit.fluxcd.io":                 hold,
	"imageupdateautomations/status.image.toolkit.fluxcd.io":          writeStatus,
}

// roles returns the rules of the roles in files, by file.
func roles(t *testing.T, pattern string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	found := map[string][]rbacv1.PolicyRule{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(content, role); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		found[filepath.Base(path)] = role.Rules
	}
	return found
}

func TestControllerPermissionsAreListed(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range roles(t, "config/rbac/role.yaml")["role.yaml"] {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name := resource + "." + group
				seen[name] = true
				for _, verb := range rule.Verbs {
					if !slices.Contains(mayDo[name], verb) {
						t.Errorf("the role has the verb %s on %s, which is not in the list", verb, name)
					}
				}
			}
		}
	}
	for name := range mayDo {
		if !seen[name] {
			t.Errorf("%s is in the list, but not in the role", name)
		}
	}
}

// The role of calendars is a component, too.
func TestCalendarsRoleReadsOnlyConfigMaps(t *testing.T) {
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: read}}
	if got := roles(t, "config/calendars/role.yaml")["role.yaml"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestMachinesRoleAnnotatesAndWritesOneStatus(t *testing.T) {
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"machines"}, Verbs: hold},
		{APIGroups: []string{"gating.toolkit.fluxcd.io"}, Resources: []string{"machinecertificaterefreshes"}, Verbs: read},
		{APIGroups: []string{"gating.toolkit.fluxcd.io"}, Resources: []string{"machinecertificaterefreshes/status"}, Verbs: writeStatus},
	}
	if got := roles(t, "config/machines/role.yaml")["role.yaml"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Roles with access to Secrets are separate optional components.
func TestComponentRolesReadOnlyNeededSecrets(t *testing.T) {
	for component, verbs := range map[string][]string{"activation": {"get", "create", "patch"}, "webhooks": {"get"}, "calendar-feed": {"get"}} {
		want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs}}
		if got := roles(t, "config/"+component+"/role.yaml")["role.yaml"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", component, got, want)
		}
		for _, file := range []string{"config/default/kustomization.yaml", "config/rbac/kustomization.yaml"} {
			content, err := os.ReadFile(filepath.Join(root, file))
			if err != nil || strings.Contains(string(content), component) {
				t.Errorf("%s installs %s: %v", file, component, err)
			}
		}
	}
}

// The role of the web UI may create only reviews.
func TestWebUIRoleReadsAndReviewsOnly(t *testing.T) {
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"externalartifacts"}, Verbs: []string{"get"}},
	}
	if got := roles(t, "config/ui/role.yaml")["role.yaml"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOnlyControllerRoleNamesGateLocks(t *testing.T) {
	files, err := filepath.Glob("../../config/*/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(content), "\n---\n") {
			isRole := strings.Contains(document, "\nkind: ClusterRole\n") || strings.Contains(document, "\nkind: Role\n")
			if isRole && strings.Contains(document, "gatelocks") && file != "../../config/rbac/role.yaml" {
				t.Errorf("%s names gatelocks in a role", file)
			}
		}
	}
}

func TestRolesHaveNoWildcardsAndNoSecrets(t *testing.T) {
	checked := 0
	for _, pattern := range []string{"config/rbac/*role.yaml", "config/policies/*role.yaml"} {
		for file, rules := range roles(t, pattern) {
			for _, rule := range rules {
				checked++
				for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs) {
					if strings.Contains(word, "*") || strings.HasPrefix(word, "secrets") {
						t.Errorf("%s names %q", file, word)
					}
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d rules checked", checked)
	}
}

// A role file is named after its ClusterRole. The name begins with the kind.
func TestRoleFilesAreNamedAfterTheirClusterRoles(t *testing.T) {
	checked := 0
	for _, pattern := range []string{"config/policies/*role.yaml", "config/machines/*_*_role.yaml"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), "_role.yaml"), "_", "-")
			if checked++; !strings.Contains(string(content), "\n  name: "+name+"\n") {
				t.Errorf("%s has no ClusterRole %s", file, name)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d role files checked", checked)
	}
}
