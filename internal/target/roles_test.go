package target_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/target"
)

func kindsWith[Role any]() string {
	var kinds []string
	for _, adapter := range target.All() {
		if _, ok := adapter.(Role); ok {
			kinds = append(kinds, adapter.GroupKind().Kind)
		}
	}
	slices.Sort(kinds)
	return strings.Join(kinds, " ")
}

// docs/contribute/design.md has the same table.
func TestRolesOfKinds(t *testing.T) {
	for role, tc := range map[string]struct{ got, want string }{
		"Suspender": {kindsWith[target.Suspender](), "Bucket GitRepository HelmChart HelmRelease HelmRepository ImagePolicy ImageRepository ImageUpdateAutomation Kustomization OCIRepository"},
		"Installer": {kindsWith[target.Installer](), "Bucket GatedSource GitRepository HelmChart HelmRelease HelmRepository ImagePolicy ImageRepository ImageUpdateAutomation Kustomization OCIRepository"},
		"Renewer":   {kindsWith[target.Renewer](), "Certificate"},
		"Activator": {kindsWith[target.Activator](), "Certificate"},
		"Reporter":  {kindsWith[target.Reporter](), "Certificate"},
		"Pinner":    {kindsWith[target.Pinner](), "GatedSource"},
		"Applier":   {kindsWith[target.Applier](), "GatedSource HelmRelease Kustomization"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", role, tc.got, tc.want)
		}
	}
}
